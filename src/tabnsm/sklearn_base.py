"""What the estimator has from scikit-learn, imported without scipy.stats and pandas.

scikit-learn imports both, for functions that tabnsm does not use; they take as long as the rest of
it. Here they are imported when something asks for one of their names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """Stands for a module that is imported for the first of its names that is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Keep modules from being imported in the block by what only names them.

    Afterwards ``import`` finds them as usual. A name that the block imports from one of them is
    the real one.

    Examples
    --------
    >>> with deferred("this"):
    ...     import this
    >>> "this" in sys.modules
    False
    """
    wanted = [name for name in names if name not in sys.modules and find_spec(name) is not None]
    stand_ins = {name: _Deferred(name) for name in wanted}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]


with deferred("scipy.stats", "pandas"):
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils import check_random_state, estimator_html_repr
    from sklearn.utils.validation import check_is_fitted

__all__ = [
    "BaseEstimator",
    "RegressorMixin",
    "check_is_fitted",
    "check_random_state",
    "deferred",
    "estimator_html_repr",
]
