"""The numbers of a report are those that the model and other libraries give."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor

from tabnsm import InvalidDataError, InvalidOptionError, TabNSMRegressor
from tabnsm.metrics import regression_metrics
from tabnsm.report import Report
from tests.report.conftest import NASTY, make_rows, two_targets

Rows = tuple[pd.DataFrame, pd.Series]


@pytest.fixture(scope="module")
def report(model: TabNSMRegressor, rows: Rows) -> Report:
    return model.report(rows[0][200:], rows[1][200:])


def test_sections_are_there(report: Report, rows: Rows) -> None:
    data = report.data
    assert data["target"] == "price"
    assert data["rows"] == {"used": 60, "given": 60, "known": 60, "table": 200}
    assert len(data["training"]["networks"]) == 2
    assert [entry["level"] for entry in data["coverage"]] == [0.5, 0.8, 0.9]  # of 20 rows
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
    monkeypatch.setattr("tabnsm.report.tried.MAX_TABLE_ROWS", 8)
    X, y = rows[0].reset_index(drop=True), rows[1].to_numpy().copy()
    y[0] = np.nan
    with pytest.warns(match="have no target"):
        data = model.report(X, y, max_rows=50).data
    assert data["rows"] == {"used": 50, "given": 260, "known": 259, "table": 8}
    assert data["target"] == "target"
    assert len(data["table"]["rows"]) == 8
    numbers = [row["row"] for row in data["table"]["rows"]]
    for row in data["table"]["rows"]:  # numbers are those of the given table
        assert row["truth"] == y[row["row"]]
    assert 0 not in numbers


def test_coverage_of_intervals(model: TabNSMRegressor, rows: Rows) -> None:
    X, y = rows[0][200:], np.asarray(rows[1][200:], dtype=float)
    assert model.calibration_ is not None
    levels = model.calibration_.reached([0.5, 0.8, 0.9, 0.95])
    assert 0.5 in levels
    found = model.report(X, y).data["coverage"]
    assert [entry["level"] for entry in found] == levels
    low, high = model.predict_interval(X, 0.5)[1].T
    inside = (low <= y) & (y <= high)
    assert found[0]["coverage"] == pytest.approx(inside.mean())
    assert found[0]["mean_width"] == pytest.approx((high - low).mean())
    for name in ("by_width", "by_prediction"):
        assert len(found[0][name]) == 3
    widest = np.argsort(high - low, kind="stable")[-(len(y) // 3) :]
    assert found[0]["by_width"][2] == pytest.approx(inside[widest].mean())


def test_without_calibration_there_is_no_coverage(model: TabNSMRegressor, rows: Rows) -> None:
    earlier = TabNSMRegressor()
    earlier.__dict__.update(model.__dict__)
    earlier.calibration_ = None
    assert earlier.report(rows[0][200:230], rows[1][200:230]).data["coverage"] is None


def test_every_target_is_described_on_the_rows_that_have_it(
    several: TabNSMRegressor, rows: Rows
) -> None:
    X, Y = rows[0][200:], two_targets(*rows)[200:]
    data = several.report(X, Y).data
    assert [part["target"] for part in data["targets"]] == ["price", "area"]
    assert [part["rows"]["used"] for part in data["targets"]] == [60, 45]
    prediction = several.predict(X)
    present = Y["area"].notna().to_numpy()
    area = data["targets"][1]
    assert area["metrics"] == regression_metrics(Y["area"][present], prediction[present, 1])
    numbers = np.array([row["row"] for row in area["table"]["rows"]])
    assert (numbers == np.flatnonzero(present)).all()
    for row in area["table"]["rows"]:
        total = area["table"]["base"] + sum(part for _, _, part in row["parts"]) + row["rest"]
        assert total == pytest.approx(row["explained"], rel=1e-4)
        assert row["explained"] == pytest.approx(prediction[row["row"], 1], rel=1e-5)
    price, own = (np.array(part["importances"]) for part in data["targets"])
    columns = list(X)
    assert columns[price.argmax()] in ("x0", "city <b>")
    assert columns[own.argmax()] == "x3"
    json.dumps(data)


def test_some_of_the_targets(several: TabNSMRegressor, rows: Rows) -> None:
    X, Y = rows[0][200:], two_targets(*rows)[200:]
    with pytest.warns(match="15 of 60 rows"):
        (part,) = several.report(X, Y[["area"]]).data["targets"]
    assert part["target"] == "area"
    assert part["rows"] == {"used": 45, "given": 60, "known": 45, "table": 200}
    train = {"X_train": rows[0][:200], "y_train": two_targets(*rows)[:200]}
    found = several.report(X, Y, **train).data["targets"][1]["comparison"]
    assert "150 rows that were given as training rows" in found["note"]


def test_targets_of_another_model_are_refused(several: TabNSMRegressor, rows: Rows) -> None:
    X, Y = rows[0][200:], two_targets(*rows)[200:]
    with pytest.raises(InvalidDataError, match="y must have targets of the model, 'price', 'area'"):
        several.report(X, Y.rename(columns={"area": "size"}))
    with pytest.raises(InvalidDataError, match=r"as many targets as fit \(2\), got 1"):
        several.report(X, Y["price"])
    with pytest.raises(InvalidDataError, match="got none of 'area'"):
        several.report(X, Y.assign(area=np.nan))
    with pytest.raises(InvalidOptionError, match="target_name must be None"):
        several.report(X, Y, target_name="cost")


def test_more_targets_than_the_model_has_are_refused(model: TabNSMRegressor, rows: Rows) -> None:
    with pytest.raises(InvalidDataError, match=r"as many targets as fit \(1\), got 2"):
        model.report(rows[0][200:], two_targets(*rows)[200:])


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
