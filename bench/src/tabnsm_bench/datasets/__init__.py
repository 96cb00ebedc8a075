"""The paper's datasets, those of a data folder, and any table file with a target."""

from __future__ import annotations

from tabnsm_bench.datasets.catalog import (
    ALIASES,
    DESCRIPTORS,
    all_descriptors,
    find_descriptor,
    find_file,
)
from tabnsm_bench.datasets.descriptor import Descriptor, Source
from tabnsm_bench.datasets.download import DownloadError, download_file
from tabnsm_bench.datasets.fetch import download_dataset
from tabnsm_bench.datasets.loading import LoadedTable, how_to_get, load

__all__ = [
    "ALIASES",
    "DESCRIPTORS",
    "Descriptor",
    "DownloadError",
    "LoadedTable",
    "Source",
    "all_descriptors",
    "download_dataset",
    "download_file",
    "find_descriptor",
    "find_file",
    "how_to_get",
    "load",
]
