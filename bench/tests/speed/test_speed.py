"""Every benchmark runs at a tiny size, and the page of figures matches the committed ones."""

from __future__ import annotations

import functools
import importlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tabnsm import kernels
from tabnsm.nn import TabNSM
from tabnsm_bench.evidence import source_hash
from tests.fakes import FakeTextEncoder

ROOT = Path(__file__).resolve().parents[2]
FIGURE_KEYS = {"what", "value", "unit", "at_least", "at_most"}


@pytest.fixture(autouse=True)
def _scripts_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "speed"))


def script(name: str) -> ModuleType:
    return importlib.import_module(name)


def check(
    result: Mapping[str, Any], n_rows: int, n_figures: int, *, can_be_zero: bool = False
) -> None:
    """The common form: JSON, rows of positive numbers, figures with their fields."""
    assert json.loads(json.dumps(result, allow_nan=False)) is not None
    assert result["missing"] == []
    assert len(result["rows"]) == n_rows
    assert len(result["figures"]) == n_figures
    for entry in result["figures"]:
        assert set(entry) == FIGURE_KEYS
        assert math.isfinite(entry["value"])
        assert entry["value"] > 0 or (can_be_zero and entry["value"] == 0)
        assert entry["at_least"] is None or entry["at_most"] is None


def values(result: Mapping[str, Any], key: str) -> dict[str, float]:
    """A column of the rows by the first one."""
    return {next(iter(row.values())): row[key] for row in result["rows"]}


def test_operator() -> None:
    result = script("attention_operator").run(shapes=((20, 8), (40, 8)), batch=2, seconds=0.0)
    check(result, n_rows=2, n_figures=2)
    row = result["rows"][1]
    ratio = row["dense_step_ms"] / row["sparse_step_ms"]
    assert result["figures"][1]["value"] == ratio
    assert row["n_features"] == 40


@pytest.mark.slow
def test_layers_have_time_and_memory() -> None:
    pytest.importorskip("native_sparse_attention_pytorch")
    operator = script("attention_operator")
    # Large enough for the arrays of a step to show in the memory of a process.
    result = operator.run_layers(n_features=60, d_head=8, batch=16, seconds=0.0)
    check(result, n_rows=3, n_figures=4)
    peaks = values(result, "peak_mb")
    assert peaks[operator.NSA] > 2 * peaks["sparse"]


def test_both_layers_have_the_same_projections() -> None:
    pytest.importorskip("native_sparse_attention_pytorch")
    operator = script("attention_operator")
    shapes = {
        name: sorted(p.shape for p in parameters(build(40, 8, 2)) if p.ndim == 2)
        for name, build in (("ours", operator.layer_step), ("theirs", operator.nsa_step))
    }
    ours, theirs = shapes["ours"], shapes["theirs"]
    # Ours has one offset per place for all heads, theirs one per head, as a tensor of three axes.
    assert [shape for shape in ours if shape != (operator.BLOCK, 8)] == theirs


def parameters(run: Any) -> list[nn.Parameter]:
    layer = next(cell.cell_contents for cell in run.__closure__ if is_module(cell.cell_contents))
    return list(layer.parameters())


def is_module(value: object) -> bool:
    return isinstance(value, nn.Module)


@pytest.mark.slow
def test_model_step() -> None:
    pytest.importorskip("tabm")
    pytest.importorskip("rtdl_revisiting_models")
    step = script("model_step")
    result = step.run(n_features=20, batch_sizes=(16, 8), seconds=0.0, rounds=1)
    check(result, n_rows=6, n_figures=6)
    assert all(entry["at_least"] is None for entry in result["figures"])  # not the goal's shape
    for row in result["rows"]:
        assert row["rows_per_second"] == pytest.approx(1e3 * row["batch"] / row["step_ms"])
    ft = step.run_ft_transformer(n_features=20, batch_sizes=(8,), seconds=0.0)
    check(ft, n_rows=2, n_figures=1)


@pytest.mark.slow
def test_goals_are_beside_the_shape_they_are_meant_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tabm")
    step = script("model_step")
    assert step.GOAL_SHAPE == (400, 256)
    monkeypatch.setattr(step, "GOAL_SHAPE", (20, 8))
    result = step.run(n_features=20, batch_sizes=(16, 8), peers=("TabM",), seconds=0.0, rounds=1)
    ratios = [entry for entry in result["figures"] if entry["unit"] == "x"]
    assert [entry["at_least"] for entry in ratios] == [None, 1.5]


