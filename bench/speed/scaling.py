"""Growth of the default model's training step with the features, and of an epoch with the rows.

    python bench/speed/scaling.py

Every width runs in fresh processes: one for the time of a step (gather, forward, objective,
backward, clipping, AdamW), one for the memory by which the first step raises the process.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch
from measure import Run, figure, in_turns, peak_memory, show
from sides import make_trainer, random_table

OVERALL_GOAL, DOUBLING_GOAL = 1.1, 1.2
GOAL_WIDTHS = (512, 16384)


def run(
    *,
    widths: Sequence[int] = (512, 1024, 2048, 4096, 8192, 16384),
    batch: int = 32,
    lengths: Sequence[int] = (2048, 4096, 8192, 16384, 32768),
    epoch_width: int = 50,
    seconds: float = 2.0,
    rounds: int = 3,
) -> dict[str, Any]:
    """Time and memory of a step at each width, time of an epoch at each number of rows."""
    # A ratio of two times shows every hiccup of the machine: each is the better of some rounds.
    steps = [
        [in_fresh_process(step_seconds, n_features, batch, seconds) for n_features in widths]
        for _ in range(rounds)
    ]
    rows: list[dict[str, Any]] = [
        {
            "n_features": n_features,
            "n_rows": batch,
            "step_ms": 1e3 * min(times),
            "peak_mb": peak_memory(make_step, (widths[0] // 2, 2), (n_features, batch)),
        }
        for n_features, *times in zip(widths, *steps, strict=True)
    ]
    epochs = [
        min(in_fresh_process(epoch_seconds, n_rows, epoch_width) for _ in range(rounds))
        for n_rows in lengths
    ]
    figures = [
        *exponents("time of a step", "D", widths, [row["step_ms"] for row in rows]),
        *exponents("memory of a step", "D", widths, [row["peak_mb"] for row in rows]),
        *exponents("time of an epoch", "N", lengths, epochs),
    ]
    rows += [
        {"n_features": epoch_width, "n_rows": n_rows, "epoch_ms": 1e3 * time}
        for n_rows, time in zip(lengths, epochs, strict=True)
    ]
    settings = {"batch": batch, "seconds": seconds, "rounds": rounds}
    return {"settings": settings, "rows": rows, "figures": figures, "missing": []}


def exponents(
    what: str, axis: str, sizes: Sequence[int], costs: Sequence[float]
) -> list[dict[str, Any]]:
    """Figures of the exponent from the first to the last size, and of the worst step between."""
    ends = (sizes[0], sizes[-1])
    has_goal = axis == "D" and ends == GOAL_WIDTHS
    points = list(zip(sizes, costs, strict=True))
    worst = max(slope(*pair) for pair in itertools.pairwise(points))
    between = f"{axis} = {ends[0]:,} to {ends[1]:,}"
    return [
        figure(
            f"exponent of the {what}, {between}",
            slope(points[0], points[-1]),
            "",
            at_most=OVERALL_GOAL if has_goal else None,
        ),
        figure(
            f"exponent of the {what}, worst doubling, {between}",
            worst,
            "",
            at_most=DOUBLING_GOAL if has_goal else None,
        ),
    ]


def slope(first: tuple[int, float], last: tuple[int, float]) -> float:
    """Exponent of the power law through two points."""
    return math.log(last[1] / first[1]) / math.log(last[0] / first[0])


def in_fresh_process(function: Callable[..., float], *arguments: Any) -> float:
    """Call it where no other size has left its memory or its threads behind."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_call, function, arguments, torch.get_num_threads()).result()


def _call(function: Callable[..., float], arguments: tuple[Any, ...], n_threads: int) -> float:
    torch.set_num_threads(n_threads)
    return function(*arguments)


def make_step(n_features: int, batch: int) -> Run:
    """A training step of the default model on one batch."""
    trainer, state = make_trainer(random_table(batch, n_features), batch_size=batch)
    return functools.partial(trainer.train_step, state, torch.arange(batch))


def step_seconds(n_features: int, batch: int, seconds: float) -> float:
    """Median time of a step."""
    step = make_step(n_features, batch)
    for _ in range(2):  # the optimizer's state, and memory that the allocator then keeps
        step()
    return in_turns({"step": step}, seconds=seconds, rounds=3)["step"]


def epoch_seconds(n_rows: int, n_features: int) -> float:
    """Time of an epoch in batches of 256, the mean over one period of RISE."""
    trainer, state = make_trainer(random_table(n_rows, n_features), batch_size=256)
    trainer.train_step(state, torch.arange(2))
    period = state.sampler.config.refresh_every

    def epochs() -> None:
        for _ in range(period):
            trainer.train_epoch(state)

    return in_turns({"epochs": epochs}, seconds=0.0, rounds=1)["epochs"] / period


if __name__ == "__main__":
    show(run())
