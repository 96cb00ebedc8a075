"""Datasets of OpenML, by number, through its REST interface."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidDataError
from tabnsm_bench.datasets.arff import read_arff
from tabnsm_bench.datasets.download import Fetched, download_file

SERVER = "https://www.openml.org"


def fetch_openml(
    number: int,
    folder: Path,
    *,
    server: str = SERVER,
    on_progress: Callable[[int, int | None], None] | None = None,
) -> tuple[Any, Fetched, dict[str, Any]]:
    """Download a dataset and read it.

    Parameters
    ----------
    number : int
        The dataset's id.
    folder : Path
        Where its files are kept.
    server : str
        Address of OpenML.
    on_progress : callable or None
        As for `download_file`.

    Returns
    -------
    tuple
        The table as a pandas.DataFrame, its file, and OpenML's description of it.

    Raises
    ------
    InvalidDataError
        If OpenML's description names no file.
    """
    about = download_file(f"{server}/api/v1/json/data/{number}", folder / f"openml-{number}.json")
    try:
        description = json.loads(about.path.read_text(encoding="utf-8"))["data_set_description"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidDataError(
            f"OpenML's description of dataset {number} must be JSON with data_set_description, "
            f"but {about.path} is not. Delete it and try again."
        ) from error
    # The checksum that OpenML publishes is that of the ARFF file.
    if description.get("url"):
        file = download_file(
            description["url"],
            folder / f"openml-{number}.arff",
            md5=description.get("md5_checksum"),
            on_progress=on_progress,
        )
        return read_arff(file.path), file, description
    if description.get("parquet_url"):
        import pandas as pd

        file = download_file(
            description["parquet_url"],
            folder / f"openml-{number}.parquet",
            on_progress=on_progress,
        )
        return pd.read_parquet(file.path), file, description
    raise InvalidDataError(f"OpenML names no file for dataset {number}. Get the table elsewhere.")