@pytest.mark.parametrize("n_features", [5, 130])
def test_flops_are_those_that_torch_counts(
    n_features: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    flops = script("flops")
    # A width that of the other kernels only the attention's serves: torch counts all the rest.
    monkeypatch.setattr(kernels, "serves_head", lambda features: False)
    model, n_rows = TabNSM(n_features, d_token=24), 3
    with FlopCounterMode(display=False) as counter:
        model(torch.randn(n_rows, n_features)).sum().backward()
    products = n_rows * flops.PRODUCT_STEP * flops.product_flops(model)
    assert counter.get_total_flops() == pytest.approx(products, rel=0.02)
    assert flops.step_flops(model, n_rows) > products


def test_attention_flops_count_the_keys_of_every_query() -> None:
    flops = script("flops")
    model = TabNSM(30, d_token=8, n_heads=2, window_size=2, n_selected_blocks=1)
    window = sum(min(29, d + 2) - max(0, d - 2) + 1 for d in range(30))
    keys = 30 * 3 + window + 30 * 10
    assert flops.attention_flops(model) == 2 * 2 * 8 * keys


@pytest.mark.slow
def test_prediction() -> None:
    pytest.importorskip("tabm")
    pytest.importorskip("rtdl_revisiting_models")
    result = script("prediction").run(n_features=20, n_rows=80, batch_sizes=(16, 64), seconds=0.0)
    check(result, n_rows=4, n_figures=3)
    batches = values(result, "batch")
    assert batches["TabM"] in (16, 64)


def test_latency() -> None:
    result = script("latency").run(n_features=10, n_rows=40, seconds=0.0)
    check(result, n_rows=2, n_figures=2)
    assert set(values(result, "median_ms")) == {"module", "predict(DataFrame)"}


def test_grid_loss() -> None:
    result = script("grid_loss").run(n_features=10, batch=16, cells=(100, 1000), seconds=0.0)
    check(result, n_rows=4, n_figures=4)


def test_rise_refresh() -> None:
    result = script("rise_refresh").run(tables=((8, 64),), seconds=0.0)
    check(result, n_rows=1, n_figures=1)


@pytest.mark.slow
def test_step_profile() -> None:
    result = script("step_profile").run(n_features=10, batch=16, steps=2)
    check(result, n_rows=15, n_figures=1)
    shares = values(result, "share")
    assert 0.3 < sum(shares.values()) <= 1
    assert result["figures"][0]["value"] == pytest.approx(sum(shares.values()))


def test_kernel_step() -> None:
    result = script("kernel_step").run(shapes=((3, 16),), seconds=0.05)
    (row,) = result["rows"]
    ratios = [row["kernels_ms"] / row[f"{side}_ms"] for side in ("update", "operators")]
    assert [found["value"] for found in result["figures"]] == ratios


def test_step_stages() -> None:
    result = script("step_stages").run(widths=(3, 12), batch=16, repeats=2, matrix=64)
    check(result, n_rows=2, n_figures=2)
    for row in result["rows"]:
        assert 0 < row["interaction_ms"] < row["step_ms"]


def test_exponents_of_a_power_law() -> None:
    scaling = script("scaling")
    widths = (512, 1024, 16384)
    overall, worst = scaling.exponents("time", "D", widths, [n**1.05 for n in widths])
    assert overall["value"] == pytest.approx(1.05)
    assert worst["value"] == pytest.approx(1.05)
    assert (overall["at_most"], worst["at_most"]) == (1.1, 1.2)
    overall, worst = scaling.exponents("time", "D", widths, [1.0, 4.0, 16.0])
    assert overall["value"] == pytest.approx(0.8)
    assert worst["value"] == pytest.approx(2.0)


def test_scaling_measures_steps_and_epochs() -> None:
    scaling = script("scaling")
    assert scaling.step_seconds(8, 4, seconds=0.0) > 0
    assert scaling.epoch_seconds(40, 8) > 0


@pytest.mark.slow
def test_export() -> None:
    result = script("export").run(n_fit=60, counts=(1, 3), seconds=0.0)
    check(result, n_rows=4, n_figures=4)
    assert {row["side"] for row in result["rows"]} == {"predict", "exported"}


@pytest.mark.slow
def test_import_time() -> None:
    result = script("import_time").run(ours="import time; time.sleep(2)", base="pass", rounds=1)
    check(result, n_rows=2, n_figures=1)
    assert values(result, "seconds")["import time; time.sleep(2)"] > 2


@pytest.mark.slow
def test_text(data_dir: Path) -> None:
    pytest.importorskip("sentence_transformers")
    result = script("text").run(
        data_dir=data_dir, counted_table="nyc_air_quality", n_strings=20, rounds=1
    )
    check(result, n_rows=3, n_figures=8)
    assert result["settings"]["n_strings"] == 20
    seconds, cosines = values(result, "seconds"), values(result, "minimum_cosine")
    speed, cosine, *_, joined, separate = result["figures"]
    plain, ours = seconds["sentence-transformers"], seconds["tabnsm, float32"]
    assert (speed["value"], speed["at_least"]) == (plain / ours, 1.3)
    assert (cosine["value"], cosine["at_least"]) == (cosines["tabnsm, float32"], 0.999)
    assert cosine["value"] > 0.99999
    assert 0.98 < cosines["tabnsm, int8"] < cosine["value"]
    assert joined["value"] == result["settings"]["n_distinct_strings"] > 10 * separate["value"]


def test_text_without_its_peer_counts_all_the_same(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = script("text")
    monkeypatch.setattr(text, "peer", lambda *_: script("sides").peer("no_such_module", "st"))
    result = text.run(data_dir=data_dir, counted_table="nyc_air_quality")
    assert result["missing"] == ["st is not installed: pip install st"]
    assert result["rows"] == []
    assert len(result["figures"]) == 2


def test_encoding_memory(data_dir: Path) -> None:
    result = script("encoding_memory").run(
        data_dir=data_dir, n_rows=3000, text_encoder=FakeTextEncoder(384)
    )
    # Within this process, memory that other tests have freed may do.
    check(result, n_rows=1, n_figures=1, can_be_zero=True)
    row = result["rows"][0]
    assert row["n_features"] == 390
    assert 0 < row["distinct_texts"] <= 3000


@pytest.mark.slow
def test_end_to_end(data_dir: Path) -> None:
    pytest.importorskip("catboost")
    pytest.importorskip("lightgbm")
    result = script("end_to_end").run(data_dir=data_dir, n_rows=600, time_limit=2.0)
    check(result, n_rows=2, n_figures=2)
    assert result["settings"]["n_train"] == 432
    for row in result["rows"]:
        assert row["level"] == max(row["tabnsm_best"], row["peer_best"])
        curve = result["curves"][row["peer"]]
        reached = min(seconds for seconds, score in curve if score <= row["level"])
        assert row["peer_seconds"] == pytest.approx(reached, abs=1e-3)


def test_a_missing_peer_is_named_with_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = script("sides")
    monkeypatch.setitem(sides.PEERS, "TabM", lambda _: sides.peer("no_such_module", "tabm"))
    found, missing = sides.make_peers(("TabM", "MLP 512-512"), 4)
    assert list(found) == ["MLP 512-512"]
    assert missing == ["tabm is not installed: pip install tabm"]


def test_turns_alternate_and_give_medians() -> None:
    order: list[str] = []
    measure = script("measure")
    runs = {name: lambda name=name: order.append(name) for name in ("a", "b")}
    times = measure.in_turns(runs, seconds=0.0, rounds=3)
    assert order == ["a", "b"] * 3
    assert set(times) == {"a", "b"}


@pytest.mark.slow
def test_peak_memory_is_that_of_the_run() -> None:
    measure = script("measure")
    make_ones = functools.partial(functools.partial, np.ones)
    peak = measure.peak_memory(make_ones, ((2, 2),), ((2048, 4096),))
    assert peak == pytest.approx(64, rel=0.1)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Results of two small benchmarks as `run.py` writes them."""
    run = script("run")
    here = run.machine()
    folder = tmp_path / "speed"
    folder.mkdir()
    results = {
        "latency": script("latency").run(n_features=8, n_rows=40, seconds=0.0),
        "operator": script("attention_operator").run(
            shapes=((20, 8), (40, 8)), batch=1, seconds=0.0
        ),
    }
    for name, result in results.items():
        record = here | {"name": name, "measured_at": "2026-01-02T03:04:05", "result": result}
        (folder / f"{name}.json").write_text(json.dumps(record))
    return folder


PAGE = """# Title
<!-- table: latency -->
old
<!-- end -->
<!-- table: text -->
<!-- end -->
<!-- picture: operator -->
<!-- end -->
<!-- table: peers -->
<!-- end -->
"""


def test_report_fills_tables_and_links_and_draws(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    notebook = tmp_path / "notebook.md"
    notebook.write_text("<!-- table: figures -->\n<!-- end -->\n")
    command = ["report.py", "--results", str(records), "--pages", str(page), str(notebook)]
    monkeypatch.setattr("sys.argv", command)
    script("report").main()
    filled = page.read_text()
    assert "| call | median ms |\n| --- | --- |\n| module |" in filled
    assert "old" not in filled
    assert "<!-- table: text -->\nNot measured yet: `make bench`.\n<!-- end -->" in filled
    assert "features](page/operator.png)" in filled
    assert "| compared with | what | TabNSM |\n| --- | --- | --- |\n<!-- end -->" in filled
    assert "| one row, module, D = 8, median |" in notebook.read_text()
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["operator.png"]
    assert (tmp_path / "page" / "operator.png").read_bytes().startswith(b"\x89PNG")
    script("report").main()
    assert page.read_text() == filled


@pytest.mark.slow
@pytest.mark.parametrize("name", ["performance.md", "performance-notebook.md"])
def test_the_pages_match_the_committed_results(name: str) -> None:
    report, docs = script("report"), ROOT / "docs"
    records = report.read_records(ROOT / "results" / "speed")
    pictures = {path.stem for path in (docs / "performance").glob("*.png")}
    page = (docs / name).read_text()
    assert report.fill(page, records, "performance", pictures) == page
    assert pictures == set(script("pictures").draw_all(records))


def test_pages_show_every_figure_and_every_ratio_to_a_peer() -> None:
    report = script("report")
    records = report.read_records(ROOT / "results" / "speed")
    peers = report.table("peers", records)
    rows = {row["model"]: row["step_ms"] for row in records["model_step"]["result"]["rows"][:2]}
    ratio = rows["TabM"] / rows["TabNSM"]
    assert f"| TabM | training rows/s, D = 400, batch 256 | {ratio:.3g} times as fast |" in peers
    curves = records["end_to_end_cpu_small"]["result"]["rows"]
    trees = next(row for row in curves if row["peer"] == "LightGBM")
    ratio = trees["tabnsm_seconds"] / trees["peer_seconds"]
    level = f"{trees['level']:.3g} on cpu_small | {ratio:.3g} times as long"
    assert f"| LightGBM | time to validation RMSE {level} |" in peers
    assert "dense" not in peers  # parts of TabNSM are no concern of a user's
    figures = report.table("figures", records)
    assert all(entry["what"] in figures for entry in report.all_figures(records))


def run_of(method: str, rmse: float, **settings: Any) -> dict[str, Any]:
    spec = {"method": method, "dataset": "nyc_air_quality", "encoding": "default"} | settings
    measured = {"metrics": {"test": {"rmse": rmse}}, "fit_seconds": 51.7, "peak_memory_mb": 575.5}
    return {"spec": spec} | measured


def test_choices_are_runs_of_one_split_without_limits() -> None:
    runs = [
        run_of("tabnsm-fast", 3.394),
        run_of("tabnsm-fast", 1.0, split=43),
        run_of("catboost", 2.0, encoding="paper"),
        run_of("tabnsm-default", 2.5, max_epochs=3),
    ]
    lines = script("report").choices_table(runs).splitlines()
    assert lines[2:] == ["| nyc_air_quality | TabNSM (fast) | 3.39 | 51.7 | 576 |"]


@pytest.mark.slow
def test_run_keeps_what_is_there_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = script("run")
    tiny = run.Benchmark("rise_refresh", settings={"tables": ((4, 32),), "seconds": 0.0})
    broken = run.Benchmark("no_such_file")
    monkeypatch.setattr(run, "BENCHMARKS", {"good": tiny, "bad": broken})
    here, path = run.machine(), tmp_path / "good.json"
    path.write_text(json.dumps({"fingerprint": run.fingerprint(tiny, here)}))
    assert run.run_all(["good"], tmp_path, tmp_path, here) == []  # by name: measured anyway
    written = path.read_text()
    assert json.loads(written)["result"]["rows"][0]["n_rows"] == 32
    assert json.loads(written)["code"]["library"] == source_hash()
    capsys.readouterr()
    assert run.run_all([], tmp_path, tmp_path, here) == ["bad"]
    assert path.read_text() == written
    printed = capsys.readouterr().out
    assert "there already" in printed
    assert "failed: ModuleNotFoundError: No module named 'no_such_file'" in printed
    assert not (tmp_path / "bad.json").exists()


def test_run_leaves_out_what_needs_absent_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = script("run")
    monkeypatch.setattr(run, "BENCHMARKS", {"e": run.Benchmark("end_to_end", needs_data=True)})
    assert run.run_all([], tmp_path, tmp_path / "none", run.machine()) == []
    assert "Give --data-dir" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2.314, "x", "2.31x"),
        (0.0123, "x", "0.0123x"),
        (1234.5, "x", "1,234x"),
        (0.0045, "%", "0.450 %"),
        (12.34, "ms", "12.3 ms"),
        (0.0, "", "0"),
    ],
)
def test_figures_are_formatted(value: float, unit: str, text: str) -> None:
    assert script("measure").format_value(value, unit) == text


def some_frame() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=120), "b": rng.integers(0, 9, 120)})
    frame["note"] = [f"row {k} says {rng.integers(100)}" for k in range(120)]
    frame["remark"] = rng.choice([f"remark {k}" for k in range(12)], 120)
    return frame, frame["a"].to_numpy() + frame["b"].to_numpy()


@pytest.mark.slow
def test_text_columns_joined_and_apart() -> None:
    X, y = some_frame()
    options: dict[str, Any] = {"max_epochs": 1, "d_token": 8, "text_encoder": FakeTextEncoder(24)}
    module = script("text_columns")
    runs = [
        module.run(X, y, text_columns=kind, seed=0, **options) for kind in ("joined", "separate")
    ]
    assert [run["text_columns"] for run in runs] == ["joined", "separate"]
    assert runs[0]["n_text_features"] == 24
    assert all(math.isfinite(run["test"]["rmse"]) for run in runs)
    assert "separate (D = " in module.summarize(runs)


@pytest.mark.slow
def test_a_screen_sees_no_test_row(tmp_path: Path) -> None:
    from sklearn.model_selection import train_test_split

    X, y = some_frame()
    frame = X.drop(columns=["note"]).assign(y=y, leak=y, row=np.arange(120))
    frame.to_parquet(tmp_path / "made.parquet")
    about = {"file": "made.parquet", "target": "y", "drop": ["leak"]}
    (tmp_path / "made.json").write_text(json.dumps(about))
    module = script("screen")
    rows, _ = module.training_rows(tmp_path, "made", 42, 1000)
    _, test = train_test_split(frame, test_size=0.2, random_state=42)
    assert list(rows.columns) == ["a", "b", "remark", "row"]
    assert len(rows) == 96
    assert not set(rows["row"]) & set(test["row"])
    record = module.screen(tmp_path, "made", n_rows=60, max_epochs=1, d_token=8)
    assert len(record["rmse"]) == 2
    assert record["code"]["library"] == source_hash()
    path = tmp_path / "made-screens.json"
    module.keep(path, record | {"prototype": "another"})
    module.keep(path, record | {"seconds": 1.0})
    module.keep(path, record)
    assert [entry["seconds"] for entry in json.loads(path.read_text())] == [record["seconds"]] * 2


def test_screens_go_by_the_names_of_today(tmp_path: Path) -> None:
    module, path = script("screen"), tmp_path / "made.json"
    path.write_text(json.dumps([{"options": {"n_pieces": 16}, "rmse": [2.0, 3.0]}]))
    assert "| made | `n_bins=16` | 2.5 | 2, 3 |" in module.table(tmp_path)
    module.keep(path, {"options": {"n_bins": 16}, "rmse": [1.0, 1.0]})
    assert [entry["rmse"] for entry in json.loads(path.read_text())] == [[1.0, 1.0]]


def test_the_notebook_has_all_screens() -> None:
    module = script("screen")
    page = (ROOT / "docs" / "accuracy-notebook.md").read_text()
    assert all(page.count(mark) == 1 for mark in module.MARKS)
    assert module.fill(page, ROOT / "results" / "studies" / "screens") == page


def test_tables_to_carry_over_to_are_as_described(tmp_path: Path) -> None:
    import pandas as pd

    module = script("carry_over")
    module.write_tables(tmp_path)
    for name, table in module.TABLES.items():
        about = json.loads((tmp_path / f"{name}.json").read_text())
        frame = pd.read_parquet(tmp_path / about["file"])
        assert about["target"] == table.target
        assert {about["target"], *about["drop"]} < set(frame.columns)
        assert len(frame) >= 2000
        assert np.isfinite(frame[about["target"]].to_numpy(dtype=float)).all()


def test_the_page_has_what_carried_over() -> None:
    module = script("carry_over")
    page = (ROOT / "docs" / "accuracy.md").read_text()
    assert all(page.count(mark) == 1 for mark in module.MARKS)
    assert module.fill(page, ROOT / "results" / "studies" / "carry_over") == page
