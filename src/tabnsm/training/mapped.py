"""Encode a dataset that is larger than memory: in passes, into files that training maps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from tabnsm.columns import EncodedTable, EncoderConfig, TableEncoder
from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.target_means import MAX_FEATURES
from tabnsm.container import read_container, write_container
from tabnsm.errors import warn
from tabnsm.rules import require
from tabnsm.tables import Table
from tabnsm.tables.dataset import is_dataset
from tabnsm.text.embedding import SecondsLeft
from tabnsm.training.pass_progress import PassProgress
from tabnsm.training.rows import TrainingData
from tabnsm.work_folder import WorkFolder, gigabytes, kept_folder, work_folder

if TYPE_CHECKING:
    from tabnsm.training.prepare import FitRows

Bools = NDArray[np.bool_]
T = TypeVar("T")

_CHUNK_BYTES = 2**24
_BYTES = 4  # of a float32


def fit_folder(
    X: Any, work_dir: str | Path | None, checkpoint_dir: str | Path | None, resume: bool
) -> AbstractContextManager[WorkFolder | None]:
    """Where the arrays of a fit are kept: None, in memory, unless `X` is a dataset.

    Parameters
    ----------
    X : table
    work_dir, checkpoint_dir, resume
        As in `TabNSMRegressor`.
    """
    if not is_dataset(X):
        rule = "work_dir is for a dataset: a path or a pyarrow.dataset.Dataset as X"
        require(work_dir is None, rule, work_dir)
        return nullcontext()
    if checkpoint_dir is not None:
        return kept_folder(work_dir, checkpoint_dir, resume)
    return work_folder(work_dir)


def encode_mapped(
    rows: FitRows, folder: WorkFolder, config: EncoderConfig, seconds_left: SecondsLeft | None
) -> tuple[TableEncoder, TrainingData]:
    """Fit an encoder column by column, and write the encoded rows to files.

    Bit for bit what is made in memory. A pass that an earlier run has finished is not done again.

    Parameters
    ----------
    rows : FitRows
        Of a dataset.
    folder : WorkFolder
    config : EncoderConfig
    seconds_left : callable or None
        Seconds left of a time limit.

    Returns
    -------
    TableEncoder, TrainingData
    """
    folder.begin(_key(rows, config))
    progress = PassProgress(config.verbose)

    def read_rows(done: dict[str, Any]) -> tuple[TableEncoder, dict[str, EncodedTable]]:
        parts = {name: _reopen(folder, name, facts) for name, facts in done.items()}
        return _load(folder, "encoder", config), parts

    earlier = _earlier(folder, "rows", read_rows)
    if earlier is not None:
        progress.note(f"The rows that an earlier run encoded in {folder.path} are used again.")
        folder.is_resumed = True
        return earlier[0], _training_data(rows, folder, earlier[1])
    _announce(rows, folder, progress)
    fit_rows = np.flatnonzero(~rows.held_out)
    encoder, texts = _fitted_columns(rows, folder, config, fit_rows, seconds_left, progress)
    folder.check_space(_bytes_needed(encoder, rows))
    with _reading(rows.table, progress, "Encoding columns"):
        encoded = encoder.encode_fitted(rows.table, texts, fit_rows, rows.target, folder)
    del fit_rows
    progress.begin("Writing rows", _n_chunks(encoded))
    if rows.given is None:
        masks: dict[str, Bools | None] = {"train": ~rows.held_out, "validation": rows.held_out}
        parts = write_by_row(encoded, masks, folder, progress)
    else:
        parts = write_by_row(encoded, {"train": None}, folder, progress)
        aside = WorkFolder(folder.path, prefix="given.")
        given = encoder.transform(rows.given[0], aside)
        parts |= write_by_row(given, {"validation": None}, folder)
        aside.remove("new_columns")
    progress.end()
    folder.remove("columns")
    write_container(folder.path / "encoder.safetensors", *encoder.to_state())
    folder.finish("rows", {name: _table_facts(table) for name, table in parts.items()})
    return encoder, _training_data(rows, folder, parts)


def _fitted_columns(
    rows: FitRows,
    folder: WorkFolder,
    config: EncoderConfig,
    fit_rows: NDArray[np.int64],
    seconds_left: SecondsLeft | None,
    progress: PassProgress,
) -> tuple[TableEncoder, tuple[TextFeatures, ...]]:
    """The first pass: what is to be known of every column, and the texts' features."""

    def read_columns(done: dict[str, Any]) -> tuple[TableEncoder, tuple[TextFeatures, ...]]:
        texts = [
            _reopen_text(folder, f"embeddings_{k}", f"text_index_{k}", facts)
            for k, facts in enumerate(done["texts"])
        ]
        return _load(folder, "columns", config), tuple(texts)

    earlier = _earlier(folder, "columns", read_columns)
    if earlier is not None:
        return earlier
    encoder = TableEncoder(config)
    with _reading(rows.table, progress, "Reading columns"):
        found = encoder.fit_columns(rows.table, fit_rows, seconds_left, folder)
    write_container(folder.path / "columns.safetensors", *encoder.to_state())
    folder.finish("columns", {"texts": [_text_facts(text) for text in found]})
    return encoder, found


