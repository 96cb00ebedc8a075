"""Training step of the default TabNSM against TabM, an MLP and FT-Transformer, rows per second.

    python bench/speed/model_step.py [--ft-transformer]

TabNSM steps through the training loop itself: gather, forward, objective, backward, clipping,
AdamW. A peer gathers the same rows, takes mean squared errors and does without clipping.
FT-Transformer needs most of a minute for a step of 256 rows, so that it runs apart.
"""

from __future__ import annotations

import argparse
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from flops import matrix_peak, step_flops
from measure import figure, in_turns, show
from sides import TABNSM, make_peers, make_trainer, peer_step, random_table
from torch import Tensor

GOALS = {"TabM": 1.5, "FT-Transformer": 80.0}
GOAL_SHAPE = (400, 256)


def run(
    *,
    n_features: int = 400,
    batch_sizes: tuple[int, ...] = (256, 64),
    peers: tuple[str, ...] = ("TabM", "MLP 512-512"),
    seconds: float = 20.0,
    rounds: int = 3,
) -> dict[str, Any]:
    """Rows per second of each side at each batch size, and the share of the matrix peak."""
    table = random_table(4 * max(batch_sizes), n_features)
    found, missing = make_peers(peers, n_features)
    peak = matrix_peak(seconds / 10)
    rows: list[dict[str, Any]] = []
    figures = []
    for batch_size in batch_sizes:
        trainer, state = make_trainer(table, batch_size=batch_size)
        steps = {TABNSM: functools.partial(trainer.train_step, state)}
        steps |= {name: peer_step(side, table) for name, side in found.items()}
        times = step_seconds(steps, table.n_rows, batch_size, seconds, rounds)
        achieved = step_flops(state.model, batch_size) / times[TABNSM]
        models = {TABNSM: state.model} | {name: side.model for name, side in found.items()}
        rows += [
            {
                "model": name,
                "batch": batch_size,
                "step_ms": 1e3 * time,
                "rows_per_second": batch_size / time,
                "parameters": sum(p.numel() for p in models[name].parameters()),
            }
            for name, time in times.items()
        ]
        figures += [
            figure(
                f"training rows/s against {name}, D = {n_features}, batch {batch_size}",
                times[name] / times[TABNSM],
                at_least=GOALS.get(name) if (n_features, batch_size) == GOAL_SHAPE else None,
            )
            for name in found
        ]
        figures.append(
            figure(
                f"of the matrix-product peak reached by TabNSM's step, batch {batch_size}",
                achieved / peak,
                "%",
            )
        )
    settings = {"n_features": n_features, "rounds": rounds, "matrix_peak_gflops": peak / 1e9}
    return {"settings": settings, "rows": rows, "figures": figures, "missing": missing}


def step_seconds(
    steps: Mapping[str, Callable[[Tensor], object]],
    n_rows: int,
    batch_size: int,
    seconds: float,
    rounds: int,
) -> dict[str, float]:
    """Median seconds of each side's step on shuffled batches, after one of two rows."""
    for step in steps.values():
        step(torch.arange(2))
    batches = cycle_batches(n_rows, batch_size)
    runs = {name: lambda step=step: step(next(batches)) for name, step in steps.items()}
    return in_turns(runs, seconds=seconds, rounds=rounds)


def cycle_batches(n_rows: int, batch_size: int) -> Iterator[Tensor]:
    """Batches of shuffled row numbers without end."""
    order = torch.randperm(n_rows, generator=torch.Generator().manual_seed(0))
    return itertools.cycle(order[: n_rows // batch_size * batch_size].split(batch_size))


def run_ft_transformer(*, seconds: float = 10.0, **settings: Any) -> dict[str, Any]:
    """The same against FT-Transformer, in two rounds, without the share of the peak."""
    result = run(peers=("FT-Transformer",), seconds=seconds, rounds=2, **settings)
    return result | {"figures": [entry for entry in result["figures"] if entry["unit"] == "x"]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ft-transformer", action="store_true")
    show(run_ft_transformer() if parser.parse_args().ft_transformer else run())
