"""Download a dataset into the data folder: the table as Parquet, with a sidecar about it."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidDataError
from tabnsm_bench.claims import Claim
from tabnsm_bench.datasets.arff import read_arff
from tabnsm_bench.datasets.catalog import find_descriptor, find_file
from tabnsm_bench.datasets.descriptor import Descriptor, Source
from tabnsm_bench.datasets.download import DownloadError, Fetched, download_file
from tabnsm_bench.datasets.loading import how_to_get, with_numbers
from tabnsm_bench.datasets.openml import fetch_openml

Progress = Callable[[int, int | None], None]


def download_dataset(
    name: str, data_dir: str | Path, *, on_progress: Progress | None = None
) -> Path:
    """Get one dataset, from the first of its sources that has it.

    Parameters
    ----------
    name : str
        Key or abbreviation.
    data_dir : str or Path
        Folder to put it in.
    on_progress : callable or None
        Called with the bytes so far, and in all.

    Returns
    -------
    Path
        The table; one that is already there is left alone.

    Raises
    ------
    InvalidDataError
        If it cannot be downloaded by its nature, or is not what it should be.
    DownloadError
        If no source could be reached.
    """
    descriptor = find_descriptor(name, data_dir)
    present = find_file(descriptor.key, data_dir)
    if present is not None:
        return present
    if not descriptor.sources or descriptor.sources[0].kind == "request":
        raise InvalidDataError(
            f"{descriptor.key!r} cannot be downloaded: {how_to_get(descriptor)}."
        )
    folder = Path(data_dir) / ".downloads" / descriptor.key
    folder.mkdir(parents=True, exist_ok=True)
    claim = Claim.acquire(folder.with_suffix(".claim"))
    if claim is None:
        raise InvalidDataError(f"{descriptor.key!r} is being downloaded by another process.")
    with claim:
        path = _from_any_source(descriptor, Path(data_dir), folder, on_progress)
        shutil.rmtree(folder)
    return path


def _from_any_source(
    descriptor: Descriptor, data_dir: Path, folder: Path, on_progress: Progress | None
) -> Path:
    problems: list[str] = []
    for source in descriptor.sources:
        try:
            frame, file, origin = _fetch(source, folder, on_progress)
            _check(frame, descriptor)
        except (DownloadError, InvalidDataError) as error:
            problems.append(str(error))
            continue
        return _save(frame, descriptor, data_dir, file, origin)
    raise DownloadError(" ".join(problems))


def _fetch(
    source: Source, folder: Path, on_progress: Progress | None
) -> tuple[Any, Fetched, dict[str, Any]]:
    if source.kind == "openml":
        assert source.openml_id is not None
        frame, file, about = fetch_openml(source.openml_id, folder, on_progress=on_progress)
        return frame, file, {"kind": "openml", "id": source.openml_id, "name": about.get("name")}
    ending = ".arff" if source.url.endswith(".arff") else ".csv"
    file = download_file(
        source.url, folder / f"file{ending}", sha256=source.sha256, on_progress=on_progress
    )
    if ending == ".arff":
        frame = read_arff(file.path)
    else:
        from tabnsm.files import read_table

        frame = with_numbers(read_table(file.path).to_pandas())
    return frame, file, {"kind": "file", "url": source.url}


def _check(frame: Any, descriptor: Descriptor) -> None:
    if descriptor.target not in frame.columns:
        raise InvalidDataError(
            f"The table must have the target {descriptor.target!r}, but has "
            f"{', '.join(map(str, frame.columns[:10]))}. Its source has changed."
        )


def _save(
    frame: Any, descriptor: Descriptor, data_dir: Path, file: Fetched, origin: dict[str, Any]
) -> Path:
    from tabnsm.container import atomic_write  # imports torch

    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    content = buffer.getvalue()
    path = data_dir / f"{descriptor.key}.parquet"
    sidecar = {
        "name": descriptor.key,
        "file": path.name,
        "rows": len(frame),
        "columns": len(frame.columns),
        "target": descriptor.target,
        "drop": list(descriptor.drop),
        "source": origin
        | {
            "source_bytes": file.n_bytes,
            "source_sha256": file.sha256,
            "retrieved": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": descriptor.licence,
        "notes": descriptor.leaks,
    }
    # The sidecar first: a table without one would pass for a whole one of unknown origin.
    atomic_write(path.with_suffix(".json"), (json.dumps(sidecar, indent=1) + "\n").encode())
    atomic_write(path, content)
    return path
