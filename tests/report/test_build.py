"""The numbers of a report are those that the model and other libraries give."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor

from tabnsm import InvalidOptionError, TabNSMRegressor
from tabnsm.metrics import regression_metrics
from tabnsm.report import Report
from tests.report.conftest import NASTY, make_rows

Rows = tuple[pd.DataFrame, pd.Series]


@pytest.fixture(scope="module")
def report(model: TabNSMRegressor, rows: Rows) -> Report:
    return model.report(rows[0][200:], rows[1][200:])


def test_sections_are_there(report: Report, rows: Rows) -> None:
    data = report.data
    assert data["target"] == "price"
    assert data["rows"] == {"used": 60, "given": 60, "table": 200}
    assert len(data["training"]["networks"]) == 2
    assert data["coverage"] is None or len(data["coverage"]) == 4
    assert [row["name"] for row in data["data"]] == list(rows[0].columns)
    json.dumps(data)


def test_metrics_and_points_are_the_models(
    model: TabNSMRegressor, report: Report, rows: Rows
) -> None:
    X, y = rows[0][200:], rows[1][200:]
    prediction = model.predict(X)
    assert report.data["metrics"] == regression_metrics(y, prediction)
    assert report.data["scatter"]["prediction"] == prediction.tolist()
    counts = np.array(report.data["calibration"]["counts"])
    assert counts.sum() == 60
    assert counts.shape == (20, 20)
    near = report.data["metrics"]["within_one_bin"]
    assert report.data["calibration"]["within_one"] == pytest.approx(near)


def test_residuals_of_all_groups_are_all_residuals(
    model: TabNSMRegressor, report: Report, rows: Rows
) -> None:
    X, y = rows[0][200:], rows[1][200:]
    residual = y - model.predict(X)
    parts = report.data["residuals"]
    assert parts[0]["name"] == "prediction"
    assert {"x0", "city <b>", "sold"} <= {part["name"] for part in parts}
    for part in parts:
        sizes = [group["n"] for group in part["groups"]]
        assert sum(sizes) == 60
        total = sum(group["n"] * group["mean"] for group in part["groups"])
        assert total == pytest.approx(residual.sum())
    by_x1 = next(part for part in parts if part["name"] == "x1")
    assert by_x1["groups"][-1]["label"] == "missing"


def test_rows_add_up(report: Report) -> None:
    table = report.data["table"]
    assert len(table["rows"]) == 60
    for row in table["rows"]:
        total = table["base"] + sum(part for _, _, part in row["parts"]) + row["rest"]
        assert total == pytest.approx(row["explained"], rel=1e-4)
        assert row["explained"] == pytest.approx(row["prediction"], rel=1e-5)


def test_drift_is_found(report: Report) -> None:
    found = {row["name"]: row for row in report.data["data"]}
    assert found["sold"]["is_large"]  # the rows of the report are later
    assert not found["x0"]["is_large"]
    assert found["x1"]["missing_now"] == pytest.approx(1 / 7, abs=0.02)
    assert found["empty"]["kind"] == "drop"
    assert found["empty"]["missing_now"] is None


@pytest.mark.slow
def test_unseen_categories_and_holes_are_drift(model: TabNSMRegressor) -> None:
    X, y = make_rows(40, seed=1)
    X["city <b>"] = "Nowhere"
    X["x2"] = np.nan
    with pytest.warns(match="city"):
        found = {row["name"]: row for row in model.report(X, y).data["data"]}
    assert found["city <b>"]["is_large"]
    assert "100.0% not seen" in found["city <b>"]["drift"]
    assert found["x2"]["is_large"]
    assert found["x2"]["missing_now"] == 1


def test_others_are_cross_validated_or_trained_on_given_rows(
    model: TabNSMRegressor, report: Report, rows: Rows
) -> None:
    methods = report.data["comparison"]["methods"]
    assert {method["name"] for method in methods} == {
        "TabNSM", "HistGradientBoosting", "ridge regression", "mean"}  # fmt: skip
    scores = [method["metrics"]["rmse"] for method in methods]
    assert scores == sorted(scores)
    assert "5-fold cross-validation" in report.data["comparison"]["note"]
    X, y = rows
    given = model.report(X[200:], y[200:], X_train=X[:200], y_train=y[:200]).data["comparison"]
    assert "200 rows that were given as training rows" in given["note"]
    mean = DummyRegressor().fit(X[:200], y[:200]).predict(X[200:])
    found = next(method for method in given["methods"] if method["name"] == "mean")
    assert found["metrics"] == pytest.approx(regression_metrics(y[200:], mean))


def test_few_rows_are_not_compared(model: TabNSMRegressor, rows: Rows) -> None:
    data = model.report(rows[0][:5], rows[1][:5]).data
    assert [method["name"] for method in data["comparison"]["methods"]] == ["TabNSM"]


def test_large_tables_are_sampled_and_it_is_said(
    model: TabNSMRegressor, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tabnsm.report.build.MAX_TABLE_ROWS", 8)
    X, y = rows[0].reset_index(drop=True), rows[1].to_numpy().copy()
    y[0] = np.nan
    with pytest.warns(match="have no target"):
        data = model.report(X, y, max_rows=50).data
    assert data["rows"] == {"used": 50, "given": 260, "table": 8}
    assert data["target"] == "target"
    assert len(data["table"]["rows"]) == 8
    numbers = [row["row"] for row in data["table"]["rows"]]
    for row in data["table"]["rows"]:  # numbers are those of the given table
        assert row["truth"] == y[row["row"]]
    assert 0 not in numbers


def test_coverage_of_models_that_have_intervals(model: TabNSMRegressor, rows: Rows) -> None:
    class WithIntervals(TabNSMRegressor):
        def predict_interval(self, X, confidence_level=0.9):  # type: ignore[no-untyped-def]
            points = self.predict(X)
            return points, np.stack([points - 1e6, points + 1e6], axis=1)

    other = WithIntervals()
    other.__dict__.update(model.__dict__)
    found = other.report(rows[0][200:], rows[1][200:]).data["coverage"]
    assert [entry["level"] for entry in found] == [0.5, 0.8, 0.9, 0.95]
    assert {entry["share"] for entry in found} == {1.0}
    assert found[0]["width"] == pytest.approx(2e6)
    assert found[0]["terciles"] == [1.0, 1.0, 1.0]


def test_written_and_refused(model: TabNSMRegressor, rows: Rows, tmp_path: Path) -> None:
    X, y = rows[0][:30], rows[1][:30]
    report = model.report(X, y, tmp_path / "r.html", target_name="cost")
    page = (tmp_path / "r.html").read_text()
    assert page == report.to_html()
    assert "<title>cost: TabNSM report</title>" in page
    assert NASTY not in page
    assert page.count("</script>") == 2
    for link in ("http://", "https://", "src=", "@import", "url("):
        assert link not in page.replace("http://www.w3.org/2000/svg", "").replace("img src=x", "")
    with pytest.raises(InvalidOptionError, match="path must be a file"):
        report.save(tmp_path / "no" / "folder" / "r.html")
    with pytest.raises(InvalidOptionError, match="got only X_train"):
        model.report(X, y, X_train=X)
    with pytest.raises(InvalidOptionError, match="max_rows must be >= 2, got 1"):
        model.report(X, y, max_rows=1)
