"""Errors and warnings that users meet; each is also the builtin they would catch."""

from __future__ import annotations

import sys
import warnings

# Callers that stand between the user's line and this package.
_NOT_THE_USER = ("tabnsm", "sklearn", "joblib", "contextlib")


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
    """Something about data or training that is worth a look."""


def warn(message: str, category: type[Warning] = TabNSMWarning) -> None:
    """Warn, pointing at the user's line rather than into this package or scikit-learn.

    The message says what was found, what was done, and what to do if that is wrong.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_library(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_library(module: str) -> bool:
    return module.split(".", 1)[0] in _NOT_THE_USER
