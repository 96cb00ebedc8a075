"""The page: a template, its style and its script, with the numbers as JSON between them."""

from __future__ import annotations

import html
import json
import math
import re
from importlib.resources import files
from typing import Any


def render(data: dict[str, Any]) -> str:
    """A self-contained page.

    Parameters
    ----------
    data : dict
        As `tabnsm.report.build_report` makes it.

    Returns
    -------
    str
    """
    folder = files("tabnsm.report") / "page"
    page = (folder / "report.html").read_text(encoding="utf-8")
    names = ", ".join(part["target"] for part in data.get("targets", [data]))
    parts = {
        "TITLE": html.escape(f"{names}: TabNSM report"),
        "STYLE": (folder / "report.css").read_text(encoding="utf-8"),
        "SCRIPT": "\n".join(
            (folder / name).read_text(encoding="utf-8") for name in ("parts.js", "report.js")
        ),
        "DATA": to_json(data),
    }
    return re.sub("%%([A-Z]+)%%", lambda match: parts[match[1]], page)  # in one pass


def to_json(data: Any) -> str:
    r"""JSON that can stand inside a script element, whatever strings it holds.

    Examples
    --------
    >>> to_json({"a": "</script>", "b": float("nan")})
    '{"a":"\\u003c/script>","b":null}'
    """
    text = json.dumps(_finite(data), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character, escaped in (("<", "\\u003c"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        text = text.replace(character, escaped)
    return text


def _finite(value: Any) -> Any:
    """The same with None for numbers that JSON does not have, and six digits of the others."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value
