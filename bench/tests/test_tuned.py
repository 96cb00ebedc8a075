from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tabnsm.errors import InvalidOptionError
from tabnsm_bench import tuned
from tabnsm_bench.execute import execute, make_method
from tabnsm_bench.main_runs import main_runs
from tabnsm_bench.protocol import RunSpec


def fits(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Options of every method that is made from now on."""
    seen: list[dict[str, Any]] = []
    make = tuned.make

    def watched(key: str, options: Any = None) -> Any:
        seen.append(dict(options or {}))
        return make(key, options)

    monkeypatch.setattr(tuned, "make", watched)
    return seen


def test_a_tuned_run_is_searched_fitted_and_described(
    table_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = fits(monkeypatch)
    spec = RunSpec("svr-linear+epsilon=0.2+tuned=4", "toy")
    result = execute(spec, table_dir)
    assert result["state"] == "done"
    shown = result["settings"]["tuning"]
    assert shown["n_trials"] == 4
    assert shown["trials"] == {"complete": 4}
    assert set(shown["searched_options"]) == {"C"}
    assert shown["validation_rmse"][shown["chosen"]] == min(shown["validation_rmse"].values())
    assert result["metrics"]["validation"]["rmse"] == pytest.approx(
        min(shown["validation_rmse"].values())
    )
    # One to look at, four trials, the method's own options and the best.
    assert len(seen) == 7
    assert all(options["epsilon"] == 0.2 for options in seen)
    assert len(list((tmp_path / "cache").rglob("*.journal"))) == 1
    # The same run again finds its trials done.
    seen.clear()
    assert execute(spec, table_dir)["settings"]["tuning"] == shown
    assert len(seen) == 3


def test_another_seed_or_table_has_trials_of_its_own(table_dir: Path, tmp_path: Path) -> None:
    for spec in (
        RunSpec("ridge+tuned=2", "toy"),
        RunSpec("ridge+tuned=2", "toy", seed=1),
        RunSpec("ridge+tuned=2", "toy", split=1),
        RunSpec("ridge+tuned=2", "toy", time_limit=60.0),
    ):
        execute(spec, table_dir)
    assert len(list((tmp_path / "cache").rglob("*.journal"))) == 4


def test_a_search_that_was_killed_goes_on(table_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = RunSpec("ridge+tuned=3", "toy")
    score = tuned._validation_rmse
    calls = []

    def dies(*arguments: Any) -> float:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return score(*arguments)

    monkeypatch.setattr(tuned, "_validation_rmse", dies)
    monkeypatch.setattr(tuned, "search", _not_saved(tuned.search))
    with pytest.raises(KeyboardInterrupt):
        execute(spec, table_dir)
    result = execute(spec, table_dir)
    assert result["settings"]["tuning"]["trials"]["complete"] == 3
    # Two trials before the kill, the third, and the two last fits.
    assert len(calls) == 3 + 1 + 2


def _not_saved(search: Any) -> Any:
    """A search whose Ctrl-C ends the process instead of the search."""

    def killed(*arguments: Any, **options: Any) -> Any:
        result = search(*arguments, **options)
        if result.stopped == "interrupted":
            raise KeyboardInterrupt
        return result

    return killed


def test_tabnsm_is_tuned_the_same_way(table_dir: Path) -> None:
    result = execute(RunSpec("tabnsm-fast+tuned=2", "toy", max_epochs=1), table_dir)
    shown = result["settings"]["tuning"]
    # Its own options are the first trial.
    assert min(shown["validation_rmse"].values()) <= shown["validation_rmse"]["own"]
    assert "d_token" in shown["searched_options"]
    assert result["settings"]["options"]["training"]["max_epochs"] == 1


def test_a_tuned_method_counts_as_a_method(table_dir: Path) -> None:
    specs = [RunSpec(method, "toy") for method in ("ridge+tuned=2", "ridge+alpha=1")]
    results = [execute(spec, table_dir) for spec in specs]
    assert [spec.method for spec, _ in main_runs(results)] == ["ridge+tuned=2"]


@pytest.mark.parametrize("trials", ["0", "many", "True", "1.5"])
def test_trials_are_a_number(trials: str) -> None:
    with pytest.raises(InvalidOptionError, match="tuned must be a number of trials >= 1"):
        make_method(RunSpec(f"ridge+tuned={trials}", "toy"))
