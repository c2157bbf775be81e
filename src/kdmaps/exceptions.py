"""Warnings of kdmaps."""


class UnreliableModesWarning(UserWarning):
    """The modes or time scales are finite but possibly wrong; check them before use."""


class UnresolvedModesWarning(UnreliableModesWarning):
    """A fit without folds has modes that are determined by noise or regularization, by an estimate."""


class DataWarning(UserWarning):
    """The data have a probable mistake, such as a constant column."""
