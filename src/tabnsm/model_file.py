"""Saved models: everything that predicts, in one safetensors file."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from tabnsm._version import __version__
from tabnsm.blend import Blend
from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.container import read_container, write_container
from tabnsm.earlier import MISSING_OPTIONS, rename_tensor, upgrade_meta
from tabnsm.errors import ModelFileError, TabNSMError
from tabnsm.files.output_path import check_model_ending
from tabnsm.intervals import Calibration
from tabnsm.nn.ensemble import join_networks, networks_of
from tabnsm.nn.model import TabNSM
from tabnsm.options import plain_value, resolve_options
from tabnsm.precision import StoredDtype, check_dtype, pack_weights, unpack_weights
from tabnsm.replay import ReplayRows
from tabnsm.target import TargetModel
from tabnsm.training.history import History

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor
    from tabnsm.text import TextEncoder

Model = TypeVar("Model", bound="FittedRegressor")
FORMAT_VERSION = 8
"""1 holds one network; 1 and 2 know no linear part; 1 to 3 no number formats, no eval_metric;
1 to 4 no blend; 1 to 5 no calibration of intervals, only float32 weights, no columns that may be
absent; 1 to 6 no rows of the fit, no places of codes in categories; 1 to 7 no
days that recur."""


def save_model(
    estimator: FittedRegressor,
    path: str | Path,
    dtype: StoredDtype = "float32",
    keep_rows: bool = True,
) -> None:
    """Write a fitted estimator to `path`."""
    check_model_ending(path)
    check_dtype(dtype)
    encoder_tensors, encoder_meta = estimator.encoder_.to_state()
    options = estimator.options_.to_dict()
    # How much a fit prints is no property of the model.
    del encoder_meta["config"]["verbose"], options["encoder"]["verbose"]
    weights = pack_weights(estimator.model_.state_dict(), dtype)
    n_networks = len(networks_of(estimator.model_))
    tensors = {f"model.{name}": tensor for name, tensor in weights.items()}
    tensors |= {f"encoder.{name}": tensor for name, tensor in encoder_tensors.items()}
    target_tensors, target_meta = estimator.target_.to_state()
    tensors |= {f"target.{name}": tensor for name, tensor in target_tensors.items()}
    blend_meta = None
    if estimator.blend_ is not None:
        blend_tensors, blend_meta = estimator.blend_.to_state()
        tensors |= {f"blend.{name}": tensor for name, tensor in blend_tensors.items()}
    calibration_meta = None
    if estimator.calibration_ is not None:
        arrays, calibration_meta = estimator.calibration_.to_state()
        tensors |= {f"calibration.{name}": tensor for name, tensor in arrays.items()}
    replay_meta = None
    if estimator.replay_ is not None and keep_rows:
        arrays, replay_meta = estimator.replay_.to_state()
        tensors |= {f"replay.{name}": tensor for name, tensor in arrays.items()}
    names = getattr(estimator, "feature_names_in_", None)
    meta = {
        "kind": "model",
        "format_version": FORMAT_VERSION,
        "tabnsm_version": __version__,
        "params": _plain_params(estimator),
        "options": options,
        "encoder": encoder_meta,
        "target": target_meta,
        "blend": blend_meta,
        "calibration": calibration_meta,
        "replay": replay_meta,
        "n_networks": n_networks,
        "weights_dtype": dtype,
        "history": estimator.history_.to_dict(),
        "further_histories": [history.to_dict() for history in estimator.histories_[1:]],
        "validation_rmse": estimator.validation_rmse_,
        "best_score": estimator.best_score_,
        "feature_importances": _importances(estimator),
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": None if names is None else list(names),
    }
    write_container(path, tensors, meta)


def load_model(
    cls: type[Model],
    path: str | Path,
    device: torch.device,
    text_encoder: str | TextEncoder | None,
) -> Model:
    """Read an estimator from `path`, without pickle."""
    tensors, meta = read_container(path)
    check_meta(path, meta)
    try:
        tensors = {rename_tensor(name): tensor for name, tensor in tensors.items()}
        estimator = _restore(cls, tensors, upgrade_meta(meta), text_encoder)
    except TabNSMError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, RuntimeError) as error:
        raise ModelFileError(
            f"{path} must hold all parts of a saved model, but they do not fit together "
            f"({type(error).__name__}: {_first_line(error)}). Save the model again."
        ) from error
    estimator.model_.to(device)
    return estimator


def _restore(
    cls: type[Model],
    tensors: dict[str, torch.Tensor],
    meta: dict[str, Any],
    text_encoder: str | TextEncoder | None,
) -> Model:
    estimator = cls(**meta["params"] | {"verbose": 0})
    options: dict[str, dict[str, Any]] = meta["options"]
    flat: dict[str, Any] = dict(MISSING_OPTIONS)
    flat |= {name: value for part in options.values() for name, value in part.items()}
    flat["verbose"] = 0  # files of earlier versions say how much their fit printed
    if text_encoder is not None:
        estimator.set_params(text_encoder=text_encoder)
        flat["text_encoder"] = text_encoder
    estimator.options_ = resolve_options(flat)
    estimator.encoder_ = TableEncoder.from_state(
        _part(tensors, "encoder."),
        meta["encoder"] | {"config": _encoder_options(meta["encoder"]["config"])},
        text_encoder=text_encoder,
    )
    category_sizes = estimator.encoder_.category_sizes
    estimator.target_ = TargetModel.from_state(
        _part(tensors, "target."), meta["target"], category_sizes
    )
    estimator.blend_ = _restore_blend(tensors, meta, category_sizes)
    estimator.calibration_ = _restore_calibration(tensors, meta, category_sizes)
    replay = meta.get("replay")
    estimator.replay_ = replay and ReplayRows.from_state(_part(tensors, "replay."), replay)
    model = join_networks(
        [
            TabNSM(
                estimator.encoder_.n_features,
                category_sizes=category_sizes,
                bins=estimator.encoder_.bins,
                n_targets=estimator.target_.n_targets,
                **asdict(estimator.options_.architecture),
            )
            for _ in range(meta["n_networks"])
        ]
    )
    model.load_state_dict(unpack_weights(_part(tensors, "model.")))
    estimator.model_ = model.eval()
    _restore_records(estimator, meta)
    return estimator


def _restore_records(estimator: FittedRegressor, meta: dict[str, Any]) -> None:
    """Set what the file tells of the fit: histories, scores, importances and names."""
    histories = [meta["history"], *meta.get("further_histories", ())]
    estimator.histories_ = tuple(History.from_dict(history) for history in histories)
    # Models of earlier versions have one network and say how it validated in its history.
    estimator.validation_rmse_ = meta.get(
        "validation_rmse", estimator.history_.best.validation_rmse
    )
    estimator.best_score_ = meta.get("best_score", estimator.validation_rmse_)
    if meta.get("feature_importances") is not None:  # earlier versions did not compute them
        estimator.feature_importances_ = np.array(meta["feature_importances"])
    estimator.n_features_in_ = meta["n_features_in"]
    if estimator.target_.names is not None:
        estimator.target_names_ = np.array(estimator.target_.names, dtype=object)
    if meta["feature_names_in"] is not None:
        estimator.feature_names_in_ = np.array(meta["feature_names_in"], dtype=object)


def _restore_blend(
    tensors: dict[str, torch.Tensor], meta: dict[str, Any], category_sizes: tuple[int, ...]
) -> Blend | None:
    blend = meta.get("blend")
    return blend and Blend.from_state(_part(tensors, "blend."), blend, category_sizes)


def _restore_calibration(
    tensors: dict[str, torch.Tensor], meta: dict[str, Any], category_sizes: tuple[int, ...]
) -> Calibration | None:
    entries = meta.get("calibration")
    part = _part(tensors, "calibration.")
    return None if entries is None else Calibration.from_state(part, entries, category_sizes)


def _encoder_options(config: dict[str, Any]) -> dict[str, Any]:
    known = {field.name for field in fields(EncoderConfig)}
    earlier = {name: value for name, value in MISSING_OPTIONS.items() if name in known}
    return earlier | config | {"verbose": 0}


def check_meta(path: str | Path, meta: dict[str, Any]) -> None:
    """Refuse metadata that is not a saved model's, or is of a newer format."""
    if meta.get("kind") != "model":
        raise ModelFileError(
            f"{path} holds a {meta.get('kind')}, not a saved model. "
            "Give a file made by TabNSMRegressor.save."
        )
    if not isinstance(meta.get("format_version"), int):
        raise ModelFileError(
            f"{path} must name its file format by an integer, got {meta.get('format_version')!r}. "
            "Give a file made by TabNSMRegressor.save."
        )
    if meta["format_version"] > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by a newer tabnsm (file format {meta['format_version']}, this "
            f'version reads up to {FORMAT_VERSION}). Update with: pip install -U "tabnsm"'
        )


def _plain_params(estimator: FittedRegressor) -> dict[str, Any]:
    """Constructor options as JSON; objects are stored by what they can be told by."""
    params = {k: plain_value(v) for k, v in estimator.get_params(deep=False).items()}
    if not isinstance(params["text_encoder"], str):
        params["text_encoder"] = params["text_encoder"].name
    del params["verbose"], params["n_jobs"]
    params["device"] = str(params["device"])
    if params["checkpoint_dir"] is not None:
        params["checkpoint_dir"] = str(params["checkpoint_dir"])
    if params["column_kinds"] is not None:
        params["column_kinds"] = dict(params["column_kinds"])
    if not isinstance(params["random_state"], int | None):
        params["random_state"] = None
    return params


def _importances(estimator: FittedRegressor) -> list[float] | None:
    found = getattr(estimator, "feature_importances_", None)
    return None if found is None else found.tolist()


def _part(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]
