"""Warnings of kdmaps."""


class UnreliableModesWarning(UserWarning):
    """The modes or time scales are finite but should not be trusted without a second look."""


class UnresolvedModesWarning(UnreliableModesWarning):
    """An estimate, for fits without folds, says that noise or regularization decides a mode."""


class DataWarning(UserWarning):
    """The data hold something that is probably not meant, such as a constant column."""
