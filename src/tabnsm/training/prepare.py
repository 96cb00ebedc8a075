"""The one way into a fit: rows checked, split and encoded, the target and the options prepared."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tabnsm.columns import EncodedTable, EncoderConfig, TableEncoder, warn_about_columns
from tabnsm.errors import InvalidOptionError, warn
from tabnsm.sklearn_base import check_random_state
from tabnsm.tables import Table
from tabnsm.tables.dataset import is_dataset
from tabnsm.target import LinearFit, TargetModel, TargetRows, linear_residual
from tabnsm.text.embedding import SecondsLeft
from tabnsm.training.mapped import encode_mapped
from tabnsm.training.memory import check_memory
from tabnsm.training.named import read_named
from tabnsm.training.noise import explained_share
from tabnsm.training.rows import (
    TrainingData,
    check_trained,
    split_rows,
    usable_rows,
    validation_rows,
)
from tabnsm.training.split import row_labels, validation_mask
from tabnsm.work_folder import WorkFolder

if TYPE_CHECKING:
    from tabnsm.options import Options
    from tabnsm.training.budget import TimeBudget


EncodeDataset = Callable[
    ["FitRows", WorkFolder, EncoderConfig, SecondsLeft | None], tuple[TableEncoder, TrainingData]
]
encode_dataset: ContextVar[EncodeDataset] = ContextVar("encode_dataset", default=encode_mapped)
"""What encodes a dataset: this process, or a cluster."""


@dataclass(frozen=True, eq=False)
class Validation:
    """How a fit validates: on rows of the user's own, on groups, on the latest, or at random.

    Parameters
    ----------
    X_val, y_val, validation_groups, validation_time
        As in `TabNSMRegressor.fit`.
    validation_fraction : float, default 0.1

    Examples
    --------
    >>> Validation(X_val=[[1.0]])
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: X_val and y_val must be given together, got only X_val.
    """

    X_val: Any = None
    y_val: Any = None
    validation_groups: Any = None
    validation_time: Any = None
    validation_fraction: float = 0.1

    def __post_init__(self) -> None:
        if (self.X_val is None) != (self.y_val is None):
            given = "X_val" if self.y_val is None else "y_val"
            raise InvalidOptionError(f"X_val and y_val must be given together, got only {given}.")
        ways = ("X_val", "validation_groups", "validation_time")
        given_ways = [name for name in ways if getattr(self, name) is not None]
        if len(given_ways) > 1:
            raise InvalidOptionError(
                f"Only one way to validate can be used, got {' and '.join(given_ways)}."
            )
        fraction: object = self.validation_fraction
        if not (isinstance(fraction, Real) and 0 < float(fraction) < 1):
            raise InvalidOptionError(
                f"validation_fraction must be > 0 and < 1, got {fraction!r}. "
                "Pass X_val and y_val to validate on rows of your own."
            )

    def mask(self, kept: np.ndarray, generator: torch.Generator) -> np.ndarray:
        """Which of the kept rows validate, by one of the ways other than `X_val`."""
        groups, times = (
            None if values is None else row_labels(values, len(kept), name)[kept]
            for name, values in (
                ("validation_groups", self.validation_groups),
                ("validation_time", self.validation_time),
            )
        )
        n_rows = int(kept.sum())
        return validation_mask(n_rows, self.validation_fraction, generator, groups, times)


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """All that training needs.

    Parameters
    ----------
    encoder : TableEncoder
    data : TrainingData
        With the residuals of the target's linear fits in place of targets.
    target : TargetModel
    options : Options
        Without "auto" where a number is used.
    seed : int
        Of the first network; the others' follow from it.
    generator_state : Tensor
        Where the random numbers of the first network begin.
    start : tuple of dict of str to Tensor
        Weights that each network begins with; empty where they are drawn.
    """

    encoder: TableEncoder
    data: TrainingData
    target: TargetModel
    options: Options
    seed: int
    generator_state: torch.Tensor
    start: tuple[dict[str, torch.Tensor], ...] = ()

    def generator(self) -> torch.Generator:
        """A generator of random numbers that begins where the split has ended."""
        generator = torch.Generator()
        generator.set_state(self.generator_state)
        return generator


@dataclass(frozen=True, eq=False)
class FitRows:
    """Checked and split rows of a fit, or of many fits with different options.

    Parameters
    ----------
    table : Table
        Rows to train on, and those that are held out.
    target : ndarray of float64, shape (n, t)
        NaN where missing, which no row is as a whole.
    weight : ndarray of float64, shape (n,), or None
    held_out : ndarray of bool, shape (n,)
        Rows of `table` to validate on.
    given : tuple of Table and ndarray, or None
        The user's own rows to validate on.
    seed : int
    generator_state : Tensor
        Of the random numbers after the split.
    target_names : tuple of str or None
    groups : ndarray of int, shape (n_held_out,), or None
        Of the held-out rows, where whole groups are held out.
    """

    table: Table
    target: np.ndarray
    weight: np.ndarray | None
    held_out: np.ndarray
    given: tuple[Table, np.ndarray] | None
    seed: int
    generator_state: torch.Tensor
    target_names: tuple[str, ...] | None = None
    groups: np.ndarray | None = None
    folder: WorkFolder | None = None
    """Where the arrays of a dataset are kept; None is in memory."""
    _encoded: dict[str, tuple[TableEncoder, TrainingData]] = field(default_factory=dict)
    _shares: dict[str, float | None] = field(default_factory=dict)
    _residuals: dict[str, tuple[TrainingData, tuple[LinearFit | None, ...]]] = field(
        default_factory=dict
    )

    @classmethod
    def collect(
        cls,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        validation: Validation | None = None,
        random_state: Any = None,
        folder: WorkFolder | None = None,
    ) -> FitRows:
        """Check the rows, leave out those that teach nothing, and split them.

        Parameters
        ----------
        X, y, sample_weight
            As in `TabNSMRegressor.fit`.
        validation : Validation or None
            None holds out a tenth at random.
        random_state : int, RandomState or None
        folder : WorkFolder or None
            Where the arrays of a dataset are kept.
        """
        validation = validation or Validation()
        if is_dataset(X):
            X = Table.from_native(X).with_folder(folder)
            X, y, sample_weight, validation = read_named(X, y, sample_weight, validation)
        table, targets, weight, kept = usable_rows(X, y, sample_weight)
        given = None
        if validation.X_val is not None:
            given = validation_rows(validation.X_val, validation.y_val, table, targets)
            given = given[0].with_folder(folder), given[1]
        seed = int(check_random_state(random_state).randint(2**31))
        generator = torch.Generator().manual_seed(seed)
        held_out = np.zeros(table.n_rows, dtype=bool)
        if given is None:
            held_out = validation.mask(kept, generator)
        check_trained(targets, ~held_out)
        groups = validation.validation_groups
        if groups is not None:
            groups = row_labels(groups, len(kept), "validation_groups")[kept][held_out]
        values = targets.values if folder is None else folder.keep("target", targets.values)
        return cls(
            table,
            values,
            weight,
            held_out,
            given,
            seed,
            generator.get_state(),
            targets.names,
            groups,
            folder,
        )

    def prepare(self, options: Options, budget: TimeBudget | None = None) -> PreparedFit:
        """Encode the rows, and prepare target and options.

        Parameters
        ----------
        options : Options
        budget : TimeBudget or None
            Text that would take too long to embed is left out, and so is the linear fit where no
            time is left.
        """
        check_memory(options.architecture, options.training, self.table.n_rows)
        encoder, data = self.encode(options.encoder, budget)
        check_memory(
            options.architecture,
            options.training,
            data.train.n_rows,
            encoder.n_features,
            encoder.category_sizes,
            encoder.bins,
        )
        linear_fits: tuple[LinearFit | None, ...] = (None,) * self.target.shape[1]
        if options.target.linear_residual and (budget is None or budget.seconds_left() > 0):
            data, linear_fits = self._subtract_linear_fits(options.encoder)
        target = TargetModel.fit(
            data.train_target, data.train_weight, options.target, linear_fits, self.target_names
        )
        explained = None
        if options.objective.is_open and options.training.eval_metric == "rmse":
            explained = self._explained(options.encoder, data)
        resolved = options.for_data(data.train_target, encoder.n_features, explained)
        return PreparedFit(encoder, data, target, resolved, self.seed, self.generator_state)

    def _explained(self, config: EncoderConfig, data: TrainingData) -> float | None:
        """How much of the target can be explained; found at the first call with these options."""
        key = _key(config)
        if key not in self._shares:
            self._shares[key] = explained_share(data)
        return self._shares[key]

    def encode(
        self, config: EncoderConfig, budget: TimeBudget | None = None
    ) -> tuple[TableEncoder, TrainingData]:
        """Encoder and encoded rows; made at the first call with these options.

        Parameters
        ----------
        config : EncoderConfig
        budget : TimeBudget or None
        """
        key = _key(config)
        if key not in self._encoded:
            # The user's own validation rows have texts, too, which must be embedded afterwards.
            n_given = 0 if self.given is None else self.given[0].n_rows
            share = self.table.n_rows / (self.table.n_rows + n_given)
            seconds_left = None
            if budget is not None and budget.is_limited:
                seconds_left = lambda: share * budget.seconds_left()  # noqa: E731
            with self.table.keep_columns():
                if self.folder is None:
                    encoder, data = self._encode_in_memory(config, seconds_left)
                else:
                    encode = encode_dataset.get()
                    encoder, data = encode(self, self.folder, config, seconds_left)
                is_resumed = self.folder is not None and self.folder.is_resumed
                if not self._encoded and not is_resumed:
                    fit_rows = np.flatnonzero(~self.held_out)
                    for message in warn_about_columns(self.table, encoder, self.target, fit_rows):
                        warn(message)
            self._encoded[key] = encoder, data
        return self._encoded[key]

    def _encode_in_memory(
        self, config: EncoderConfig, seconds_left: SecondsLeft | None
    ) -> tuple[TableEncoder, TrainingData]:
        encoder = TableEncoder(config)
        fit_rows = np.flatnonzero(~self.held_out)
        encoded = encoder.fit_transform(self.table, fit_rows, seconds_left, self.target)
        if self.given is None:
            return encoder, split_rows(encoded, self.target, self.weight, self.held_out)
        given, target = self.given
        validation = encoder.transform(given)
        return encoder, TrainingData(encoded, self.target, self.weight, validation, target, None)

    def _subtract_linear_fits(
        self, config: EncoderConfig
    ) -> tuple[TrainingData, tuple[LinearFit | None, ...]]:
        """Rows with residuals in place of the targets that have a linear fit, and these fits."""
        key = _key(config)
        if key not in self._residuals:
            encoder, data = self.encode(config)
            train, validation = data.train_target.copy(), data.validation_target.copy()
            fits: list[LinearFit | None] = []
            for k in range(train.shape[1]):
                known, unknown = (np.flatnonzero(~np.isnan(y[:, k])) for y in (train, validation))
                found = linear_residual(
                    _target_rows(data.train, train, data.train_weight, known, k),
                    _target_rows(data.validation, validation, data.validation_weight, unknown, k),
                    encoder.category_sizes,
                    encoder.target_mean_features,
                )
                fits.append(None if found is None else found.fit)
                if found is not None:
                    train[known, k], validation[unknown, k] = found.train, found.validation
            if any(fit is not None for fit in fits):
                data = replace(data, train_target=train, validation_target=validation)
            self._residuals[key] = data, tuple(fits)
        return self._residuals[key]


def _target_rows(
    table: EncodedTable, target: np.ndarray, weight: np.ndarray | None, rows: np.ndarray, k: int
) -> TargetRows:
    """Rows in which target `k` is present; a table that is whole is not copied."""
    if len(rows) == len(target):
        return TargetRows(table, target[:, k].copy(), weight)
    some = table.take(torch.from_numpy(rows))
    return TargetRows(some, target[rows, k], None if weight is None else weight[rows])


def _key(config: EncoderConfig) -> str:
    return json.dumps(config.to_dict(), sort_keys=True)
