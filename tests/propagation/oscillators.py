"""Small systems without noise, or with noise of the measurement only, whose rates are known."""

import numpy as np
from scipy.integrate import solve_ivp

import kdmaps

#: Time between frames of the oscillators.
STEP = 0.05
#: Angular frequency of van der Pol's oscillator with μ = 1: 2π over the period 6.6632869 (Viswanath 2001).
VAN_DER_POL = 2 * np.pi / 6.6632868593


def tones(n_frames=600, n_delays=4, noise=0.0, decays=(0.0, 0.0), seed=0):
    """cos 2t + ½ cos(5t + 1), with decays, and delays of it."""
    t = STEP * np.arange(n_frames)
    x = np.exp(-decays[0] * t) * np.cos(2 * t) + 0.5 * np.exp(-decays[1] * t) * np.cos(5 * t + 1)
    x += noise * np.random.default_rng(seed).normal(size=n_frames)
    return kdmaps.data.delays(x[:, None], n_delays)


def first_tutorial(n_delays, noise, seed=0):
    """PyDMD's first tutorial: two spatial modes that oscillate with 2.3 and 2.8; frames and the time step."""
    x, t = np.meshgrid(np.linspace(-5, 5, 65), np.linspace(0, 4 * np.pi, 129))
    X = np.cos(2.3 * t) / np.cosh(x + 3) + 2 * np.sin(2.8 * t) * np.tanh(x) / np.cosh(x)
    X += noise * np.random.default_rng(seed).normal(size=X.shape)
    return kdmaps.data.delays(X, n_delays), 4 * np.pi / 128


def van_der_pol(n_frames, start=(2.0, 0.0), step=0.1, skipped=200):
    """Frames of van der Pol's oscillator, on its limit cycle after `skipped` frames."""
    times = step * np.arange(n_frames + skipped)

    def flow(_, y):
        return [y[1], (1 - y[0] ** 2) * y[1] - y[0]]

    return solve_ivp(flow, (0, times[-1]), start, t_eval=times, rtol=1e-10, atol=1e-10).y.T[skipped:]


def rotating_noise(n_frames, seed=0):
    """A rotating Ornstein–Uhlenbeck process with rates -0.2±2i, frames at steps of 0.1."""
    turn = np.exp(0.1 * (-0.2 + 2j))
    noise = np.random.default_rng(seed).normal(size=(n_frames, 2)) @ [1, 1j] * np.sqrt(1 - abs(turn) ** 2)
    path = [0j]
    for step in noise:
        path.append(turn * path[-1] + step)
    return np.column_stack([np.real(path), np.imag(path)])[1:]