def _earlier(folder: WorkFolder, name: str, read: Callable[[dict[str, Any]], T]) -> T | None:
    """What a pass of an earlier run left; None if there is none, or if its files are damaged."""
    done = folder.finished(name)
    if done is None:
        return None
    try:
        return read(done)
    except (OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0].rstrip(".")
        warn(
            f"The rows that an earlier run encoded in {folder.path} cannot be used ({reason}), and "
            "are encoded again. If this is repeated, check the disk or choose another work_dir."
        )
        folder.forget()
        return None


@contextmanager
def _reading(table: Table, progress: PassProgress, text: str) -> Iterator[None]:
    """Show a pass over the columns."""
    assert table.dataset is not None
    progress.begin(text, table.n_columns)
    table.dataset.on_read = progress.advance
    try:
        yield
    finally:
        table.dataset.on_read = None
    progress.end()


def _announce(rows: FitRows, folder: WorkFolder, progress: PassProgress) -> None:
    """Say where the encoded rows go and about how large they are, if the disk has room for them."""
    assert rows.table.dataset is not None
    n_bytes = 2 * _BYTES * rows.table.n_rows * rows.table.dataset.n_expected_features
    folder.check_space(n_bytes // 2)
    progress.note(
        f"{rows.table.n_rows:,} rows of {rows.table.n_columns} columns are encoded in "
        f"{folder.path}: about {gigabytes(n_bytes)}, half of it during training."
    )


def _bytes_needed(encoder: TableEncoder, rows: FitRows) -> int:
    """Bytes of the features, first one after the other, then in whole rows."""
    n_dense = encoder.target_mean_features.stop
    n_texts = sum(spec.kind == "text" for spec in encoder.specs)
    n_means = MAX_FEATURES * rows.target.shape[1]
    return rows.table.n_rows * int(_BYTES * (2 * n_dense + n_means) + 8 * (n_texts + 1))


def write_by_row(
    encoded: EncodedTable,
    masks: Mapping[str, Bools | None],
    folder: WorkFolder,
    progress: PassProgress | None = None,
) -> dict[str, EncodedTable]:
    """Copy features that are stored one after the other into files of whole rows.

    Parameters
    ----------
    encoded : EncodedTable
    masks : mapping of str to ndarray of bool or None
        Rows of each part; None for all.
    folder : WorkFolder
    progress : PassProgress or None

    Returns
    -------
    dict of str to EncodedTable
    """
    n_rows, width = encoded.dense.shape
    parts: dict[str, EncodedTable] = {}
    for name, mask in masks.items():
        n_chosen = n_rows if mask is None else int(np.count_nonzero(mask))
        is_random = name == "train"
        dense = folder.empty(f"{name}.dense", (n_chosen, width), is_random=is_random)
        texts = []
        for k, text in enumerate(encoded.texts):
            index = folder.empty(f"{name}.text_index_{k}", (n_chosen,), np.int64)
            index[:] = text.index.numpy() if mask is None else text.index.numpy()[mask]
            texts.append(TextFeatures(_kept_values(folder, name, k, text), torch.from_numpy(index)))
        parts[name] = EncodedTable(torch.from_numpy(dense), tuple(texts), is_mapped=True)
    source = encoded.dense.numpy()
    filled = dict.fromkeys(masks, 0)
    chunk = _chunk_rows(encoded)
    for start in range(0, n_rows, chunk):
        block = np.ascontiguousarray(source[start : start + chunk])
        for name, mask in masks.items():
            chosen = block if mask is None else block[mask[start : start + chunk]]
            at = filled[name]
            parts[name].dense.numpy()[at : at + len(chosen)] = chosen
            filled[name] = at + len(chosen)
        if progress is not None:
            progress.advance()
    return parts


def _chunk_rows(encoded: EncodedTable) -> int:
    return max(1, _CHUNK_BYTES // (_BYTES * max(encoded.dense.shape[1], 1)))


def _n_chunks(encoded: EncodedTable) -> int:
    return -(-encoded.n_rows // _chunk_rows(encoded))


def _kept_values(folder: WorkFolder, name: str, k: int, text: TextFeatures) -> torch.Tensor:
    """Features of distinct texts, in a file of their own where a resumed fit must find them."""
    if not folder.keeps:
        return text.values
    return torch.from_numpy(folder.keep(f"{name}.text_{k}", text.values.numpy()))


def _training_data(
    rows: FitRows, folder: WorkFolder, parts: Mapping[str, EncodedTable]
) -> TrainingData:
    """Targets and weights beside the encoded rows."""
    if rows.given is not None:
        return TrainingData(
            parts["train"], rows.target, rows.weight, parts["validation"], rows.given[1], None
        )
    train, validation = ~rows.held_out, rows.held_out
    weight = rows.weight
    return TrainingData(
        parts["train"],
        folder.keep("train.target", rows.target[train]),
        None if weight is None else folder.keep("train.weight", weight[train]),
        parts["validation"],
        rows.target[validation],
        None if weight is None else weight[validation],
    )


def _key(rows: FitRows, config: EncoderConfig) -> str:
    """Hash of all that the encoded rows depend on."""
    options = config.to_dict()
    del options["verbose"]
    tables, arrays = [rows.table], [rows.held_out, rows.target]
    if rows.given is not None:
        tables.append(rows.given[0])
        arrays.append(rows.given[1])
    files = [[] if table.dataset is None else list(table.dataset.stamps) for table in tables]
    shapes = [[table.names, table.n_rows] for table in tables]
    digest = hashlib.sha256(json.dumps([options, files, shapes], sort_keys=True).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _load(folder: WorkFolder, name: str, config: EncoderConfig) -> TableEncoder:
    tensors, meta = read_container(folder.path / f"{name}.safetensors")
    return TableEncoder.from_state(tensors, meta, config.text_encoder)


def _text_facts(text: TextFeatures) -> list[int]:
    return [len(text.index), *text.values.shape]


def _table_facts(table: EncodedTable) -> dict[str, Any]:
    return {"dense": list(table.dense.shape), "texts": [_text_facts(text) for text in table.texts]}


def _reopen_text(
    folder: WorkFolder, values_name: str, index_name: str, facts: list[int]
) -> TextFeatures:
    n_rows, n_texts, width = facts
    values = folder.reopen(values_name, (n_texts, width))
    index = folder.reopen(index_name, (n_rows,), np.int64)
    return TextFeatures(torch.from_numpy(values), torch.from_numpy(index))


def _reopen(folder: WorkFolder, name: str, facts: Mapping[str, Any]) -> EncodedTable:
    dense = folder.reopen(f"{name}.dense", tuple(facts["dense"]), is_random=name == "train")
    texts = [
        _reopen_text(folder, f"{name}.text_{k}", f"{name}.text_index_{k}", text)
        for k, text in enumerate(facts["texts"])
    ]
    return EncodedTable(torch.from_numpy(dense), tuple(texts), is_mapped=True)
