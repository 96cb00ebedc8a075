from __future__ import annotations

import numpy as np
import pytest

from bench.tests.made_results import done, failed
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm_bench.main_runs import group_runs, main_runs
from tabnsm_bench.protocol import ENCODINGS, RunSpec
from tabnsm_bench.scores import collect_scores


def test_seeds_and_splits_are_averaged() -> None:
    specs = [RunSpec("ridge", "cpu_small", seed=s, split=p) for s in (0, 1) for p in (42, 43)]
    table = collect_scores([done(spec, 2.0 + k) for k, spec in enumerate(specs)])
    assert table.score("ridge", "cpu_small") == 3.5
    assert table.std[0, 0] == pytest.approx(np.std([2, 3, 4, 5], ddof=1))
    assert table.n_runs[0, 0] == 4
    assert table.counterparts == {"cpu_small": "CP"}
    assert not table.partial


def test_splits_that_not_all_methods_have_do_not_count() -> None:
    results = [done(RunSpec("ridge", "cpu_small", split=split), 2.0) for split in (42, 43)]
    results += [done(RunSpec("mlp", "cpu_small", split=42), 1.0)]
    results += [done(RunSpec("ridge", "bike", split=43), 5.0)]
    table = collect_scores(results)
    assert table.n_runs.tolist() == [[0, 1], [1, 1]]
    assert table.remarks == ()
    assert len(group_runs(results, common_splits=False)[0]["ridge", "cpu_small"]) == 2


def test_mae_is_its_own_metric() -> None:
    results = [done(RunSpec("ridge", "cpu_small"), 2.0)]
    assert collect_scores(results, "mae").score("ridge", "cpu_small") == 1.4
    with pytest.raises(InvalidOptionError, match=r"metric must be one of .* got 'r2'"):
        collect_scores(results, "r2")


@pytest.mark.parametrize(
    "other",
    [
        RunSpec("tabnsm-default+attention=full", "cpu_small"),
        RunSpec("tabnsm-default", "cpu_small", feature_fraction=0.5),
        RunSpec("tabnsm-default", "cpu_small", sample_fraction=0.5),
        RunSpec("tabnsm-default", "cpu_small", max_epochs=1),
        RunSpec("tabnsm-default", "cpu_small", time_limit=5),
    ],
)
def test_runs_of_studies_and_capped_runs_do_not_count(other: RunSpec) -> None:
    whole = RunSpec("tabnsm-default", "cpu_small")
    table = collect_scores([done(other, 99.0), done(whole, 2.0)])
    assert (table.methods, table.score("tabnsm-default", "cpu_small")) == (("tabnsm-default",), 2)


def test_a_capped_run_counts_where_there_is_no_other() -> None:
    capped = done(RunSpec("mlp", "cpu_small", max_epochs=5), 2.0, notes=["slow"])
    looser = done(RunSpec("mlp", "cpu_small", max_epochs=9, time_limit=15), 1.0)
    cell = ("mlp", "cpu_small")
    assert collect_scores([capped]).notes == {cell: ("slow", "at most 5 epochs")}
    notes = collect_scores([capped, looser]).notes
    assert notes == {cell: ("at most 9 epochs", "at most 15 seconds")}


def test_a_cut_table_is_another_dataset() -> None:
    specs = [RunSpec("ridge", "cpu_small"), RunSpec("ridge", "cpu_small", max_rows=500)]
    table = collect_scores([done(spec, 2.0) for spec in specs])
    assert table.datasets == ("cpu_small", "cpu_small, 500 rows")
    assert table.partial == {"cpu_small, 500 rows"}


def test_a_table_cut_for_a_study_of_tabnsm_is_none_to_compare_on() -> None:
    cut = RunSpec("tabnsm-paper", "cpu_small", max_rows=500)
    results = [done(cut, 2.0), done(RunSpec("ridge", "cpu_small"), 2.0)]
    assert collect_scores(results).datasets == ("cpu_small",)
    results.append(done(RunSpec("ridge", "cpu_small", max_rows=500), 3.0))
    assert collect_scores(results).datasets == ("cpu_small", "cpu_small, 500 rows")


def test_a_table_with_tabnsm_alone_is_none_to_compare_on() -> None:
    alone = [done(RunSpec("tabnsm-default", name), 2.0) for name in ("cpu_small", "sales")]
    assert collect_scores(alone).datasets == ("cpu_small", "sales")
    scores = collect_scores([*alone, done(RunSpec("ridge", "cpu_small"), 3.0)])
    assert scores.datasets == ("cpu_small",)


def test_baselines_are_of_one_encoding_and_tabnsm_of_its_own() -> None:
    specs = [
        RunSpec("ridge", "cpu_small", encoding="paper"),
        RunSpec("ridge", "cpu_small", encoding="default"),
        RunSpec("tabnsm-default", "cpu_small"),
        RunSpec("tabnsm-paper", "cpu_small"),
    ]
    results = [done(spec, 1.0 + k) for k, spec in enumerate(specs)]
    for encoding, score in (("paper", 1.0), ("default", 2.0)):
        table = collect_scores(results, encoding=encoding)
        assert table.methods == ("ridge", "tabnsm-default", "tabnsm-paper")
        assert table.score("ridge", "cpu_small") == score


