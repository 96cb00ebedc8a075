"""TabNSM: neural sparse mixer for regression on wide, mixed tables."""

from __future__ import annotations

from importlib import import_module
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
    from tabnsm.tuning import tune

__all__ = [
    "InvalidDataError",
    "InvalidOptionError",
    "MissingExtraError",
    "ModelFileError",
    "TabNSMError",
    "TabNSMRegressor",
    "TabNSMWarning",
    "__version__",
    "tune",
]

# Torch is imported with these, not with the package: `tabnsm --help` stays quick.
_MODULES = {"TabNSMRegressor": "tabnsm.estimator", "tune": "tabnsm.tuning"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'tabnsm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
