"""What a run is, what a method gets, and what it gives back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidOptionError

ENCODINGS = ("paper", "default")
_LITERALS = {"True": True, "False": False, "None": None}
# Part of every file name, so that they need not be spelled out after it.
_IN_EVERY_NAME = ("method", "dataset", "encoding", "split", "seed")


@dataclass(frozen=True)
class RunSpec:
    """One run: a method on one split of one table, with one seed.

    Parameters
    ----------
    method : str
        Key of a method, with options after it: "lightgbm", "tabnsm-default+attention=full".
        "package.module:factory" is a method of the user's own.
    dataset : str
        Key of a descriptor, or the stem of a file in the data folder.
    seed : int
        The method's own random state.
    split : int
        Random state of the test and validation rows.
    encoding : {"paper", "default"}
        Preset whose table encoder makes the arrays; "tabnsm-..." always has that of its own
        preset, whatever is given.
    target : str or None
        Column to predict, for a table without a descriptor.
    time_limit : float or None
        Seconds of fitting.
    max_rows : int or None
        Most rows that are taken of the table, before it is split.
    feature_fraction : float
        Share of the table's columns that is kept.
    sample_fraction : float
        Share of the training rows that is kept.
    max_epochs : int or None
        Most passes over the rows, for methods that have them.
    cpu_limit : float or None
        Seconds of one core for a fit of TabNSM, counted by the processor's clock, so that a busy
        machine does not shorten it; other methods take no notice.

    Examples
    --------
    >>> spec = RunSpec("ridge+alpha=2.5", "cpu_small", seed=1, max_rows=500)
    >>> spec.path("results").as_posix()
    'results/ridge+alpha=2.5/cpu_small/paper-42-1-max_rows=500.json'
    >>> spec.method_key, spec.method_options
    ('ridge', {'alpha': 2.5})
    >>> RunSpec.from_dict(spec.to_dict()) == spec
    True
    >>> RunSpec("tabnsm-default+linear_residual=false", "cpu_small").method
    'tabnsm-default+linear_residual=False'
    """

    method: str
    dataset: str
    seed: int = 0
    split: int = 42
    encoding: str = "paper"
    target: str | None = None
    time_limit: float | None = None
    max_rows: int | None = None
    feature_fraction: float = 1.0
    sample_fraction: float = 1.0
    max_epochs: int | None = None
    cpu_limit: float | None = None

    def __post_init__(self) -> None:
        """Check the values; a bad one would cost a run."""
        # One name for one method, so that it is not run once for each way to write an option.
        spelled = re.sub(
            r"=(true|false|null)(?=\+|$)", lambda m: f"={json.loads(m[1])}", self.method
        )
        object.__setattr__(self, "method", spelled)
        if self.method.startswith("tabnsm-"):
            own = "paper" if self.method_key == "tabnsm-paper" else "default"
            object.__setattr__(self, "encoding", own)
        for name in ("method", "dataset"):
            value = getattr(self, name)
            if not value or re.search(r"[\\/\0]", value) or value.startswith("."):
                raise InvalidOptionError(
                    f"{name} must be a name without slashes or a leading dot, got {value!r}."
                )
        if self.encoding not in ENCODINGS:
            raise InvalidOptionError(f"encoding must be one of {ENCODINGS}, got {self.encoding!r}.")
        for name in ("feature_fraction", "sample_fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise InvalidOptionError(
                    f"{name} must be above 0 and at most 1, got {getattr(self, name)}."
                )
        for name in ("time_limit", "max_rows", "max_epochs", "cpu_limit"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidOptionError(f"{name} must be above 0 or None, got {value}.")
        for name in ("seed", "split"):
            if not 0 <= getattr(self, name) < 2**32:
                raise InvalidOptionError(
                    f"{name} must be between 0 and 2**32 - 1, got {getattr(self, name)}."
                )

    @property
    def method_key(self) -> str:
        """The method without its options."""
        return self.method.split("+", 1)[0]

    @property
    def method_options(self) -> dict[str, Any]:
        """The method's options, values read as JSON where they are JSON, else as strings."""
        options: dict[str, Any] = {}
        for entry in self.method.split("+")[1:]:
            name, separator, text = entry.partition("=")
            if not (name and separator):
                raise InvalidOptionError(
                    f"method must look like KEY+OPTION=VALUE, got {self.method!r}."
                )
            options[name] = _value(text)
        return options

    def path(self, results_dir: str | Path) -> Path:
        """The file of this run's result; only options that are not the default are in its name.

        Parameters
        ----------
        results_dir : str or Path
            Folder of all results.

        Returns
        -------
        Path
        """
        extra = [
            f"-{field.name}={_spelled(getattr(self, field.name))}"
            for field in fields(self)
            if field.name not in _IN_EVERY_NAME and getattr(self, field.name) != field.default
        ]
        name = f"{self.encoding}-{self.split}-{self.seed}{''.join(extra)}.json"
        folder = self.method.replace(":", "__")  # no colon in names on Windows
        return Path(results_dir) / folder / self.dataset / name

    def to_dict(self) -> dict[str, Any]:
        """All fields, JSON-able."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunSpec:
        """The spec that `to_dict` gave.

        Parameters
        ----------
        values : mapping
            Fields by name; those left out have their default.

        Returns
        -------
        RunSpec
        """
        return cls(**values)


@dataclass(frozen=True)
class Part:
    """Rows of one role.

    Parameters
    ----------
    x : ndarray of float32
        Encoded features: standardised numbers, or integer codes where `category_sizes` is not 0.
    y : ndarray of float64
        Target, in its own units.

    Shape
    -----
    x : (n, D)
    y : (n,)
    """

    x: NDArray[np.float32]
    y: NDArray[np.float64]


@dataclass(frozen=True)
class Prepared:
    """One split of one table; everything that is fitted was fitted on the training rows.

    Parameters
    ----------
    train, validation, test : Part
        Rows to learn from, to choose by, and to be judged by.
    category_sizes : tuple of int
        For each feature 0 if it is a number, else the number of its codes.
    feature_names : tuple of str
        Names of the features.
    encode_seconds : float
        Time that encoding took.
    train_frame, validation_frame, test_frame : pandas.DataFrame
        The same rows as tables, without the target, for methods that encode by themselves.
    """

    train: Part
    validation: Part
    test: Part
    category_sizes: tuple[int, ...]
    feature_names: tuple[str, ...]
    encode_seconds: float
    train_frame: Any
    validation_frame: Any
    test_frame: Any


class Method(Protocol):
    """A regressor under test.

    `takes_frames` says that it encodes tables by itself. Such a method gets the three frames,
    and arrays without columns: time and memory of an encoding that it does not use would
    otherwise count against it.
    """

    @property
    def takes_frames(self) -> bool:
        """Whether the method works on the frames instead of the arrays."""

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Learn from the training rows, choose by the validation rows.

        Parameters
        ----------
        data : Prepared
            The split; the test part must not be used.
        seed : int
            Random state.
        time_limit : float or None
            Seconds after which to stop with the best so far; a method that does not stop is killed.
        n_threads : int
            Cores to use.

        Returns
        -------
        dict
            JSON-able facts: settings used, best iteration, epochs. A few names have a meaning:
            "notes", a list of sentences on anything that was cut short; "package" and
            "package_version", who provides the method; "peak_memory_mb" and "fit_cpu_seconds",
            where it ran in a process of its own; "n_features", where it encoded by itself.
        """

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict the target, in its own units.

        Parameters
        ----------
        x : ndarray of float32
            Features.
        frame : pandas.DataFrame
            The same rows as a table.

        Returns
        -------
        ndarray of float64

        Shape
        -----
        x : (n, D)
        returned : (n,)
        """


def _value(text: str) -> Any:
    if text in _LITERALS:
        return _LITERALS[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _spelled(value: Any) -> str:
    text = f"{value:.12g}" if isinstance(value, float) else str(value)
    return quote(text, safe=" ,+")  # two targets never share a name