def test_failures_are_missing_with_their_reason() -> None:
    results = [
        done(RunSpec("ridge", "cpu_small"), 2.0),
        done(RunSpec("ridge", "bike"), 2.0),
        done(RunSpec("mlp", "bike"), float("nan")),
        done(RunSpec("mlp", "cpu_small"), 3.0),
        failed(RunSpec("svr-rbf", "bike"), "Traceback\nMemoryError: too much"),
        failed(RunSpec("ridge", "air"), "600 s", "timeout"),
    ]
    table = collect_scores(results)
    assert table.methods == ("mlp", "ridge", "svr-rbf")
    assert table.missing("mlp") == ("bike",)
    assert table.notes["mlp", "bike"] == ("diverged: rmse nan",)
    assert group_runs(results)[1]["svr-rbf", "bike"] == ["failed: MemoryError: too much"]
    assert group_runs(results)[1]["ridge", "air"] == ["timeout: 600 s"]
    assert len(main_runs(results)) == 3


def test_scores_over_different_rows_are_refused() -> None:
    one, other = (done(RunSpec(name, "cpu_small"), 2.0) for name in ("ridge", "mlp"))
    other["split"]["test_index_sha256"] = "other"
    with pytest.raises(InvalidDataError, match=r"cpu_small, split 42, mlp and ridge had different"):
        collect_scores([one, other])
    other["split"]["test_index_sha256"] = None  # a result from before rows were recorded
    assert collect_scores([one, other]).methods == ("mlp", "ridge")


def test_different_splits_and_files_are_remarked() -> None:
    one = done(RunSpec("ridge", "cpu_small", split=42), 2.0)
    other = done(RunSpec("mlp", "cpu_small", split=43), 2.0)
    other["dataset"]["sha256"] = "b"
    splits, files = collect_scores([one, other]).remarks
    assert "On cpu_small the methods were run on different sets of splits" in splits
    assert "2 different files" in files
    assert collect_scores([one]).remarks == ()


def test_renaming_keeps_notes() -> None:
    results = [done(RunSpec("mlp", "cpu_small"), 2.0, notes=["5 epochs"])]
    table = collect_scores(results).renamed({"mlp": "MLP"})
    assert table.methods == ("MLP",)
    assert table.notes == {("MLP", "cpu_small"): ("5 epochs",)}


def test_another_target_is_another_dataset() -> None:
    prices = [done(RunSpec("ridge", "cpu_small", target=name), 2.0) for name in ("a", "b")]
    table = collect_scores([*prices, done(RunSpec("ridge", "cpu_small"), 5.0)])
    assert table.datasets == ("cpu_small", "cpu_small, target a", "cpu_small, target b")
    assert table.mean.tolist() == [[5.0, 2.0, 2.0]]
    assert table.counterparts == {"cpu_small": "CP"}  # the paper predicts one column of it


def test_a_method_whose_runs_all_failed_stays_with_the_reason() -> None:
    lost = failed(RunSpec("saint", "cpu_small"), "Traceback\nMemoryError: no memory")
    table = collect_scores([done(RunSpec("ridge", "cpu_small"), 2.0), lost])
    assert table.methods == ("ridge", "saint")
    assert np.isnan(table.score("saint", "cpu_small"))
    assert table.notes["saint", "cpu_small"] == ("failed: MemoryError: no memory",)
    elsewhere = failed(RunSpec("saint", "bike"), "", "timeout")
    remarks = collect_scores([done(RunSpec("ridge", "cpu_small"), 2.0), elsewhere]).remarks
    assert remarks[0] == "saint gives no score on bike: timeout."
    with pytest.raises(InvalidDataError, match=r"No run gives a score. saint gives .* no memory"):
        collect_scores([lost])


def test_runs_of_the_other_encoding_are_counted_and_named() -> None:
    runs = [done(RunSpec("ridge", "cpu_small", encoding=name), 2.0) for name in ENCODINGS]
    study = done(RunSpec("ridge+alpha=2", "cpu_small", encoding="default"), 2.0)
    for own, other in (ENCODINGS, ENCODINGS[::-1]):
        remark = (
            "Not counted: 1 runs of baselines on the other encoding. To see them, add: "
            f"--encoding {other}"
        )
        assert collect_scores([*runs, study], encoding=own).remarks == (remark,)
        with pytest.raises(InvalidDataError, match=f"No run gives .* --encoding {other}"):
            collect_scores(runs[:1] if own == "default" else runs[1:], encoding=own)


def test_a_limit_on_epochs_is_noted_at_methods_that_have_epochs() -> None:
    methods = ("ridge", "catboost", "mlp", "tabnsm-default")
    notes = collect_scores(
        [done(RunSpec(method, "cpu_small", max_epochs=3), 2.0) for method in methods]
    ).notes
    assert notes == {
        (method, "cpu_small"): ("at most 3 epochs",) for method in ("mlp", "tabnsm-default")
    }
