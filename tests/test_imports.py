"""Imports point one way, from apps down to math, and the first one is quick."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "tabnsm"

# What each room may import, apart from itself.
ALLOWED = {
    "_version": set(),
    "errors": set(),
    "earlier": set(),
    "atomic": set(),
    "container": {"atomic", "errors"},
    "functional": {"errors"},
    "threads": set(),
    "torch_state": {"threads"},
    "kernels": {"errors", "functional", "threads"},
    "rules": {"errors"},
    "sklearn_base": set(),
    "nn": {"errors", "functional", "kernels", "rules"},
    "tables": {"errors", "work_folder"},
    "text": {"errors", "threads"},
    "work_folder": {"atomic", "errors"},
    "columns": {"errors", "rules", "tables", "text", "work_folder"},
    "metrics": {"errors"},
    "files": {"atomic", "errors", "tables"},
    "target": {"columns", "errors", "metrics", "rules", "tables"},
    "prediction": {"columns", "errors", "threads"},
}
ALLOWED["training"] = {
    "atomic",
    "errors",
    "rules",
    "container",
    "functional",
    "kernels",
    "nn",
    "columns",
    "text",
    "tables",
    "metrics",
    "target",
    "prediction",
    "sklearn_base",
    "threads",
    "work_folder",
}
ALLOWED["blend"] = {"columns", "errors", "functional", "metrics", "nn", "prediction", "target"}
ALLOWED["blend"] |= {"training"}
ALLOWED["intervals"] = {"blend", "columns", "errors", "nn", "prediction", "rules", "training"}
ALLOWED["replay"] = {"columns"}
ALLOWED["options"] = {"columns", "nn", "rules", "target", "training"}
ALLOWED["precision"] = {"rules"}
ALLOWED["model_file"] = {
    "_version",
    "precision",
    "blend",
    "earlier",
    "errors",
    "container",
    "files",
    "intervals",
    "options",
    "replay",
    *ALLOWED["options"],
}
ALLOWED["export"] = {"_version", "blend", "columns", "errors", "files", "functional", "nn"}
ALLOWED["export"] |= {"intervals", "tables", "text"}
ALLOWED["attribution"] = {
    "columns",
    "errors",
    "functional",
    "nn",
    "plotting_rows",
    "prediction",
    "rules",
}
ALLOWED["fitted"] = {
    "attribution",
    "blend",
    "errors",
    "export",
    "intervals",
    "metrics",
    "model_file",
    "prediction",
    "sklearn_base",
    "replay",
    "tables",
    "torch_state",
    "options",
    *ALLOWED["options"],
}
ALLOWED["inspection"] = {"attribution", "card", "fitted", "nn", "plotting", "report", "tables"}
ALLOWED["inspection"] |= {"files", "sklearn_base", "torch_state"}
ALLOWED["distillation"] = {"metrics", "prediction", "tables", "options", *ALLOWED["options"]}
ALLOWED["distillation"] |= {"errors", "intervals", "sklearn_base"}
ALLOWED["refit"] = ALLOWED["distillation"] | {"blend", "replay"}
ALLOWED["card"] = {"_version"}
ALLOWED["report"] = {
    "_version",
    "attribution",
    "card",
    "columns",
    "container",
    "errors",
    "metrics",
    "nn",
    "training",
}
ALLOWED["plotting"] = {"errors", "container", "training", "metrics"}
ALLOWED["hub"] = {"atomic", "errors", "inspection", "sklearn_base"}
ALLOWED["derived"] = {"distillation", "hub", "refit", "sklearn_base", "torch_state", "training"}
ALLOWED["fitting"] = set(ALLOWED)
ALLOWED["estimator"] = {"fitting", "text"}
ALLOWED["mlflow"] = {"_version", "errors", "estimator"}
ALLOWED["callbacks"] = {"errors", "files", "mlflow", "training"}
ALLOWED["plotting_attribution"] = {"errors", "container", "plotting"}
ALLOWED["plotting_rows"] = {"errors", "plotting", "plotting_attribution"}
ALLOWED["tuning"] = set(ALLOWED)
ALLOWED["demo"] = set(ALLOWED)
ALLOWED["distributed"] = set(ALLOWED)
ALLOWED["cli"] = set(ALLOWED)
ALLOWED["__init__"] = {"_version", "errors", "estimator"}


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_names(path: Path) -> set[str]:
    """What a file imports at run time; imports for type checkers do not count."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def imported_rooms(path: Path) -> set[str]:
    """Rooms of the library that a file imports."""
    names = imported_names(path)
    parts = [name.split(".") for name in names if name.split(".")[0] == "tabnsm"]
    return {part[1] if len(part) > 1 else "__init__" for part in parts}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.name))
def test_no_edge_points_back(path: Path) -> None:
    here = room(path)
    extra = imported_rooms(path) - ALLOWED[here] - {here}
    assert not extra, f"{path.name} in {here} must not import {sorted(extra)}"


def test_the_rule_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("from tabnsm.estimator import TabNSMRegressor\n")
    assert imported_rooms(bad) - ALLOWED["functional"] == {"estimator"}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.name))
def test_the_library_never_imports_its_laboratory(path: Path) -> None:
    assert "tabnsm_bench" not in {name.split(".")[0] for name in imported_names(path)}
    # Nor under another name of the module, or for type checkers alone.
    assert "tabnsm_bench" not in path.read_text()


def test_the_laboratory_is_seen_where_it_is_imported(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def later():\n    from tabnsm_bench.claims import Claim\n")
    assert imported_names(bad) == {"tabnsm_bench.claims.Claim"}


@pytest.mark.slow
def test_heavy_packages_are_not_imported_up_front() -> None:
    heavy = {
        "pandas",
        "pyarrow",
        "scipy.stats",
        "polars",
        "sentence_transformers",
        "transformers",
        "matplotlib",
        "typer",
        "huggingface_hub",
        "mlflow",
        "tensorboard",
    }
    code = "import sys, tabnsm.callbacks; from tabnsm import TabNSMRegressor; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(run.stdout.split())


def test_oracles_import_nothing_from_the_package() -> None:
    for path in (Path(__file__).parent / "oracles").glob("*.py"):
        if path.name != "attention_cases.py":  # draws the cases, computes nothing
            assert not imported_rooms(path), path.name


MAX_FILE_LINES, MAX_BODY_LINES = 400, 50


def long_functions(path: Path) -> list[str]:
    """Functions whose body, without the docstring, a reader has to scroll through."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if body and (body[-1].end_lineno or 0) - body[0].lineno >= MAX_BODY_LINES:
                found.append(node.name)
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.name))
def test_files_and_functions_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_FILE_LINES
    # scikit-learn wants a constructor that only assigns, one line per option.
    allowed = {"__init__"} if path.name == "estimator.py" else set()
    assert set(long_functions(path)) <= allowed
