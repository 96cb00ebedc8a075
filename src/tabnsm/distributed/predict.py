"""predict: a table of any size through a Ray cluster, to Parquet files."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tabnsm.distributed.cluster import cluster, failure
from tabnsm.distributed.storage import absolute
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.estimator import TabNSMRegressor
from tabnsm.rules import is_integer, require
from tabnsm.tables.dataset import open_dataset

BATCH_ROWS = 10_000
_CPUS = 0.5  # two workers of a whole core each would leave nothing of two cores to read files


def predict(
    model: TabNSMRegressor | str | Path,
    dataset: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    num_workers: int = 2,
    use_gpu: bool = False,
    keep: Sequence[str] = (),
    ray_address: str | None = None,
) -> None:
    """Predict the rows of Parquet files on a Ray cluster, and write Parquet files.

    Each row has the bits that ``model.predict`` gives it, in the column "prediction", or, of
    several targets, in columns such as "prediction_price". The order of rows within a file is that
    of the dataset; the files' names are Ray's.

    Parameters
    ----------
    model : TabNSMRegressor, str or Path
        A fitted model, or the file of one.
    dataset : str, Path or sequence of them
        Parquet files, folders or patterns of them, or URIs, that all machines reach.
    out : str or Path
        Folder or URI to write to, new or empty; all machines must reach it.
    num_workers : int, default 2
        Each has a copy of the model.
    use_gpu : bool, default False
        Whether each worker has a GPU of its own; untested for lack of one.
    keep : sequence of str, default ()
        Columns of the dataset to write beside the predictions, such as a key.
    ray_address : str or None, default None
        As in `fit`.
    """
    require(is_integer(num_workers, 1), "num_workers must be an integer >= 1", num_workers)
    content, known = _model_bytes(model)
    _check_kept(keep, known.target_.prediction_names)
    files = _find_files(dataset, known, keep)
    folder = Path(absolute(out))
    if "://" not in str(out) and folder.exists() and (folder.is_file() or any(folder.iterdir())):
        raise InvalidOptionError(f"out must be a new or empty folder, got {str(out)!r}.")
    with cluster(ray_address, num_workers, _CPUS, float(use_gpu)) as ray:
        import ray.data as ray_data

        ray_data.DataContext.get_current().enable_progress_bars = False
        try:
            rows = ray_data.read_parquet(files)
            _check_columns(rows.columns() or [], known, keep, str(dataset))
            rows.map_batches(
                Predictor,
                fn_constructor_args=(ray.put(content), tuple(keep), use_gpu),
                # As many as there is work for.
                compute=ray_data.ActorPoolStrategy(min_size=1, max_size=num_workers),
                batch_size=BATCH_ROWS,
                batch_format="pyarrow",
                num_cpus=_CPUS,
                num_gpus=int(use_gpu),
            ).write_parquet(absolute(out))
        except (ray.exceptions.RayError, OSError) as error:
            with suppress(OSError):
                folder.rmdir()  # unless some rows were written
            remedy = "If out has files, remove them before you try again."
            raise failure(error, remedy, "Prediction") from error


class Predictor:
    """A worker: a loaded model that predicts batches.

    Parameters
    ----------
    content : ObjectRef of bytes
        The model's file.
    keep : tuple of str
        Columns to pass on.
    use_gpu : bool
    """

    def __init__(self, content: Any, keep: tuple[str, ...], use_gpu: bool) -> None:
        import ray

        self.keep = keep
        with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
            file.write(ray.get(content))
            file.flush()
            device = "auto" if use_gpu else "cpu"
            self.model = TabNSMRegressor.load(file.name, device=device)

    def __call__(self, batch: Any) -> Any:
        """Predictions of a pyarrow table, after the columns that are kept."""
        import pyarrow as pa

        predicted = self.model.predict(batch)
        names = self.model.target_.prediction_names
        columns = predicted.reshape(len(predicted), -1).T
        found = {name: batch.column(name) for name in self.keep}
        return pa.table(found | dict(zip(names, map(pa.array, columns), strict=True)))


def _check_kept(keep: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse a column that a prediction would replace."""
    require(not isinstance(keep, str), "keep must be a sequence of names", keep)
    for name in keep:
        if name in outputs:
            raise InvalidOptionError(
                f"keep must not name a column of the predictions, got {name!r}. Rename that "
                "column of dataset, or leave it out."
            )


def _find_files(dataset: Any, model: TabNSMRegressor, keep: Sequence[str]) -> list[str]:
    """Files and URIs of a dataset; the columns of files are checked, of URIs once Ray runs."""
    rule = "dataset must be one or several paths or URIs of Parquet files"
    paths = [dataset] if isinstance(dataset, str | Path) else dataset
    require(isinstance(paths, Sequence) and len(paths) > 0, rule, dataset)
    files = []
    for path in paths:
        require(isinstance(path, str | Path) and str(path) != "", rule, path)
        if "://" in str(path):
            files.append(str(path))
            continue
        source = open_dataset(path)
        found = [stamp.path for stamp in source.stamps]
        others = [file for file in found if not file.lower().endswith(".parquet")]
        require(not others, rule, others[0] if others else None)
        _check_columns(source.names, model, keep, str(path))
        files += found
    return files


def _check_columns(
    names: Sequence[str], model: TabNSMRegressor, keep: Sequence[str], dataset: str
) -> None:
    """Refuse files without a column that the model or `keep` needs."""
    for name in keep:
        if name not in names:
            raise InvalidOptionError(f"keep must name columns of dataset, got {name!r}.")
    absent = [name for name in getattr(model, "feature_names_in_", ()) if name not in names]
    if absent:
        raise InvalidDataError(
            f"dataset must have the columns that the model was fitted on, but {dataset} has no "
            f"column {absent[0]!r}. Add it; its values may be missing."
        )


def _model_bytes(model: TabNSMRegressor | str | Path) -> tuple[bytes, TabNSMRegressor]:
    """The file of a model, and the model."""
    if isinstance(model, str | Path):
        known = TabNSMRegressor.load(model, device="cpu")
        return Path(model).read_bytes(), known
    with tempfile.TemporaryDirectory(prefix="tabnsm-") as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        return path.read_bytes(), model
