"""One core's training step of the default model by stage, from narrow to wide tables.

    OMP_NUM_THREADS=1 python bench/speed/step_stages.py

Seconds of this thread's processor time, the least of many short repeats, so that a busy machine
moves them little. Shares are of the machine's matrix-product peak as torch reaches it, measured in
the same run; the compiled kernels can pass it where they use wider vectors than torch's library.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from flops import MATRIX, step_flops
from measure import Run, figure, show
from model_step import cycle_batches
from sides import make_trainer, random_table

from tabnsm.prediction import predict_rows

GOAL = 0.5


def run(
    *,
    widths: tuple[int, ...] = (8, 32, 115, 400),
    batch: int = 256,
    repeats: int = 20,
    matrix: int = MATRIX,
) -> dict[str, Any]:
    """Milliseconds of a step and of its stages, and the share of the peak, at each width."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        a, out = torch.randn(matrix, matrix), torch.empty(matrix, matrix)
        peak = 2.0 * matrix**3 / least_seconds(lambda: torch.mm(a, a, out=out), repeats)
        rows = [step_stages(n_features, batch, repeats, peak) for n_features in widths]
    finally:
        torch.set_num_threads(n_threads)
    figures = [
        figure(
            f"of the matrix-product peak in one core's step, D = {row['n_features']}",
            row["share_of_peak"],
            "%",
            at_least=GOAL,
        )
        for row in rows
    ]
    settings = {"batch": batch, "repeats": repeats, "matrix_peak_gflops": peak / 1e9}
    return {"settings": settings, "rows": rows, "figures": figures, "missing": []}


def step_stages(n_features: int, batch: int, repeats: int, peak: float) -> dict[str, Any]:
    """A step at one width; stages forward and backward, so that their sum is nearly the step."""
    table = random_table(4 * batch, n_features)
    trainer, state = make_trainer(table, batch_size=batch)
    batches = cycle_batches(table.n_rows, batch)
    model, target = state.model, trainer.standard[:batch]
    step = least_seconds(lambda: trainer.train_step(state, next(batches)), repeats)

    x = table.dense[:batch]
    tokens = model.tokenizer(x).detach().requires_grad_()
    features = model.interaction(tokens, model.n_pools).detach()
    inputs = torch.randn(batch, model.head.mlp1[0].weight.shape[1], requires_grad=True)
    prediction = model(x).detach().requires_grad_()
    d_tokens, d_features = torch.randn_like(tokens), torch.randn_like(features)
    weights = list(model.parameters())

    gradients = [torch.randn_like(weight) for weight in weights]

    def update() -> None:
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient
        state.optimizer.move(state.average, trainer.config.gradient_clip)

    stages: dict[str, Run] = {
        "tokenizer": lambda: model.tokenizer(x).backward(d_tokens),
        "interaction": lambda: model.interaction(tokens, model.n_pools).backward(d_features),
        "head": lambda: model.head(inputs).sum().backward(),
        "loss": lambda: trainer.objective.batch_loss(prediction, target).backward(),
        "update": update,
    }
    found = {f"{name}_ms": 1e3 * least_seconds(run, repeats) for name, run in stages.items()}
    device = torch.device("cpu")
    predicting = least_seconds(lambda: predict_rows(model, table, device), max(2, repeats // 5))
    return {
        "n_features": n_features,
        "step_ms": 1e3 * step,
        "share_of_peak": step_flops(model, batch) / step / peak,
        **found,
        "predicted_rows_per_second": table.n_rows / predicting,
    }


def least_seconds(run: Run, repeats: int) -> float:
    """Processor time of this thread in the fastest of some repeats, after a warm-up."""
    run()
    times = []
    for _ in range(repeats):
        started = time.thread_time()
        run()
        times.append(time.thread_time() - started)
    return min(times)


if __name__ == "__main__":
    show(run())
