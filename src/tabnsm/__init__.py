"""TabNSM: neural sparse mixer for regression on wide, mixed tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tabnsm._version import __version__
from tabnsm.errors import (
    InvalidDataError,
    InvalidOptionError,
    MissingExtraError,
    ModelFileError,
    TabNSMError,
    TabNSMWarning,
)

if TYPE_CHECKING:
    from tabnsm.estimator import TabNSMRegressor

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


def __getattr__(name: str) -> Any:
    # Torch is imported with the estimator, not with the package: `tabnsm --help` stays quick.
    if name == "TabNSMRegressor":
        from tabnsm.estimator import TabNSMRegressor

        return TabNSMRegressor
    raise AttributeError(f"module 'tabnsm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
