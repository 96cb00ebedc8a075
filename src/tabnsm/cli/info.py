"""``tabnsm info``, ``demo`` and ``cache``: look at a model, at the method, at the disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tabnsm.cli.arguments import AsJson, Model, help_text
from tabnsm.cli.display import announce

INFO_HELP = help_text(
    "Show what a model file holds: columns, options, training, size.",
    "The model's text encoder is not needed for this.",
    examples=("tabnsm info price.safetensors", "tabnsm info price.safetensors --json"),
)
DEMO_HELP = help_text(
    "Train on 10,000 real loans with free text, beside boosting and ridge regression.",
    """Takes about four minutes on two cores and needs pip install "tabnsm\\[demo]". Writes the
    model, the predictions, a picture and a report to open in a browser.""",
)
CACHE_HELP = help_text(
    "Show or clear the embeddings of texts that are kept on disk.",
    "The environment variable TABNSM_CACHE says where they are.",
)


def info(
    model: Model,
    as_json: AsJson = False,
) -> None:
    """Describe a model file."""
    from tabnsm.columns import ColumnReport
    from tabnsm.columns.schema import ColumnSpec
    from tabnsm.container import read_container
    from tabnsm.earlier import upgrade_meta
    from tabnsm.model_file import check_meta
    from tabnsm.precision import unpack_weights
    from tabnsm.training.history import History

    tensors, meta = read_container(model)
    check_meta(model, meta)
    meta = upgrade_meta(meta)
    encoder = meta["encoder"]
    specs = [ColumnSpec.from_dict(entries) for entries in encoder["columns"]]
    columns = ColumnReport.from_specs(specs, encoder)
    weights = unpack_weights({k: v for k, v in tensors.items() if k.startswith("model.")})
    facts = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "format_version": meta["format_version"],
        "n_parameters": sum(tensor.numel() for tensor in weights.values()),
        "weights_dtype": meta.get("weights_dtype", "float32"),
        "options": meta["options"],
        "targets": [entry.get("name", str(k + 1)) for k, entry in enumerate(meta["target"])],
        "has_linear_fit": any(entry["linear_scaler"] is not None for entry in meta["target"]),
        "blend": blend_facts(meta.get("blend")),
        "n_kept_rows": len(tensors.get("replay.dense", ())),
        "history": meta["history"],
        "further_histories": meta.get("further_histories", []),
        "validation_rmse": (
            rmse := meta.get(
                "validation_rmse", History.from_dict(meta["history"]).best.validation_rmse
            )
        ),
        "best_score": meta.get("best_score", rmse),
        "columns": columns.to_dict(),
    }
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        _print_info(facts, columns)


def blend_facts(blend: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Name, weight and number of trees of each member of a blend; none without one."""
    if blend is None:
        return []
    networks = {"name": "networks", "weight": blend["network_weight"]}
    kept = ("name", "weight", "n_trees")
    entries = [*blend["members"], *([blend["neighbors"]] if blend["neighbors"] else [])]
    return [networks, *({k: v for k, v in entry.items() if k in kept} for entry in entries)]


def _print_info(facts: dict[str, Any], columns: Any) -> None:
    from rich.console import Console

    from tabnsm.training.history import History

    console = Console(highlight=False)
    console.print(
        f"{facts['file']}: {facts['bytes'] / 1e6:.1f} MB, "
        f"{facts['n_parameters']:,} parameters of {facts['weights_dtype']}, file format "
        f"{facts['format_version']}",
        markup=False,
        soft_wrap=True,
    )
    console.print(columns)
    for part, options in facts["options"].items():
        shown = ", ".join(f"{name}={value!r}" for name, value in options.items())
        console.print(f"{part}: {shown}", markup=False)
    if len(facts["targets"]) > 1:
        console.print(f"targets: {', '.join(facts['targets'])}", markup=False, soft_wrap=True)
    if facts["has_linear_fit"]:
        console.print("linear fit: networks predict its residual")
    for member in facts["blend"]:
        trees = f", {member['n_trees']:,} trees" if "n_trees" in member else ""
        console.print(f"member: {member['name']}, weight {member['weight']:.3g}{trees}")
    if facts["n_kept_rows"]:
        console.print(f"rows of the fit that refit learns from: {facts['n_kept_rows']:,}")
    for state in (facts["history"], *facts["further_histories"]):
        history = History.from_dict(state)
        metric = f"validation {history.eval_metric.upper()}"
        console.print(
            f"history: {len(history)} epochs in {history.seconds:.1f} s, best epoch "
            f"{history.best_epoch} with {metric} {history.metric_of(history.best):.6g}, "
            f"stopped: {history.stop_reason}",
            soft_wrap=True,
        )
    if facts["further_histories"] or facts["blend"]:
        console.print(f"together: {metric} {facts['best_score']:.6g}")


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")] = Path(
        "demo-output"
    ),
) -> None:
    """Run the demo."""
    announce("Loading the table and what trains on it", quiet=False)
    from tabnsm.demo import run_demo

    run_demo(out)


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all embeddings.")] = False,
) -> None:
    """Show or clear the text cache."""
    from tabnsm.text import cache_info, clear_cache

    if clear:
        print(f"Removed {clear_cache():,} embeddings.")
        return
    state = cache_info()
    print(
        f"{state.path}: {state.n_entries:,} embeddings, {state.n_bytes / 2**20:.1f} MB "
        f"of at most {state.limit_bytes / 2**20:.0f} MB"
    )
