"""``tabnsm bench``: the paper's evaluation, one command per step."""

from __future__ import annotations

import typer

from tabnsm.cli.arguments import help_text
from tabnsm_bench.cli import (
    baselines,
    datasets,
    figures,
    intervals,
    run,
    statistics,
    studies,
    suite,
    tune,
)

app = typer.Typer(
    name="bench",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=help_text(
        "Reproduce the paper's evaluation, on your data, beside its baselines.",
        """Tables are files in a data folder, results are JSON files in a results folder; every
        command can be interrupted and given again.""",
        examples=(
            "tabnsm bench datasets --data-dir data",
            "tabnsm bench run --methods tabnsm-default,ridge --datasets CP --data-dir data",
            "tabnsm bench statistics",
        ),
    ),
)

for _commands in (datasets, baselines, tune, run, statistics, figures, studies, suite, intervals):
    _commands.register(app)
