"""Values and gradients of gpytorch's kernels at a few fixed points, for tests/kernels/test_kernels.py to compare with.

gpytorch's lengthscale is σ here; its RQKernel is (1 + |x-z|²/(2ασ²))^{-α}. The *KernelGrad classes give the joint
covariance of values and derivatives, from which the block ∂k(x, z)/∂x is read; where there is none, torch's autograd
differentiates the plain kernel.
"""

import json
from pathlib import Path

import gpytorch
import torch
from gpytorch import kernels

torch.set_default_dtype(torch.float64)
REFERENCE = Path(__file__).resolve().parents[1] / "tests" / "references" / "gpytorch_kernels.json"

# Distances from 0.1 to 6 bandwidths; torch cannot differentiate a distance of 0.
X = torch.tensor([[0.3, -1.2, 0.5], [1.1, 0.4, -0.7], [-2.0, 0.1, 1.3]])
Z = torch.tensor([[0.2, -1.1, 0.6], [-0.5, 0.8, 1.7], [3.0, -2.0, 0.0], [0.0, 0.0, 0.0]])
BANDWIDTHS = {"isotropic": [0.9], "per coordinate": [0.6, 1.1, 2.3]}


def with_bandwidth(make, bandwidth, **arguments):
    """Return a kernel of gpytorch with that lengthscale."""
    ard = {"ard_num_dims": 3} if len(bandwidth) == 3 else {}
    kernel = make(**arguments, **ard)
    kernel.lengthscale = torch.tensor([bandwidth])
    return kernel


def from_grad_kernel(kernel):
    """k(x, z) and ∂k/∂x from the joint covariance, whose rows and columns interleave (value, d derivatives)."""
    joint = kernel(X, Z).to_dense().detach().reshape(len(X), 4, len(Z), 4)
    return joint[:, 0, :, 0], joint[:, 1:, :, 0].permute(0, 2, 1)


def from_autograd(kernel):
    """k(x, z) and ∂k/∂x by automatic differentiation of k."""
    x = X.clone().requires_grad_()
    value = kernel(x, Z).to_dense()
    columns = [torch.autograd.grad(value[:, m].sum(), x, retain_graph=True)[0] for m in range(len(Z))]
    return value.detach(), torch.stack(columns, dim=1)


def cases():
    """Name of the class, kernel of kdmaps as plain data, value, gradient."""
    for bandwidth in BANDWIDTHS.values():
        sigma = bandwidth if len(bandwidth) == 3 else bandwidth[0]
        for name, family in (
            ("RBFKernelGrad", {"family": "Gaussian"}),
            ("Matern52KernelGrad", {"family": "Matern", "nu": 2.5}),
        ):
            kernel = with_bandwidth(getattr(kernels, name), bandwidth)
            yield name, {**family, "bandwidth": sigma}, *from_grad_kernel(kernel)
        for nu in (1.5, 2.5):
            kernel = with_bandwidth(kernels.MaternKernel, bandwidth, nu=nu)
            yield "MaternKernel", {"family": "Matern", "nu": nu, "bandwidth": sigma}, *from_autograd(kernel)
        for alpha in (2.0, 5.0):
            kernel = with_bandwidth(kernels.RQKernel, bandwidth)
            kernel.alpha = alpha
            yield (
                "RQKernel",
                {"family": "RationalQuadratic", "alpha": alpha, "bandwidth": sigma},
                *from_autograd(kernel),
            )


def main():
    """Write the reference file."""
    rows = [
        {"gpytorch": name, "kernel": kernel, "value": value.tolist(), "gradient": gradient.tolist()}
        for name, kernel, value, gradient in cases()
    ]
    reference = {
        "versions": {"torch": torch.__version__, "gpytorch": gpytorch.__version__},
        "X": X.tolist(),
        "Z": Z.tolist(),
        "cases": rows,
    }
    REFERENCE.parent.mkdir(exist_ok=True)
    REFERENCE.write_text(
        json.dumps(reference, indent=None, separators=(",", ":")).replace('{"gpytorch"', '\n{"gpytorch"') + "\n"
    )
    print(f"{len(rows)} kernels written to {REFERENCE.name}")


if __name__ == "__main__":
    main()
