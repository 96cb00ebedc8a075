"""fit: train on a Ray cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

import torch

from tabnsm.distributed.cluster import cluster
from tabnsm.distributed.encoding import ClusterEncoding
from tabnsm.distributed.networks import NetworksTraining
from tabnsm.distributed.rows import RowsTraining
from tabnsm.distributed.storage import RunFolder
from tabnsm.errors import InvalidOptionError
from tabnsm.estimator import TabNSMRegressor
from tabnsm.options import resolve_options
from tabnsm.rules import is_finite, is_integer, require, require_one_of
from tabnsm.tables import Table
from tabnsm.tables.dataset import is_dataset
from tabnsm.training.backend import trained_by
from tabnsm.training.budget import TimeBudget
from tabnsm.training.ensemble import EnsembleTraining
from tabnsm.training.named import check_column, target_names
from tabnsm.training.network import fingerprint
from tabnsm.training.prepare import PreparedFit, encode_dataset

Parallel = Literal["auto", "networks", "rows"]


def fit(
    dataset: Any,
    target: str | Sequence[str],
    *,
    num_workers: int = 2,
    use_gpu: bool = False,
    cpus_per_worker: float = 1,
    parallel: Parallel = "auto",
    storage_path: str | Path | None = None,
    ray_address: str | None = None,
    sample_weight: str | None = None,
    X_val: Any = None,
    y_val: Any = None,
    validation_groups: str | None = None,
    validation_time: str | None = None,
    work_dir: str | Path | None = None,
    **options: Any,
) -> TabNSMRegressor:
    """Train on a Ray cluster.

    A dataset of files is encoded by the workers, each of which must reach the files, with the
    encoder that a fit on one machine has; a table in memory by this process. Then the workers
    train: each a network of the ensemble (``"networks"``), which has all encoded rows and needs
    nobody else, or all together one network after the other (``"rows"``), each on a part of the
    rows, with gradients averaged in every step. The first way is far cheaper, and its model has
    the bits of a local fit. A worker or machine that is lost is replaced up to 3 times; its
    network begins again, or goes on from the last epoch. Ctrl-C ends the work of all, and the
    same call goes on.

    Parameters
    ----------
    dataset : str, Path, pyarrow.dataset.Dataset or DataFrame
        Parquet or Arrow files, a folder or a pattern of them; or a table in memory.
    target : str or sequence of str
        Column or columns to predict.
    num_workers : int, default 2
    use_gpu : bool, default False
        Whether each worker has a GPU of its own; untested for lack of one.
    cpus_per_worker : float, default 1
        Cores that a worker asks for; it may be a part of one.
    parallel : {"auto", "networks", "rows"}, default "auto"
        "auto" trains networks side by side if the fit has more than one: `n_ensemble` of the
        default preset is 1 for tables of over 4 million encoded values.
    storage_path : str, Path or None, default None
        Folder that all machines share, or a URI such as ``s3://bucket/runs``, for what workers
        need and for the state of training after every epoch. After a failure the same call goes on
        from there, if `random_state` is a number; after success it is empty again. None is a
        temporary folder of this machine, which is enough for a cluster of one.
    ray_address : str or None, default None
        "auto" for the cluster of this machine, or host:port; None for RAY_ADDRESS, or a cluster
        on this machine that is started for this call.
    sample_weight, validation_groups, validation_time : str or None
        Columns, as the arguments of `TabNSMRegressor.fit`.
    X_val, y_val : as `dataset` and `target`, or None
        Rows to validate on.
    work_dir : str, Path or None
        As in `TabNSMRegressor.fit`, on each machine: a local disk.
    **options
        Of `TabNSMRegressor`.

    Returns
    -------
    TabNSMRegressor
        An ordinary one: it predicts, explains and saves without Ray.

    Raises
    ------
    MissingExtraError
        If Ray is not installed.
    TabNSMError
        If workers were lost too often, or the storage is full; the same call goes on.
    """
    model = TabNSMRegressor(**{"device": "cpu", **options})
    X, y, named = _columns(dataset, target, sample_weight, validation_groups, validation_time)
    _check_named(X_val, y_val, {}, "y_val")
    with on_cluster(
        num_workers, use_gpu, cpus_per_worker, parallel, storage_path, ray_address, model, work_dir
    ):
        return model.fit(X, y, **named, X_val=X_val, y_val=y_val, work_dir=work_dir)


@contextmanager
def on_cluster(
    num_workers: int,
    use_gpu: bool,
    cpus_per_worker: float,
    parallel: Parallel,
    storage_path: str | Path | None,
    ray_address: str | None,
    model: TabNSMRegressor,
    work_dir: str | Path | None = None,
) -> Iterator[None]:
    """Let the fit of `model` in this block train on a Ray cluster; arguments as in `fit`."""
    require(is_integer(num_workers, 1), "num_workers must be an integer >= 1", num_workers)
    require_one_of("parallel", parallel, ("auto", "networks", "rows"))
    is_positive = is_finite(cpus_per_worker) and cpus_per_worker > 0
    require(is_positive, "cpus_per_worker must be a number > 0", cpus_per_worker)
    resolve_options(model.get_params(deep=False))
    if storage_path is not None:
        RunFolder(storage_path, "tabnsm-check").make().remove()
    if model.checkpoint_dir is not None:
        raise InvalidOptionError(
            "checkpoint_dir must not be given: the state of training is kept in storage_path, got "
            f"{str(model.checkpoint_dir)!r}."
        )
    with ExitStack() as stack:
        ray = stack.enter_context(
            cluster(ray_address, num_workers, cpus_per_worker, float(use_gpu))
        )
        if storage_path is None:
            _check_one_machine(ray, parallel)
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="tabnsm-run-"))
        else:
            place = str(storage_path)
        runs: list[RunFolder] = []

        def make_training(
            prepared: PreparedFit,
            device: torch.device,
            budget: TimeBudget | None,
            n_jobs: int | None,
        ) -> EnsembleTraining:
            has_many = prepared.options.training.n_ensemble != 1
            kind = ("networks" if has_many else "rows") if parallel == "auto" else parallel
            runs.append(RunFolder(place, f"tabnsm-{fingerprint(prepared)[:16]}").make())
            chosen = NetworksTraining if kind == "networks" else RowsTraining
            training = chosen(prepared, device, budget, 1)
            training.num_workers, training.use_gpu = num_workers, use_gpu
            training.cpus, training.folder = cpus_per_worker, runs[-1]
            training.work_dir = work_dir
            return training

        stack.enter_context(trained_by(make_training))
        if parallel == "rows" or (parallel == "auto" and model.n_ensemble in (None, "auto", 1)):
            token = encode_dataset.set(ClusterEncoding(ray, num_workers, cpus_per_worker))
            stack.callback(encode_dataset.reset, token)
        yield
        for run in runs:
            run.remove()


def _check_one_machine(ray: Any, parallel: str) -> None:
    """Refuse to train on several machines without a place that all of them reach."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    if len({node["NodeManagerAddress"] for node in alive}) > 1 and parallel != "networks":
        raise InvalidOptionError(
            f"storage_path must be given for a cluster of {len(alive)} machines, got None. Name a "
            'folder that all of them share, or a URI, or set parallel="networks".'
        )


