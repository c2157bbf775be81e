"""Variational kernel learning: kernels that minimise an objective of the modes that they lead to."""
