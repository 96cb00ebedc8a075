"""The files that run elsewhere agree with the project: workflows, hooks, templates, pins."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [ROOT / ".github" / "ISSUE_TEMPLATE" / name for name in ("bug.yml", "feature.yml")]
PYTHONS = sorted(re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"])))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def commands(workflow: Path) -> list[str]:
    jobs = read(workflow)["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def test_workflows_are_found() -> None:
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "wheels.yml"]


def test_ci_runs_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    called = [
        word
        for command in commands(ROOT / ".github" / "workflows" / "ci.yml")
        for word in re.findall(r"^make ((?:[a-z]+ ?)+)", command)[0].split()
    ]
    assert {"test", "docs", "unit"} <= set(called) <= targets


def test_ci_and_wheels_cover_the_pythons_of_the_project() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    assert jobs["unit"]["strategy"]["matrix"]["python"] == PYTHONS
    (excluded,) = jobs["unit"]["strategy"]["matrix"]["exclude"]
    setup = next(step for step in jobs["all"]["steps"] if "setup-python" in step.get("uses", ""))
    assert excluded == {"os": jobs["all"]["runs-on"], "python": setup["with"]["python-version"]}
    builds = PROJECT["tool"]["cibuildwheel"]["build"]
    assert builds == [f"cp{python.replace('.', '')}-*" for python in PYTHONS]


def test_wheels_are_built_by_the_options_of_the_project() -> None:
    built = " ".join(commands(ROOT / ".github" / "workflows" / "wheels.yml"))
    assert "python -m cibuildwheel" in built
    assert "python -m build --sdist" in built
    # In one process as a shell would run it: the quotes must survive TOML.
    code = PROJECT["tool"]["cibuildwheel"]["test-command"][1].removeprefix("python -c ")
    assert code.count('"') == 2
    compile(code.strip('"'), "test-command", "exec")


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_forms_ask_for_something(path: Path) -> None:
    form = read(path)
    assert form["name"]
    assert form["description"]
    questions = [item for item in form["body"] if item["type"] != "markdown"]
    assert len({item["id"] for item in questions}) == len(questions)
    assert any(item.get("validations", {}).get("required") for item in questions)


def test_hooks_run_what_the_project_installs() -> None:
    installed = " ".join(PROJECT["project"]["optional-dependencies"]["dev"])
    for repository in read(ROOT / ".pre-commit-config.yaml")["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            program, *arguments = hook["entry"].split()
            assert program.removeprefix(".venv/bin/") in installed
            files = [word for word in arguments if word.endswith(".py")]
            assert all((ROOT / name).is_file() for name in files)


@pytest.mark.parametrize("extra", ["docs", "dev"])
def test_requirements_are_pinned(extra: str) -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {re.sub("[-_.]+", "-", line.split("==")[0]).lower() for line in lines}
    for requirement in PROJECT["project"]["optional-dependencies"][extra]:
        name = re.split(r"[\[<>=]", requirement)[0]
        assert name.startswith("tabnsm") or re.sub("[-_.]+", "-", name).lower() in pinned, name


def test_dev_includes_docs() -> None:
    (own,) = [r for r in PROJECT["project"]["optional-dependencies"]["dev"] if "tabnsm[" in r]
    assert "docs" in own
