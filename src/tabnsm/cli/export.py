"""``tabnsm export``: a model for other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tabnsm.cli.arguments import Model, Quiet, help_text
from tabnsm.cli.predict import _load

HELP = help_text(
    "Write a model as ONNX networks, with a reader that needs no torch.",
    """The folder holds the networks, the text encoder if the model has text columns, the table
    encoder as JSON and arrays, and tabnsm_reader.py, which predicts with numpy, onnxruntime and
    tokenizers. Needs pip install "tabnsm\\[onnx]".""",
    examples=(
        "tabnsm export price.safetensors --out price-onnx",
        "python price-onnx/tabnsm_reader.py price-onnx new.csv > predictions.csv",
    ),
)


def export(
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="New or empty folder to write.")],
    quiet: Quiet = False,
) -> None:
    """Load and export."""
    _load(model, quiet).export_onnx(out)
    if not quiet:
        from rich.console import Console

        n_bytes = sum(path.stat().st_size for path in out.iterdir())
        text = f"Wrote {out}: {n_bytes / 1e6:.1f} MB."
        Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)
