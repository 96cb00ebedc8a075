from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tabnsm_bench import evidence
from tabnsm_bench.baselines import lightgbm
from tabnsm_bench.baselines.catalog import BASELINES
from tabnsm_bench.evidence import Provenance, code_state, fingerprint, resolved_options, source_hash
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.studies import STUDIES, Scope


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A checkout with a package of two files."""
    package = tmp_path / "checkout" / "src" / "package"
    (package / "cli").mkdir(parents=True)
    (package / "errors.py").write_text("")
    (package / "cli" / "app.py").write_text("")
    checkout = tmp_path / "checkout"
    git(tmp_path, "init", "-q", "checkout")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "First")
    return package


def test_the_commit_and_whether_the_code_differs_from_it(library: Path) -> None:
    checkout = library.parents[1]
    state = code_state(library)
    assert state["commit"] == git(checkout, "rev-parse", "HEAD")
    assert state["committed_at"] == git(checkout, "log", "-1", "--format=%cI")
    assert state["dirty"] is False
    (checkout / "result.json").write_text("a new result is no change of the code")
    assert code_state(library) == state
    (library / "new.py").write_text("")
    changed = code_state(library)
    assert changed["dirty"] is True
    assert changed["library"] != state["library"]


def test_an_environment_inside_a_checkout_has_no_commit(library: Path) -> None:
    checkout = library.parents[1]
    (checkout / ".gitignore").write_text(".venv\n")
    installed = checkout / ".venv" / "package"
    installed.mkdir(parents=True)
    (installed / "errors.py").write_text("")
    assert code_state(installed) == {
        "commit": None,
        "committed_at": None,
        "dirty": None,
        "library": source_hash(installed),
    }


def test_the_command_line_is_not_behind_any_figure(library: Path) -> None:
    before = source_hash(library)
    (library / "cli" / "app.py").write_text("changed = True")
    assert source_hash(library) == before
    (library / "errors.py").write_text("changed = True")
    assert source_hash(library) != before


def test_without_git_only_the_source_is_known(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert code_state(library) == {
        "commit": None,
        "committed_at": None,
        "dirty": None,
        "library": source_hash(library),
    }


def test_a_fingerprint_follows_the_resolved_options(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = RunSpec("lightgbm", "cpu_small")
    before = fingerprint(spec)
    assert before == fingerprint(RunSpec("lightgbm+learning_rate=0.05", "cpu_small"))
    assert before != fingerprint(RunSpec("lightgbm", "cpu_small", seed=1))
    monkeypatch.setattr(lightgbm, "ROUNDS", 10)  # a new default, under the old name
    assert fingerprint(spec) != before


def test_fingerprints_of_tabnsm_follow_its_preset() -> None:
    spec = RunSpec("tabnsm-paper", "cpu_small")
    assert resolved_options(spec)["architecture"]["gates"] == "feature"
    assert fingerprint(spec) == fingerprint(RunSpec("tabnsm-paper+gates=feature", "cpu_small"))
    assert fingerprint(spec) != fingerprint(RunSpec("tabnsm-paper+gates=head", "cpu_small"))
    assert fingerprint(spec) != fingerprint(RunSpec("tabnsm-paper", "cpu_small", max_epochs=7))


def test_every_method_that_runs_here_has_one() -> None:
    ready = [key for key, info in BASELINES.items() if info.state == "ready"]
    assert len(ready) > 10
    names = [*ready, "tabnsm-fast", "ridge+tuned=3", "toy_methods:Linear"]
    found = [fingerprint(RunSpec(name, "cpu_small")) for name in names]
    assert None not in found
    assert len(set(found)) == len(names)
    assert fingerprint(RunSpec("no-such-method", "cpu_small")) is None


def test_a_factory_of_the_user_is_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BASELINES["tabptm"].user_variable, "mine:Model")
    assert resolved_options(RunSpec("tabptm+a=1", "t")) == {"a": 1, "factory": "mine:Model"}


def code(commit: str, at: str, library: str) -> dict[str, Any]:
    state = {"commit": commit, "committed_at": at, "library": library, "dirty": False}
    return {"code": evidence.empty_code() | state | {"fingerprint": "f"}}


def test_notes_and_remarks() -> None:
    new, same = code("b" * 40, "2026-02", "new"), code("c" * 40, "2026-01", "new")
    old, unknown = code("a" * 40, "2026-01", "old"), {"code": evidence.empty_code()}
    provenance = Provenance([old, new, same, unknown])
    assert provenance.remarks == []
    assert provenance.notes(new) == provenance.notes(same) == []
    assert provenance.notes(old) == ["by earlier code (commit aaaaaaa)"]
    assert provenance.notes(unknown) == ["from before results recorded their code and options"]
    assert provenance.row_notes([("x", [new, old]), ("y", [old])]) == [
        "By earlier code (commit aaaaaaa): x, y."
    ]
    assert Provenance([]).remarks == []


def test_studies_name_the_rows_of_earlier_code() -> None:
    from bench.tests.made_results import run

    study, scope = STUDIES["attention"], Scope(("cpu_small",), (0,), "paper")
    results = [run(spec, code=None) for spec in study.all_specs(scope)]
    shown = "All runs are from before results recorded their code and options."
    assert study.table(results, scope).notes == [shown]
    for result in results:
        result |= code("b" * 40, "2026-02", "new")
    assert study.table(results, scope).notes == []
    results[1] |= code("a" * 40, "2026-01", "old")
    assert study.table(results, scope).notes == ["By earlier code (commit aaaaaaa): full."]
