from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm_bench.evidence import code_state, empty_code, fingerprint
from tabnsm_bench.execute import execute, make_method, peak_memory_mb
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.store import empty_result


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def test_a_run_is_described_in_full(table_dir: Path) -> None:
    phases: list[str] = []
    spec = RunSpec("toy_methods:Linear", "toy", seed=5, sample_fraction=0.5)
    result = execute(spec, table_dir, n_threads=2, on_phase=phases.append)
    assert phases == ["encode", "fit", "predict"]
    assert result.keys() == empty_result(spec).keys()
    assert RunSpec.from_dict(result["spec"]) == spec
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert (result["state"], result["error"]) == ("done", None)
    assert result["dataset"]["rows"] == 200
    assert result["dataset"]["columns"] == result["dataset"]["features"] == 2
    assert result["dataset"]["partial"] is False
    assert (result["split"]["n_train"], result["split"]["n_test"]) == (72, 40)
    assert result["settings"] == {"seed": 5}
    assert result["notes"] == ["72 of 144 training rows, drawn at random", "a toy"]
    assert result["versions"]["scikit-learn"] == version("scikit-learn")
    assert result["machine"]["n_threads"] == 2
    for part in ("test", "validation"):
        assert 0.05 < result["metrics"][part]["rmse"] < 0.2
    assert None not in (result["fit_seconds"], result["predict_seconds"], result["encode_seconds"])
    assert result["peak_memory_mb"] >= result["memory_before_fit_mb"] > 10
    assert result["dataset"]["judged_by"] == "rmse"
    assert result["code"] == empty_code() | code_state() | {"fingerprint": fingerprint(spec)}


def test_arrays_and_frames_lead_to_the_same_figures(table_dir: Path) -> None:
    by_arrays = execute(RunSpec("toy_methods:Linear", "toy"), table_dir)
    by_frames = execute(RunSpec("toy_methods:Linear+takes_frames=true", "toy"), table_dir)
    assert by_frames["metrics"]["test"]["rmse"] == pytest.approx(
        by_arrays["metrics"]["test"]["rmse"], rel=1e-5
    )
    assert by_frames["encode_seconds"] is None
    assert by_frames["dataset"]["features"] is None


def test_predictions_that_are_no_numbers_are_a_failure(table_dir: Path) -> None:
    with pytest.raises(InvalidDataError, match="finite"):
        execute(RunSpec("toy_methods:Diverged", "toy"), table_dir)


def test_epochs_reach_the_method_as_an_option() -> None:
    with pytest.raises(TypeError, match="max_epochs"):
        make_method(RunSpec("toy_methods:Linear", "toy", max_epochs=3))


@pytest.mark.parametrize("method", ["toy_methods:Missing", "no_such_module:Linear"])
def test_a_factory_that_cannot_be_imported_is_named(method: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"got '{method}'"):
        make_method(RunSpec(method, "toy"))


def test_a_part_of_the_papers_table_is_called_one(data_dir: Path) -> None:
    result = execute(RunSpec("toy_methods:Linear", "sarcos_test4449"), data_dir)
    assert result["dataset"]["partial"] is True
    assert result["dataset"]["paper"] == "SA"


@pytest.mark.slow
def test_memory_grows_with_what_is_used() -> None:
    before = peak_memory_mb()
    block = bytearray(60_000_000 + int((before or 0) * 1e6))
    after = peak_memory_mb()
    del block
    if before is not None:
        assert after is not None
        assert after > before + 20


def test_a_constant_target_has_no_r2(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i % 3},7\n" for i in range(60))
    (tmp_path / "same.csv").write_text("a,b,y\n" + rows)
    result = execute(RunSpec("toy_methods:Linear", "same", target="y"), tmp_path)
    assert result["metrics"]["test"]["rmse"] == pytest.approx(0, abs=1e-6)
    assert result["metrics"]["test"]["r2"] is result["metrics"]["validation"]["r2"] is None