def _columns(
    dataset: Any, target: Any, weight: str | None, groups: str | None, times: str | None
) -> tuple[Any, Any, dict[str, Any]]:
    """Arguments of the estimator's `fit`: a dataset's columns by name, else their values."""
    named = {"sample_weight": weight, "validation_groups": groups, "validation_time": times}
    if is_dataset(dataset):
        _check_named(dataset, target, named, "target")
        return dataset, target, named
    import narwhals as nw

    frame = nw.from_native(dataset, eager_only=True)
    targets = [target] if isinstance(target, str) else list(target)
    require(len(set(targets)) == len(targets), "target must name different columns", targets)
    for name in [*targets, *(name for name in named.values() if name is not None)]:
        if name not in frame.columns:
            raise InvalidOptionError(
                f"target and the like must name columns of dataset, got {name!r}."
            )
    values = {
        option: None if name is None else frame[name].to_native() for option, name in named.items()
    }
    gone = [*targets, *(name for name in (weight, groups) if name is not None)]
    y = frame[target] if isinstance(target, str) else frame.select(targets)
    return frame.drop(gone).to_native(), y.to_native(), values


def _check_named(dataset: Any, target: Any, named: Mapping[str, str | None], option: str) -> None:
    """Refuse columns that a dataset does not have, and a dataset that cannot be read."""
    if not is_dataset(dataset):
        return
    table = Table.from_native(dataset)
    targets = target_names(target) or []
    require(len(set(targets)) == len(targets), f"{option} must name different columns", targets)
    for name in targets:
        check_column(table, name, option)
    for place, column in named.items():
        if isinstance(column, str):
            check_column(table, column, place)
