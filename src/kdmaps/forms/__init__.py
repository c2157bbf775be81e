"""Sums over samples, and the energies and correlations that they estimate."""
