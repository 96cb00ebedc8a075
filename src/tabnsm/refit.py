"""Refit: a fitted model that goes on with new rows, and keeps what it knows of the old ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from tabnsm.blend import BlendFit
from tabnsm.columns import EncodedTable, TableEncoder
from tabnsm.columns.encoded import join_tables
from tabnsm.columns.extending import ExtendedEncoder, extend_encoder
from tabnsm.errors import InvalidDataError, InvalidOptionError, warn
from tabnsm.intervals import Calibration, seconds_after_training
from tabnsm.nn.ensemble import join_networks, networks_of
from tabnsm.nn.extending import extend_network
from tabnsm.options import Options, check_run_options, resolve_options
from tabnsm.prediction import resolve_device
from tabnsm.replay import ReplayRows
from tabnsm.tables import Table
from tabnsm.target import TargetModel, Targets
from tabnsm.training.budget import TimeBudget
from tabnsm.training.callbacks import CallbackList
from tabnsm.training.checkpoint import locked_folder
from tabnsm.training.ensemble import EnsembleTraining
from tabnsm.training.history import ValidationScores
from tabnsm.training.network import make_trainer, new_network
from tabnsm.training.prepare import FitRows, PreparedFit, Validation
from tabnsm.training.progress import TrainingProgress
from tabnsm.training.rows import TrainingData, split_rows, usable_rows

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor

LEARNING_RATE_SHARE, BATCH_FACTOR = 0.5, 2
"""Of the learning rate of a fit, what a refit begins with; its batches are larger."""
MAX_REPLAY_SHARE = 0.5
"""Most of the weight in the loss that rows of earlier fits have together."""
MIN_REPLAYED = 500
"""Rows of earlier fits that are trained on; as many as new ones, if these are more."""
STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far to go from the earlier weights to the trained ones."""
TOLERANCE = 1.005
"""Validation score, over the best of these steps, up to which the shortest step is taken."""
UNCHANGED = (
    "Training on the new rows lowers the validation score by less than half a percent, so the "
    "weights stay as they were. If these rows should count for more, validate on newer ones "
    "(X_val and y_val, or validation_time), or fit with warm_start=True."
)

NO_WORK_DIR = (
    "work_dir is for the first fit and was not used: a second fit with warm_start=True encodes its "
    "rows in memory. If they do not fit into it, set warm_start=False."
)


@dataclass(frozen=True, eq=False)
class PreparedRefit:
    """All that a refit needs.

    Parameters
    ----------
    prepared : PreparedFit
        With rows of earlier fits to train on.
    data : TrainingData
        The same without rows whose targets the model has predicted.
    earlier : ReplayRows or None
        Rows of earlier fits in the new encoding.
    """

    prepared: PreparedFit
    data: TrainingData
    earlier: ReplayRows | None


