"""RunFolder: the files of one fit in a storage that all machines reach."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from tabnsm.errors import InvalidOptionError


class RunFolder:
    """A folder of a file system that pyarrow knows, such as a shared disk, S3 or GCS.

    Parameters
    ----------
    storage_path : str or Path
        Path or URI of the folder of all runs; made if it is not there.
    name : str
        Of the run.
    """

    def __init__(self, storage_path: str | Path, name: str) -> None:
        self.storage_path, self.name = absolute(storage_path), name
        try:
            self.system, root = fs.FileSystem.from_uri(self.storage_path)
        except (OSError, pa.ArrowException, ValueError) as error:
            raise self._refusal(error) from error
        self.path = f"{root.rstrip('/')}/{name}"

    def make(self) -> RunFolder:
        """Make the folder, and see whether files can be written there."""
        try:
            self.system.create_dir(self.path, recursive=True)
            self.write("probe", b"1")
            self.system.delete_file(f"{self.path}/probe")
        except (OSError, pa.ArrowException) as error:
            raise self._refusal(error) from error
        return self

    def _refusal(self, error: Exception) -> InvalidOptionError:
        return InvalidOptionError(
            "storage_path must be a folder or URI that this machine can write to, got "
            f"{self.storage_path!r} ({str(error).strip().splitlines()[0]})."
        )

    def write(self, name: str, content: bytes) -> None:
        """Write a file as a whole: under another name first, and renamed."""
        with self.system.open_output_stream(f"{self.path}/{name}.part") as file:
            file.write(content)
        self.system.move(f"{self.path}/{name}.part", f"{self.path}/{name}")

    def read(self, name: str) -> bytearray | None:
        """The content of a file; None if there is none."""
        try:
            with self.system.open_input_file(f"{self.path}/{name}") as file:
                content = bytearray(file.size())
                file.readinto(content)
                return content
        except FileNotFoundError:
            return None

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(OSError):
            self.system.delete_file(f"{self.path}/{name}")

    def inside(self, name: str) -> list[str]:
        """Names of what a folder of the run holds, sorted; none if there is no such folder."""
        place = fs.FileSelector(f"{self.path}/{name}", allow_not_found=True)
        return sorted(found.base_name for found in self.system.get_file_info(place))

    def remove(self) -> None:
        """Remove the run's files, and those of its networks."""
        with suppress(OSError):
            self.system.delete_dir(self.path)


def absolute(path: str | Path) -> str:
    """A URI as it is, a path from the root of this machine.

    Examples
    --------
    >>> absolute("s3://bucket/runs")
    's3://bucket/runs'
    """
    return str(path) if "://" in str(path) else os.path.abspath(path)
