"""One row of a study: a method with some of its options changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tabnsm.errors import InvalidOptionError
from tabnsm.options import resolve_options


@dataclass(frozen=True)
class Variant:
    """One row of a study.

    Parameters
    ----------
    label : str
        What the row is called, unique in its study.
    method : str
        As in `RunSpec`.
    changes : tuple of (str, value)
        Further fields of `RunSpec` that this row sets.
    group : str
        Panel of the figure that the row belongs to; empty if there is only one.
    value : float, str or None
        Place of the row on the figure's axis, where it has one.
    is_reference : bool
        Whether the other rows of the group are compared with this one.
    """

    label: str
    method: str
    changes: tuple[tuple[str, Any], ...] = ()
    group: str = ""
    value: float | str | None = None
    is_reference: bool = False


def tabnsm_method(preset: str, **options: Any) -> str:
    """Method string of TabNSM, without the options that the preset has anyway.

    Two studies that mean the same model thus share its results.

    Parameters
    ----------
    preset : str
    **options
        Parameters of `TabNSMRegressor`.

    Returns
    -------
    str

    Examples
    --------
    >>> tabnsm_method("default", mixer=False, attention="sparse")
    'tabnsm-default+mixer=False'
    >>> tabnsm_method("paper", temperature=1.0, huber_weight=1.0)
    'tabnsm-paper+huber_weight=1'
    """
    own = preset_options(preset)
    resolve_options({"preset": preset, **options})  # complain now, not in every run
    changed = {name: value for name, value in options.items() if own[name] != value}
    parts = [f"{name}={spelled(value)}" for name, value in sorted(changed.items())]
    return "+".join([f"tabnsm-{preset}", *parts])


def preset_options(preset: str) -> dict[str, Any]:
    """All options of a preset, by name."""
    parts = resolve_options({"preset": preset}).to_dict().values()
    return {name: value for part in parts for name, value in part.items()}


def spelled(value: Any) -> str:
    """A value as in a method string: numbers as short as they can be.

    Examples
    --------
    >>> [spelled(value) for value in (0.5, 1.0, 1000, False, "full")]
    ['0.5', '1', '1000', 'False', 'full']
    """
    if isinstance(value, float):
        return f"{value:.12g}"
    text = str(value)
    if "+" in text or "=" in text:
        raise InvalidOptionError(f'A value in a method must not hold "+" or "=", got {text!r}.')
    return text