def refit_model(
    model: FittedRegressor,
    X: Any,
    y: Any,
    sample_weight: Any,
    validation: Validation,
    *,
    X_old: Any = None,
    y_old: Any = None,
    warm_start: bool = False,
    resume: bool = False,
    work_dir: str | Path | None = None,
    callbacks: CallbackList | None = None,
) -> None:
    """Train a fitted model further; arguments as in `TabNSMRegressor.refit`.

    With `warm_start`, as a second `fit` does: the columns stay, the rate is that of a fit, and
    the weights may go as far as they like.
    """
    params: dict[str, Any] = model.get_params(deep=False)
    options = resolve_options(params)
    budget = TimeBudget(options.training.time_limit)
    folder = params["checkpoint_dir"] if warm_start else None
    check_run_options(params["verbose"], params["n_jobs"], resume, folder)
    device = resolve_device(params["device"])
    _check_old(X_old, y_old)
    if warm_start:
        _check_options(model, params, options)
    with locked_folder(folder):
        rows = FitRows.collect(X, y, sample_weight, validation, params["random_state"])
        if warm_start:
            _check_columns(model, rows.table)
        refit = prepare_refit(model, rows, options, X_old, y_old, warm_start)
        prepared = refit.prepared
        further = None if model.blend_ is None else BlendFit(prepared, budget)
        training = EnsembleTraining(prepared, device, budget, params["n_jobs"])
        with (
            TrainingProgress.of(prepared.options.training, params["verbose"]) as progress,
            budget.reserved(seconds_after_training(prepared, budget)),
        ):
            training.train(folder, resume, progress, callbacks)
    scores, is_unchanged = None, False
    if not warm_start:
        scores, is_unchanged = _stay_near(training, prepared)
    known_calibration = model.calibration_
    # Calibrations know features by their places.
    is_unchanged &= further is None and _encodes_alike(model.encoder_, prepared.encoder)
    # Targets that the model has predicted itself tell nothing of its errors.
    known = replace(prepared, data=refit.data)
    model._keep(rows.table, known, training, further, rows.groups, refit.earlier)
    if known_calibration is not None:
        _keep_calibration(model, known_calibration, is_unchanged, training.messages)
    specs = prepared.encoder.specs
    model.n_features_in_ = len(specs)
    if hasattr(model, "feature_names_in_"):
        model.feature_names_in_ = np.array([spec.name for spec in specs], dtype=object)
    if scores is not None and further is None:
        model.validation_rmse_ = scores.rmse
        model.best_score_ = getattr(scores, prepared.options.training.eval_metric)
    if callbacks is not None:
        callbacks.on_end(model)
    if work_dir is not None:
        training.messages.append(NO_WORK_DIR)
    for message in training.messages:
        warn(message)


def prepare_refit(
    model: FittedRegressor,
    rows: FitRows,
    options: Options,
    X_old: Any,
    y_old: Any,
    warm_start: bool,
) -> PreparedRefit:
    """Rows encoded as the model knows them, and weights that fit what is new."""
    target = Targets(rows.target, rows.target_names)
    values = target.in_order(model.target_.names, model.target_.n_targets, "y").values
    fit_rows = np.flatnonzero(~rows.held_out)
    extended = extend_encoder(model.encoder_, rows.table, fit_rows)
    data = _encoded_rows(rows, values, extended)
    if X_old is not None:
        data = _with_old_rows(data, model, extended, X_old, y_old)
    target_model = _extended_target(model.target_, extended)
    data = replace(
        data,
        train_target=_residual(target_model, data.train_target, data.train),
        validation_target=_residual(target_model, data.validation_target, data.validation),
    )
    own, earlier = data, None
    if X_old is None and not warm_start:
        earlier = _earlier_rows(model)
    if earlier is not None:
        data = _with_replay(data, model, earlier, extended, target_model)
        earlier = earlier.extended(extended)
    scalers = [
        scaler.widened(column[~np.isnan(column)])
        for scaler, column in zip(target_model.scalers, data.train_target.T, strict=True)
    ]
    target_model = replace(target_model, scalers=tuple(scalers))
    networks = networks_of(model.model_)
    rate = options.training.learning_rate * (1.0 if warm_start else LEARNING_RATE_SHARE)
    n_rows = data.train.n_rows * (1 if warm_start else BATCH_FACTOR)
    training = replace(
        options.training,
        n_ensemble=len(networks),
        learning_rate=rate,
        batch_size=options.training.resolved_batch_size(n_rows),
    )
    prepared = PreparedFit(
        extended.encoder,
        data,
        target_model,
        replace(model.options_, training=training),
        rows.seed,
        rows.generator_state,
    )
    prepared = replace(prepared, start=_start(model, prepared, extended))
    return PreparedRefit(prepared, own, earlier)


def _encodes_alike(one: TableEncoder, other: TableEncoder) -> bool:
    return (one.feature_names, one.category_sizes) == (other.feature_names, other.category_sizes)


