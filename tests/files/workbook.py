"""Workbooks for tests, written part by part: no package that writes them is installed."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
# Number formats of Excel's own list, as the styles of a cell.
DATE, MOMENT, TIME = 1, 2, 3
STYLES = "".join(f'<xf numFmtId="{code}"/>' for code in (0, 14, 22, 21))

Cell = str | float | bool | None | tuple[float, int]


def write_workbook(path: Path, *sheets: Sequence[Sequence[Cell]]) -> Path:
    """Sheets of cells: plain values, errors such as "#N/A", or (serial number, style)."""
    numbers = range(1, len(sheets) + 1)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": _relations([("rId1", "officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        + "".join(f'<sheet name="Sheet{k}" sheetId="{k}" r:id="rId{k}"/>' for k in numbers)
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": _relations(
            [(f"rId{k}", "worksheet", f"worksheets/sheet{k}.xml") for k in numbers]
            + [("rId0", "styles", "styles.xml")]
        ),
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs>{STYLES}</cellXfs></styleSheet>',
    }
    for k, rows in zip(numbers, sheets, strict=True):
        body = "".join(_row(number, cells) for number, cells in enumerate(rows, start=1))
        parts[f"xl/worksheets/sheet{k}.xml"] = (
            f'<worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData></worksheet>'
        )
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return path


def _relations(entries: list[tuple[str, str, str]]) -> str:
    made = "".join(
        f'<Relationship Id="{key}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for key, kind, target in entries
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{made}</Relationships>'


def _row(number: int, cells: Sequence[Cell]) -> str:
    made = "".join(
        _cell(f"{chr(ord('A') + k)}{number}", cell)
        for k, cell in enumerate(cells)
        if cell is not None
    )
    return f'<row r="{number}">{made}</row>'


def _cell(place: str, value: Cell) -> str:
    if isinstance(value, tuple):
        return f'<c r="{place}" s="{value[1]}"><v>{value[0]}</v></c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if not isinstance(value, str):
        return f'<c r="{place}"><v>{value}</v></c>'
    if value.startswith("#"):
        return f'<c r="{place}" t="e"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
