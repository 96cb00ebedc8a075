"""Errors and warnings that users meet; each is also the builtin they would catch."""

from __future__ import annotations


class TabNSMError(Exception):
    """Base class of every error that tabnsm raises on purpose."""


class InvalidDataError(ValueError, TabNSMError):
    """A table or a target that cannot be used as it is."""


class InvalidOptionError(ValueError, TabNSMError):
    """An option outside its allowed values."""


class ModelFileError(ValueError, TabNSMError):
    """A model or checkpoint file that cannot be trusted, read or resumed."""


class MissingExtraError(ImportError, TabNSMError):
    """An optional dependency that is not installed.

    Parameters
    ----------
    extra : str
        Name of the extra, as in ``pip install "tabnsm[extra]"``.
    purpose : str
        What it is needed for, as the start of a sentence.

    Examples
    --------
    >>> print(MissingExtraError("text", "Text columns"))
    Text columns need the extra 'text', which is not installed. Run: pip install "tabnsm[text]"
    """

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} need the extra {extra!r}, which is not installed. "
            f'Run: pip install "tabnsm[{extra}]"'
        )
        self.extra = extra


class MissingPackageError(ImportError, TabNSMError):
    """A command of a distribution that is not installed, or that cannot be loaded."""


class TabNSMWarning(UserWarning):
    """A word to the user about data or training that is worth a look."""
