from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from bench.tests.made_results import run
from bench.tests.test_evidence import git
from tabnsm_bench.evidence import empty_code
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.store import write_result

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "record_commits.py"


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record_commits", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_old_results_get_the_commits_of_their_file_and_nothing_else(
    tmp_path: Path, script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit(*seeds: int, seconds: float = 1.0) -> str:
        for seed in seeds:
            result = run(RunSpec("ridge", "toy", seed=seed), fit_seconds=seconds)
            del result["code"]
            write_result(result, tmp_path / "results")
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", f"Run {seeds}")
        return git(tmp_path, "rev-parse", "HEAD")

    git(tmp_path, "init", "-q")
    first, again = commit(0, 1), commit(1, seconds=2.0)
    (tmp_path / "results/ridge/toy/paper-42-0.json").rename(tmp_path / "gone.json")
    other = commit(2)  # resembles the one that goes, but is a run of its own
    (tmp_path / "gone.json").rename(tmp_path / "results/ridge/toy/paper-42-0.json")
    commit(0)
    git(tmp_path, "mv", "results", "moved")
    git(tmp_path, "commit", "-qm", "Move")
    (tmp_path / "moved" / "speed.json").write_text('{"figures": []}')
    paths = sorted((tmp_path / "moved" / "ridge" / "toy").iterdir())
    before = [path.read_text() for path in paths]

    monkeypatch.setattr("sys.argv", ["record_commits.py", str(tmp_path / "moved")])
    script.main()
    results = [json.loads(path.read_text()) for path in paths]
    commits = [(r["code"]["commit_added"], r["code"]["commit_changed"]) for r in results]
    assert commits[1:] == [(first, again), (other, other)]
    for result, text in zip(results, before, strict=True):
        assert result.pop("code").keys() == empty_code().keys()
        assert script.as_text(result) == text
    after = [path.read_text() for path in paths]
    script.main()
    assert [path.read_text() for path in paths] == after


def test_a_file_that_no_run_wrote_is_refused(tmp_path: Path, script: ModuleType) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"spec": {}}')
    with pytest.raises(ValueError, match="must be as a run writes it"):
        script.record(path)
