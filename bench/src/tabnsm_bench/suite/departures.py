"""Each departure of the default from the paper reverted, on the half of the suite that chooses."""

from __future__ import annotations

from pathlib import Path

from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.studies.departures import departures
from tabnsm_bench.studies.variant import preset_options, spelled, tabnsm_method
from tabnsm_bench.suite.figure_of_merit import runs_by_table, standard_error, summarize
from tabnsm_bench.suite.tables import CHOOSE, names_of

FOLDER = "departures"
MARKS = ("<!-- departures -->", "<!-- end of departures -->")
ONE_NETWORK = tabnsm_method("default", n_ensemble=1)
# Small enough for every variant on every table, so that no limit of time cuts a network.
MAX_ROWS = 2000
_HEAD = (
    "| default with | tables that change | RMSE, default = 1, ± standard error | MAE, default = 1 "
    "| lower RMSE on "
    "| worst table, best table |\n| :-- | --: | --: | --: | --: | --: |"
)


def compared_methods() -> dict[str, tuple[str, str]]:
    """What is reverted, with the method that has it so and the one that it is compared with.

    Both have one network, but where the ensemble itself is reverted.

    Examples
    --------
    >>> compared_methods()["gates = feature"]
    ('tabnsm-default+gates=feature+n_ensemble=1', 'tabnsm-default+n_ensemble=1')
    >>> compared_methods()["n_ensemble = 1"]
    ('tabnsm-default+n_ensemble=1', 'tabnsm-default')
    """
    theirs = preset_options("paper")
    rows = {}
    for names in departures():
        changed = {name: theirs[name] for name in names}
        label = ", ".join(f"{name} = {spelled(value)}" for name, value in changed.items())
        own = tabnsm_method("default", **{"n_ensemble": 1, **changed})
        rows[label] = (own, "tabnsm-default" if own == ONE_NETWORK else ONE_NETWORK)
    return rows | {'preset = "paper"': ("tabnsm-paper", ONE_NETWORK)}


def departure_specs() -> list[RunSpec]:
    """All runs of the study, the references first."""
    pairs = compared_methods().values()
    methods = dict.fromkeys([ONE_NETWORK, *(own for own, _ in pairs), "tabnsm-default"])
    methods["tabnsm-paper"] = methods.pop("tabnsm-paper")  # last, because it takes longest
    return [RunSpec(m, name, max_rows=MAX_ROWS) for m in methods for name in names_of(CHOOSE)]


def departures_table(results: Path) -> str:
    """Markdown of what has been run, the most harmful reversal first.

    Parameters
    ----------
    results : Path
        Folder of the suite's results.
    """
    found: dict[str, dict[str, dict]] = {}  # type: ignore[type-arg]
    rows = []
    for label, pair in compared_methods().items():
        for method in pair:
            if method not in found:
                found[method] = runs_by_table(results / FOLDER, method)
        own, reference = (found[method] for method in pair)
        tables = [name for name in names_of(CHOOSE) if name in own and name in reference]
        summary = summarize(own, reference, tables)
        if summary is None:
            continue
        ratios = [_rmse(own[name]) / _rmse(reference[name]) for name in tables]
        n_changed = sum(ratio != 1 for ratio in ratios)
        n_lower = sum(ratio < 1 for ratio in ratios)
        text = (
            f"| `{label}` | {n_changed} of {len(tables)} "
            f"| {summary.rmse:.3f} ± {standard_error(ratios):.3f} | {summary.mae:.3f} "
            f"| {n_lower} | {max(ratios):.2f}, {min(ratios):.2f} |"
        )
        rows.append((-summary.rmse, text))
    return "\n".join([_HEAD, *(text for _, text in sorted(rows))])


def _rmse(run: dict) -> float:  # type: ignore[type-arg]
    return float(run["metrics"]["test"]["rmse"])
