"""What is known of a dataset before its file is opened."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tabnsm.errors import InvalidDataError

_D_TEXT = 384


@dataclass(frozen=True)
class Source:
    """A source of a dataset.

    Parameters
    ----------
    kind : {"openml", "file", "request"}
        A dataset of OpenML, a CSV or ARFF file at an address, or a file that its keeper hands
        out on request.
    page : str
        Page for people.
    url : str
        Address of the file, for kind "file".
    openml_id : int or None
        Number of the dataset, for kind "openml".
    sha256 : str or None
        Of the file at `url`, where it is known not to change.
    """

    kind: Literal["openml", "file", "request"]
    page: str
    url: str = ""
    openml_id: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Descriptor:
    """One dataset.

    Parameters
    ----------
    key : str
        Name in commands, and stem of its file in the data folder.
    title : str
        Name for people.
    target : str
        Column to predict; empty where the user has to say it.
    drop : tuple of str
        Columns to leave out: they are empty, count rows, or leak the target.
    paper : str
        The paper's abbreviation of this table, or of the one that this is a part of.
    rows : int or None
        Rows to expect: of the paper's table, or as its sidecar says.
    features : int or None
        Features to expect after the paper's encoding.
    is_part : bool
        Whether the file is known to be only a part of the paper's table.
    row_limit : int or None
        Rows that are read; the paper's copy ended there.
    sources : tuple of Source
        Where to get it, the best first.
    licence : str
        As its publisher states it.
    leaks : str
        What leaks the target, or makes it easier than it looks.
    reader : {"table", "nacc"}
        How the file's codes are to be understood.
    sha256 : str or None
        Of the file in the data folder, where a sidecar says it.
    judged_by : {"rmse", "mae"}
        Score that methods are ranked by. The mean absolute error is for targets with heavy tails,
        whose RMSE a few rows make alone; a sidecar sets it with ``"judged_by": "mae"``.

    Examples
    --------
    >>> Descriptor("sales", "Sales", "price").rows is None
    True
    """

    key: str
    title: str
    target: str
    drop: tuple[str, ...] = ()
    paper: str = ""
    rows: int | None = None
    features: int | None = None
    is_part: bool = False
    row_limit: int | None = None
    sources: tuple[Source, ...] = ()
    licence: str = ""
    leaks: str = ""
    reader: Literal["table", "nacc"] = "table"
    sha256: str | None = None
    judged_by: Literal["rmse", "mae"] = "rmse"

    def __post_init__(self) -> None:
        """Check what a sidecar may have wrong."""
        if self.judged_by not in ("rmse", "mae"):
            raise InvalidDataError(
                f"judged_by of {self.key} must be 'rmse' or 'mae', got {self.judged_by!r}."
            )

    def with_sidecar(self, sidecar: dict[str, Any]) -> Descriptor:
        """The same dataset, as the sidecar of a file describes it.

        Parameters
        ----------
        sidecar : dict
            As from `read_sidecar`.

        Returns
        -------
        Descriptor
        """
        rows = sidecar.get("rows")
        return replace(
            self,
            is_part=rows is not None and self.rows is not None and rows < self.rows,
            target=sidecar["target"],
            drop=tuple(dict.fromkeys([*self.drop, *sidecar.get("drop", ())])),
            sha256=sidecar.get("sha256"),
            judged_by=sidecar.get("judged_by", self.judged_by),
        )

    @classmethod
    def from_sidecar(cls, sidecar: dict[str, Any]) -> Descriptor:
        """A dataset that is known by its sidecar alone.

        Parameters
        ----------
        sidecar : dict
            As from `read_sidecar`.

        Returns
        -------
        Descriptor

        Examples
        --------
        >>> sidecar = {"name": "t", "target": "y", "rows": 9, "paper_counterpart": "Sarcos (SA): 1"}
        >>> part = Descriptor.from_sidecar(sidecar)
        >>> part.paper, part.is_part
        ('SA', True)
        """
        match = re.search(r"\((\w+)\)", sidecar.get("paper_counterpart") or "")
        return cls(
            key=sidecar["name"],
            title=sidecar["name"].replace("_", " "),
            target=sidecar["target"],
            drop=tuple(sidecar.get("drop", ())),
            paper=match.group(1) if match else "",
            rows=sidecar.get("rows"),
            features=_n_features(sidecar),
            is_part=match is not None,
            licence=sidecar.get("licence", ""),
            leaks=sidecar.get("notes", ""),
            sha256=sidecar.get("sha256"),
            judged_by=sidecar.get("judged_by", "rmse"),
        )


def read_sidecar(path: Path) -> dict[str, Any] | None:
    """The sidecar of a table file.

    Parameters
    ----------
    path : Path
        A .json file.

    Returns
    -------
    dict or None
        None if it is JSON of another kind.

    Raises
    ------
    InvalidDataError
        If it is not JSON.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise InvalidDataError(f"{path} must be readable JSON, but it is not ({error}).") from error
    if isinstance(content, dict) and {"name", "target"} <= content.keys():
        return content
    return None


def _n_features(sidecar: dict[str, Any]) -> int | None:
    """Features by the paper's rule; the sidecar counts the columns to leave out as well."""
    counts = sidecar.get("column_kinds_by_paper_rule") or {}
    features: int | None = counts.get("features_after_paper_preprocessing")
    if features is None:
        return None
    texts = set(sidecar.get("text_columns", ()))
    dropped = set(sidecar.get("drop", ())) - set(sidecar.get("all_missing_columns", ()))
    if texts and texts <= dropped:
        features -= _D_TEXT
    return features - len(dropped - texts)
