"""Prediction of the default TabNSM against TabM, an MLP and FT-Transformer, rows per second.

    python bench/speed/prediction.py

TabNSM predicts an encoded table through `predict_rows`, as the estimator does; its tiles have a
fixed size. A peer predicts in inference mode with the batch size, of a few, that suits it best.
"""

from __future__ import annotations

from typing import Any

import torch
from measure import Run, figure, in_turns, show
from sides import TABNSM, Peer, make_peers, make_tabnsm, random_table

from tabnsm.columns.encoded import EncodedTable
from tabnsm.prediction import predict_rows

GOALS, GOAL_FEATURES = {"TabM": 2.0}, 400
# FT-Transformer predicts some 40 rows a second: as many rows as the others would take minutes.
SLOW = {"FT-Transformer": 64}


def run(
    *,
    n_features: int = 400,
    n_rows: int = 2048,
    peers: tuple[str, ...] = ("TabM", "MLP 512-512", "FT-Transformer"),
    batch_sizes: tuple[int, ...] = (32, 128, 512, 2048),
    seconds: float = 30.0,
) -> dict[str, Any]:
    """Rows per second of each side."""
    table = random_table(n_rows, n_features)
    model = make_tabnsm(table, torch.Generator().manual_seed(0))
    found, missing = make_peers(peers, n_features)
    runs: dict[str, Run] = {TABNSM: lambda: predict_rows(model, table, torch.device("cpu"))}
    counts, sizes = {TABNSM: n_rows}, {}
    for name, side in found.items():
        side.model.eval()
        counts[name] = min(SLOW.get(name, n_rows), n_rows)
        part = EncodedTable(table.dense[: counts[name]])
        sizes[name] = best_batch_size(side, part, batch_sizes)
        runs[name] = peer_prediction(side, part, sizes[name])
    runs[TABNSM]()
    times = in_turns(runs, seconds=seconds)
    speed = {name: counts[name] / time for name, time in times.items()}
    rows = [
        {"model": name, "rows_per_second": value, "batch": sizes.get(name, "fixed tiles")}
        for name, value in speed.items()
    ]
    figures = [
        figure(
            f"prediction rows/s against {name}, D = {n_features}",
            speed[TABNSM] / speed[name],
            at_least=GOALS.get(name) if n_features == GOAL_FEATURES else None,
        )
        for name in found
    ]
    settings = {"n_features": n_features, "n_rows": n_rows, "batch_sizes": list(batch_sizes)}
    return {"settings": settings, "rows": rows, "figures": figures, "missing": missing}


def peer_prediction(side: Peer, table: EncodedTable, batch_size: int) -> Run:
    """Mean over the outputs of all rows, batch by batch."""

    @torch.inference_mode()
    def predict() -> list[torch.Tensor]:
        return [side.call(x).mean(1) for x in table.dense.split(batch_size)]

    return predict


def best_batch_size(side: Peer, table: EncodedTable, batch_sizes: tuple[int, ...]) -> int:
    """The fastest batch size, by two rounds in turns after a warm-up."""
    useful = sorted({min(size, table.n_rows) for size in batch_sizes})
    runs = {size: peer_prediction(side, table, size) for size in useful}
    peer_prediction(side, EncodedTable(table.dense[:2]), 2)()
    times = in_turns({str(size): run for size, run in runs.items()}, seconds=0, rounds=2)
    return min(useful, key=lambda size: times[str(size)])


if __name__ == "__main__":
    show(run())
