"""The card of a fitted model: what it knows of its data, options and training."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tabnsm._version import __version__

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor

MAX_COLUMNS, MAX_TARGETS = 5, 10
_STYLE = "border-collapse:collapse;font:13px system-ui,sans-serif;margin-top:0.5em;text-align:left"
_CELL = "padding:2px 10px 2px 0;vertical-align:top;text-align:left"


def card_entries(model: FittedRegressor) -> list[tuple[str, str]]:
    """Headings and texts of the card.

    Parameters
    ----------
    model : FittedRegressor
        Fitted.

    Returns
    -------
    list of tuple of str
    """
    columns = model.describe_columns()
    kinds = Counter("left out" if row.kind == "drop" else row.kind for row in columns)
    counted = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    n_missing = sum(row.missing > 0 for row in columns)
    seconds = sum(history.seconds for history in model.histories_)
    scores = {model.history_.eval_metric: model.best_score_} | {"rmse": model.validation_rmse_}
    unit = ", in standard deviations, mean of the targets" if model.target_.n_targets > 1 else ""
    entries = {"Targets": _listed(model.target_.labels)} if model.target_.n_targets > 1 else {}
    entries["Data"] = f"{model.n_features_in_} columns ({counted}); {n_missing} with missing values"
    entries["Encoded features"] = str(model.encoder_.n_features)
    importances = getattr(model, "feature_importances_", None)
    if importances is not None and importances.sum() > 0:
        first = np.argsort(-importances, kind="stable")[:MAX_COLUMNS]
        shown = [f"{columns.rows[k].name} {importances[k]:.0%}" for k in first if importances[k]]
        entries["Most important"] = ", ".join(shown)
    entries["Validation"] = ", ".join(f"{k.upper()} {v:.5g}" for k, v in scores.items()) + unit
    entries["Training"] = f"{_count(len(model.histories_), 'network')}, {seconds:.1f} s"
    if model.blend_ is not None:
        entries["Blend"] = ", ".join(f"{k} {v:.0%}" for k, v in model.blend_.weights.items())
    changed = changed_options(model)
    entries["Options"] = ", ".join(f"{k}={v}" for k, v in changed) or "all default"
    entries["Version"] = f"tabnsm {__version__}"
    return list(entries.items())


def card_markdown(model: FittedRegressor) -> str:
    """The card as Markdown, with a table of the columns.

    Parameters
    ----------
    model : FittedRegressor
        Fitted.

    Returns
    -------
    str
    """
    lines = [f"# {type(model).__name__}", ""]
    lines += [f"- **{name}:** {_plain(text)}" for name, text in card_entries(model)]
    lines += ["", "## Columns", "", "| column | kind | features | missing | distinct | note |"]
    lines += ["|---|---|---:|---:|---:|---|"]
    for row in model.describe_columns():
        lines.append("| " + " | ".join(_plain(cell) for cell in row.cells()) + " |")
    return "\n".join(lines) + "\n"


def card_html(model: FittedRegressor) -> str:
    """The card as HTML, for notebooks.

    Parameters
    ----------
    model : FittedRegressor
        Fitted.

    Returns
    -------
    str
    """
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL}">{name}</th>'
        f'<td style="{_CELL}">{html.escape(text)}</td></tr>'
        for name, text in card_entries(model)
    )
    return f'<table class="tabnsm-card" style="{_STYLE}"><tbody>{rows}</tbody></table>'


def changed_options(model: FittedRegressor) -> list[tuple[str, str]]:
    """Options of the constructor that differ from its defaults, as name and value.

    Parameters
    ----------
    model : FittedRegressor

    Returns
    -------
    list of tuple of str
    """
    default = type(model)().get_params(deep=False)
    changed = []
    for name, value in model.get_params(deep=False).items():
        same = value is default[name] or (
            isinstance(value, str | int | float) and value == default[name]
        )
        if not same:
            # An encoder of texts is known by its name, a random state has none.
            shown = getattr(value, "name", value)
            changed.append((name, str(shown)))
    return changed


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_TARGETS} more" if len(names) > MAX_TARGETS else ""
    return ", ".join(names[:MAX_TARGETS]) + more


def _plain(text: str) -> str:
    """A text that Markdown leaves as it is, on one line of a table."""
    line = " ".join(text.split())
    for character in "\\`*_|<>[]#":
        line = line.replace(character, "\\" + character)
    return line
