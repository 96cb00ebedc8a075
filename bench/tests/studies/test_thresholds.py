"""The threshold protocol on curves made by hand."""

from __future__ import annotations

import pytest

from bench.tests.studies.results import done
from tabnsm.errors import InvalidOptionError
from tabnsm_bench.studies import Scope, find_study
from tabnsm_bench.studies.thresholds import ThresholdStudy, seconds_to

CURVE = [(1.0, 5.0), (2.0, 3.0), (3.0, 3.5), (4.0, 2.0)]
SCOPE = Scope(("cp",), (0, 1))


@pytest.mark.parametrize(
    ("level", "seconds"), [(6.0, 1.0), (5.0, 1.0), (3.2, 2.0), (2.5, 4.0), (2.0, 4.0), (1.9, None)]
)
def test_first_time_at_or_below_a_level(level: float, seconds: float | None) -> None:
    assert seconds_to(CURVE, level) == seconds


def test_between_the_points_of_a_thinned_curve() -> None:
    curve = [(1.0, 5.0), (3.0, 3.0), (4.0, 2.0)]
    assert seconds_to(curve, 4.0, thinned=True) == 2.0
    assert seconds_to(curve, 3.0, thinned=True) == 3.0
    assert seconds_to(curve, 6.0, thinned=True) == 1.0
    assert seconds_to(curve, 1.0, thinned=True) is None


def test_only_a_curve_with_gaps_is_thinned() -> None:
    study = find_study("threshold")
    found = results(study)
    for result in found:
        if result["spec"]["method"] == "catboost":
            result["settings"]["iterations"] = 400
        else:
            result["settings"]["epochs"] = 3
    rows = study.at([0.95]).table(found, SCOPE).rows
    times = {row["method"]: row["seconds"] for row in rows}
    # Whole epochs: 2 s and 4 s. In gaps: 1 + 0.5 * 0.15 / 0.5 s, and 1 + 1.05 / 1.1 s.
    assert times["tabnsm-default"] == pytest.approx((2.0 + 4.0) / 2)
    assert times["catboost"] == pytest.approx((1 + 0.15 + 1 + 1.05 / 1.1) / 2)


def history(*rmse: float, step: float) -> dict[str, list[float]]:
    return {
        "seconds": [step * (i + 1) for i in range(len(rmse))],
        "validation_rmse": list(rmse),
    }


def results(study: ThresholdStudy, scope: Scope = SCOPE) -> list[dict]:
    curves = {
        ("tabnsm-default", 0): history(1.0, 0.4, 0.2, step=1.0),
        ("tabnsm-default", 1): history(1.5, 0.5, 0.4, step=2.0),
        ("catboost", 0): history(2.0, 1.1, 0.6, 0.5, step=0.5),
        ("catboost", 1): history(2.0, 0.9, 0.4, 0.3, step=1.0),
    }
    # The validation targets of these results have a standard deviation of 2.
    return [
        done(spec, 1.0, validation_rmse=1.0, settings={"history": curves[spec.method, spec.seed]})
        for spec in study.all_specs(scope)
    ]


def test_seconds_of_both_methods_at_levels_that_neither_chose() -> None:
    study = find_study("threshold")
    rows = study.table(results(study), SCOPE).rows
    found = {(row["level"], row["method"]): row for row in rows}
    half = found["0.5 sd", "tabnsm-default"]
    assert (half["rmse"], half["reached"], half["n_rows"]) == (pytest.approx(1.0), "2 of 2", 500)
    assert half["seconds"] == pytest.approx((1.0 + 4.0) / 2)
    assert found["0.5 sd", "catboost"]["seconds"] == pytest.approx((1.5 + 2.0) / 2)
    assert found["0.5 sd", "catboost"]["times"] == pytest.approx(1.75 / 2.5)
    assert half["times"] == 1.0
    assert found["0.2 sd", "catboost"]["reached"] == "1 of 2"
    assert found["0.2 sd", "catboost"]["seconds"] == 3.0
    assert found["0.1 sd", "catboost"]["seconds"] is None
    assert found["0.1 sd", "catboost"]["times"] is None
    # The weakest run ends at 0.5, so all reach 2 % above it.
    last = found["all reach", "catboost"]
    assert (last["rmse"], last["reached"]) == (pytest.approx(0.51), "2 of 2")


def test_levels_given_by_the_user() -> None:
    study = find_study("threshold")
    assert isinstance(study, ThresholdStudy)
    rows = study.at([0.45]).table(results(study), SCOPE).rows
    assert [(row["level"], row["rmse"], row["reached"]) for row in rows] == [
        ("given", 0.45, "2 of 2"),
        ("given", 0.45, "1 of 2"),
    ]
    with pytest.raises(InvalidOptionError, match="level must be finite and > 0"):
        study.at([0.0])


def test_a_method_without_a_curve_is_reported_and_not_compared() -> None:
    study = find_study("threshold")
    found = results(study)
    for result in found:
        if result["spec"]["method"] == "catboost":
            result["settings"] = {}
    table = study.table(found, SCOPE)
    assert "catboost on cp recorded no validation curve." in table.notes
    assert {row["level"] for row in table.rows} == {f"{s} sd" for s in (0.5, 0.3, 0.2, 0.15, 0.1)}
    assert all(row["seconds"] is None for row in table.rows if row["method"] == "catboost")