def _keep_calibration(
    model: FittedRegressor, known: Calibration, is_unchanged: bool, messages: list[str]
) -> None:
    """Keep the calibration of weights that did not change; else report a lower highest level."""
    if is_unchanged or model.calibration_ is None:
        model.calibration_ = known
        return
    before, after = known.max_confidence, model.calibration_.max_confidence
    if after < before:
        messages.append(
            "Intervals are now calibrated on the validation rows of the new rows, so the highest "
            f"confidence level is {after:.3g}; it was {before:.3g}. For a higher one, pass more "
            "rows to validate on (X_val and y_val), or a larger validation_fraction."
        )


def _check_old(X_old: Any, y_old: Any) -> None:
    if (X_old is None) != (y_old is None):
        given = "X_old" if y_old is None else "y_old"
        raise InvalidOptionError(f"X_old and y_old must be given together, got only {given}.")


def _check_options(model: FittedRegressor, params: dict[str, Any], options: Options) -> None:
    """Refuse options that a second `fit` with warm_start would not follow."""
    fitted, given = model.options_.to_dict(), options.to_dict()
    pairs = {
        name: (fitted[part][name], value)
        for part in ("architecture", "encoder", "target", "objective", "rise")
        for name, value in given[part].items()
        if name in params and name not in ("verbose", "text_cache")
    }
    pairs["n_ensemble"] = (fitted["training"]["n_ensemble"], options.training.n_ensemble)
    is_blend = model.blend_ is not None
    if is_blend != (params["preset"] == "best"):
        pairs["preset"] = ("best" if is_blend else "another than 'best'", params["preset"])
    # What is left to the data was settled by the first fit.
    wrong = [name for name, (known, new) in pairs.items() if new not in (known, None, "auto")]
    if wrong:
        known, new = pairs[wrong[0]]
        more = f" ({len(wrong) - 1} more: {', '.join(wrong[1:])})" if wrong[1:] else ""
        raise InvalidOptionError(
            f"With warm_start=True a second fit keeps {wrong[0]} of the first, which is {known!r}, "
            f"got {new!r}{more}. Set it back, or set warm_start=False to fit anew."
        )


def _check_columns(model: FittedRegressor, table: Table) -> None:
    """A second `fit` with warm_start goes on with the same columns."""
    model.encoder_.match(table)  # complains of missing ones
    known = {spec.name for spec in model.encoder_.specs}
    new = [name for name in table.names if name not in known]
    if table.has_names and hasattr(model, "feature_names_in_") and new:
        raise InvalidDataError(
            f"With warm_start=True a second fit needs the columns of the first, got {new[0]!r} "
            f"({len(new)} new). Use refit, which takes new columns, or set warm_start=False."
        )


def _encoded_rows(
    rows: FitRows, target: NDArray[np.float64], extended: ExtendedEncoder
) -> TrainingData:
    encoded = extended.encoder.transform(rows.table)
    if rows.given is None:
        return split_rows(encoded, target, rows.weight, rows.held_out)
    given, given_target = rows.given
    known = extended.encoder.transform(given)
    return TrainingData(encoded, target, rows.weight, known, given_target, None)


def _with_old_rows(
    data: TrainingData, model: FittedRegressor, extended: ExtendedEncoder, X_old: Any, y_old: Any
) -> TrainingData:
    """Rows of an earlier fit beside the new ones to train on.

    The model knows them already, so that none of them validates.
    """
    table, targets, _, _ = usable_rows(X_old, y_old, None, "X_old", must_vary=False)
    target = targets.in_order(model.target_.names, model.target_.n_targets, "y_old").values
    weight = data.train_weight
    if weight is not None:
        weight = np.concatenate([weight, np.full(len(target), weight.mean())])
    return replace(
        data,
        train=join_tables(data.train, extended.encoder.transform(table)),
        train_target=np.concatenate([data.train_target, target]),
        train_weight=weight,
    )


