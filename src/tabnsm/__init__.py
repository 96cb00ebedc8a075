"""TabNSM: neural sparse mixer for regression on wide, mixed tables."""

from __future__ import annotations

from tabnsm.errors import (
    InvalidDataError,
    InvalidOptionError,
    MissingExtraError,
    ModelFileError,
    TabNSMError,
    TabNSMWarning,
)
from tabnsm.estimator import TabNSMRegressor

__version__ = "0.1.0"

__all__ = [
    "InvalidDataError",
    "InvalidOptionError",
    "MissingExtraError",
    "ModelFileError",
    "TabNSMError",
    "TabNSMRegressor",
    "TabNSMWarning",
    "__version__",
]
