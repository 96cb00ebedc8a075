"""What the adapters share: options, columns, the target's scale, facts about a fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidOptionError

# Of every baseline that stops early on validation RMSE by epochs, as TabNSM does.
PATIENCE, SCHEDULER_PATIENCE, MAX_EPOCHS = 16, 5, 100
_CURVE_POINTS = 200
# Entries of a dense matrix of a gigabyte.
_MAX_DENSE_CELLS = 2**28


def take_options(
    method: str, defaults: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Options with the given ones in place of the defaults.

    Parameters
    ----------
    method : str
        Name for messages.
    defaults : mapping
        All options.
    given : mapping
        Those to change; "max_epochs" may be given to any method, and means nothing to most.

    Returns
    -------
    dict

    Raises
    ------
    InvalidOptionError
        If there is no such option.

    Examples
    --------
    >>> take_options("Ridge", {"alpha": None}, {"alpha": 2.0, "max_epochs": 5})
    {'alpha': 2.0}
    """
    given = {k: v for k, v in given.items() if k != "max_epochs" or k in defaults}
    unknown = [name for name in given if name not in defaults]
    if unknown:
        raise InvalidOptionError(
            f"An option of {method} must be one of {', '.join(defaults) or '(it has none)'}; "
            f"got {unknown[0]!r}."
        )
    return {**defaults, **given}


@dataclass(frozen=True)
class Columns:
    """Which features are numbers, and which are codes of categories.

    Parameters
    ----------
    sizes : tuple of int
        For each feature 0 if it is a number, else the number of its codes.

    Examples
    --------
    >>> columns = Columns((0, 3, 0))
    >>> numbers, codes = columns.split(np.array([[0.5, 2.0, 1.5]], dtype=np.float32))
    >>> numbers, codes
    (array([[0.5, 1.5]], dtype=float32), array([[2]]))
    >>> columns.one_hot(np.array([[0.5, 2.0, 1.5]], dtype=np.float32))
    array([[0.5, 1.5, 0. , 0. , 1. ]], dtype=float32)
    """

    sizes: tuple[int, ...]

    @property
    def category_sizes(self) -> list[int]:
        """Numbers of codes of the categories alone."""
        return [size for size in self.sizes if size]

    @property
    def n_numbers(self) -> int:
        """How many features are numbers."""
        return len(self.sizes) - len(self.category_sizes)

    @property
    def categories(self) -> list[int]:
        """Positions of the categories."""
        return [position for position, size in enumerate(self.sizes) if size]

    def split(self, x: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Numbers, and codes."""
        is_category = np.array(self.sizes, dtype=np.int64) > 0
        return x[:, ~is_category], x[:, is_category].astype(np.int64)

    def one_hot(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Numbers, then a column of zeros and ones per code."""
        if not self.category_sizes:
            return x
        numbers, codes = self.split(x)
        hot = [
            np.eye(size, dtype=np.float32)[code]
            for size, code in zip(self.category_sizes, codes.T, strict=True)
        ]
        return np.hstack([numbers, *hot])

    def one_hot_for(self, n_rows: int) -> Callable[[NDArray[np.float32]], Any]:
        """`one_hot`, or `sparse_one_hot` where that of so many rows is a gigabyte, mostly zeros.

        >>> [Columns((0, size)).one_hot_for(100_000).__name__ for size in (3, 20_000)]
        ['one_hot', 'sparse_one_hot']
        """
        width = self.n_numbers + sum(self.category_sizes)
        is_sparse = n_rows * width > _MAX_DENSE_CELLS and 2 * len(self.sizes) < width
        return self.sparse_one_hot if is_sparse else self.one_hot

    def sparse_one_hot(self, x: NDArray[np.float32]) -> Any:
        """`one_hot` as a sparse matrix, in which zeros take no memory."""
        from scipy import sparse

        numbers, codes = self.split(x)
        codes = codes.astype(np.int32)  # scikit-learn takes no longer indices
        rows = np.arange(len(x) + 1, dtype=np.int32)
        ones = np.ones(len(x), dtype=np.float32)
        hot = [
            sparse.csr_array((ones, code, rows), shape=(len(x), size))
            for size, code in zip(self.category_sizes, codes.T, strict=True)
        ]
        return sparse.hstack([sparse.csr_array(numbers), *hot], format="csr")


@dataclass(frozen=True)
class TargetScale:
    """Mean and spread of the training targets.

    Parameters
    ----------
    mean, std : float
        A spread of zero counts as one.

    Examples
    --------
    >>> scale = TargetScale.of(np.array([1.0, 3.0]))
    >>> scale.apply(np.array([3.0])), scale.undo(np.array([1.0]))
    (array([1.]), array([3.]))
    """

    mean: float
    std: float

    @classmethod
    def of(cls, y: NDArray[np.float64]) -> TargetScale:
        """Scale of these targets."""
        return cls(float(y.mean()), float(y.std()) or 1.0)

    def apply(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Targets with mean 0 and spread 1."""
        return (y - self.mean) / self.std

    def undo(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Back in the target's own units."""
        return np.asarray(y, dtype=np.float64) * self.std + self.mean


@dataclass
class Curve:
    """Validation RMSE against seconds since the curve was made.

    Examples
    --------
    >>> curve = Curve()
    >>> for rmse in (3.0, 2.0, 2.5):
    ...     curve.add(rmse)
    >>> curve.to_dict()["validation_rmse"]
    [3.0, 2.0, 2.5]
    """

    validation_rmse: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    def add(self, rmse: float) -> None:
        """One more epoch or iteration."""
        self.validation_rmse.append(float(rmse))
        self.seconds.append(self.elapsed)

    def to_dict(self) -> dict[str, list[float]]:
        """JSON-able: at most some 200 points, evenly spread, and the best one."""
        n = len(self.seconds)
        if not n:
            return {"seconds": [], "validation_rmse": []}
        kept = set(range(0, n, -(-n // _CURVE_POINTS))) | {n - 1}
        kept.add(int(np.nanargmin([*self.validation_rmse, np.inf])) % n)
        return {
            "seconds": [round(self.seconds[i], 4) for i in sorted(kept)],
            "validation_rmse": [float(f"{self.validation_rmse[i]:.6g}") for i in sorted(kept)],
        }


def describe(package: str, options: Mapping[str, Any], **facts: Any) -> dict[str, Any]:
    """Facts about a fit, as `Method.fit` gives them.

    Parameters
    ----------
    package : str
        Who provided the method.
    options : mapping
        All options that were used.
    **facts
        Anything else; entries that are None are left out.

    Examples
    --------
    >>> describe("scikit-learn", {"alpha": 1.0}, epochs=None)["options"]
    {'alpha': 1.0}
    """
    known = {name: value for name, value in facts.items() if value is not None}
    return {
        "package": package,
        "package_version": version(package),
        "options": dict(options),
        **known,
    }


def rmse(y: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """Root mean squared error.

    Examples
    --------
    >>> rmse(np.array([1.0, 2.0]), np.array([1.0, 4.0])).__round__(4)
    1.4142
    """
    return float(np.sqrt(np.mean((y - predicted) ** 2)))


def draw_rows(n_rows: int, max_rows: int, seed: int) -> NDArray[np.int64]:
    """At most `max_rows` rows, drawn without replacement, in their order.

    Examples
    --------
    >>> len(draw_rows(10, 4, seed=0)), len(draw_rows(3, 4, seed=0))
    (4, 3)
    """
    if n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:max_rows])


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    """Let torch use so many cores, and no more after that than before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