def _earlier_rows(model: FittedRegressor) -> ReplayRows | None:
    """The rows that the model keeps of its fits, if any."""
    if model.replay_ is None:
        warn(
            "The model keeps no rows of its fit, because its file was saved without them or by an "
            "earlier version: what the new rows lack may be forgotten. Pass rows of the fit as "
            "X_old and y_old if they are at hand."
        )
    return model.replay_


def _with_replay(
    data: TrainingData,
    model: FittedRegressor,
    earlier: ReplayRows,
    extended: ExtendedEncoder,
    target: TargetModel,
) -> TrainingData:
    """Kept rows beside the new ones, with what the model predicts for them as targets."""
    n_new = data.train.n_rows
    n_rows = earlier.table.n_rows
    if model.blend_ is None:  # its trees begin anew and need all that there are
        n_rows = min(n_rows, max(n_new, MIN_REPLAYED))
    chosen = torch.from_numpy(np.random.default_rng(0).permutation(earlier.table.n_rows)[:n_rows])
    labels = model.predict_encoded(earlier.rows().take(chosen))
    table = earlier.extended(extended).rows().take(chosen)
    weight = np.ones(n_new) if data.train_weight is None else data.train_weight
    share = min(earlier.n_fitted / (earlier.n_fitted + n_new), MAX_REPLAY_SHARE)
    each = weight.sum() * share / (1 - share) / n_rows
    return replace(
        data,
        train=join_tables(data.train, table),
        train_target=np.concatenate([data.train_target, _residual(target, labels, table)]),
        train_weight=np.concatenate([weight, np.full(n_rows, each)]),
    )


def _extended_target(target: TargetModel, extended: ExtendedEncoder) -> TargetModel:
    sizes, place_of = extended.encoder.category_sizes, extended.place_of
    fits = [
        None if linear is None else linear.extended(sizes, place_of, extended.code_of)
        for linear in target.linear_fits
    ]
    return replace(target, linear_fits=tuple(fits))


def _residual(
    target: TargetModel, values: NDArray[np.float64], table: EncodedTable
) -> NDArray[np.float64]:
    """What the linear fits leave of targets, (n, t)."""
    columns = [
        column if linear is None else column - linear.predict(table)
        for column, linear in zip(values.T, target.linear_fits, strict=True)
    ]
    return np.stack(columns, axis=1)


def _start(
    model: FittedRegressor, prepared: PreparedFit, extended: ExtendedEncoder
) -> tuple[dict[str, Tensor], ...]:
    """The weights of each network, with room for what is new."""
    start = []
    for number, network in enumerate(networks_of(model.model_)):
        generator = Generator().manual_seed(prepared.seed + number)
        begun = new_network(prepared, generator, torch.device("cpu"))
        known = network.cpu()
        start.append(extend_network(known, begun, extended.place_of, extended.code_of))
    return tuple(start)


@torch.no_grad()
def _stay_near(training: EnsembleTraining, prepared: PreparedFit) -> tuple[ValidationScores, bool]:
    """Go back towards the earlier weights as far as the validation rows do not mind.

    Of the points between the earlier and the trained weights, the one nearest to the earlier is
    taken whose score is within half a percent of the best. So a refit whose rows tell nothing new
    leaves the model as it was; the second value returned is whether this one does.
    """
    pairs = list(zip(training.models, training.numbers, strict=True))
    trained = [{k: v.clone() for k, v in network.state_dict().items()} for network, _ in pairs]

    def go(share: float) -> None:
        for (network, number), weights in zip(pairs, trained, strict=True):
            start = prepared.start[number]
            network.load_state_dict(
                {k: torch.lerp(start[k].to(v.device), v, share) for k, v in weights.items()}
            )

    trainer = make_trainer(prepared, training.device)
    scores = {}
    for share in STEPS:
        go(share)
        scores[share] = trainer.evaluate(join_networks(training.models))
    best = min(found.score for found in scores.values())
    share = next(step for step in STEPS if scores[step].score <= TOLERANCE * best)
    go(share)
    if share == 0:
        training.messages.append(UNCHANGED)
    return scores[share], share == 0
