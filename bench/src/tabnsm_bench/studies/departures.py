"""Each departure of the default preset from the paper's, one at a time."""

from __future__ import annotations

from tabnsm.errors import InvalidOptionError
from tabnsm.options import PRESETS
from tabnsm_bench.studies.study import Study
from tabnsm_bench.studies.variant import Variant, preset_options, spelled, tabnsm_method

# Options that mean nothing without each other: the temperature's unit follows the grid's.
TOGETHER = (("normalize_grid", "temperature"),)


def departures() -> list[tuple[str, ...]]:
    """The options in which the two presets differ, those that belong together in one entry.

    Examples
    --------
    >>> ("normalize_grid", "temperature") in departures(), ("gates",) in departures()
    (True, True)
    """
    paired = [group for group in TOGETHER if set(group) & set(PRESETS["paper"])]
    single = [(name,) for name in PRESETS["paper"] if not any(name in group for group in paired)]
    return [*single, *paired]


def departure_variants(preset: str) -> list[Variant]:
    """The preset, then with one departure reverted, then the other preset.

    From "default", each row takes one departure back; from "paper", each row makes one.
    """
    if preset not in ("default", "paper"):
        raise InvalidOptionError(
            f'Departures lie between the presets "default" and "paper", got {preset!r}. '
            "Choose one of these with --preset."
        )
    other = "paper" if preset == "default" else "default"
    theirs = preset_options(other)
    rows = [Variant(preset, tabnsm_method(preset), is_reference=True)]
    for names in departures():
        changed = {name: theirs[name] for name in names}
        label = ", ".join(f"{name} = {spelled(value)}" for name, value in changed.items())
        rows.append(Variant(label, tabnsm_method(preset, **changed), value=names[0]))
    return [*rows, Variant(other, tabnsm_method(other))]


STUDIES = (
    Study(
        "departures",
        "Departures of the default from the paper, one at a time",
        "none: these are this library's own choices",
        departure_variants,
    ),
)
