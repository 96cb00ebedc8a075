"""Prediction of encoded rows, in tiles, and the device that it runs on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from tabnsm.errors import InvalidOptionError
from tabnsm.threads import map_in_threads

if TYPE_CHECKING:
    from tabnsm.columns import EncodedTable

TILE_TOKENS, MIN_TILE, MAX_TILE = 8192, 16, 256
COMPILED_TILE_TOKENS = 2**17  # nothing but tokens is kept for all rows of a tile


def tile_rows(n_features: int, max_tokens: int = TILE_TOKENS) -> int:
    """Rows per forward pass outside training where the batch may change a row's bits.

    As many as the cache likes, by width alone. Tiles are always filled up, because matrix products
    of other shapes may round differently: a row's prediction must not depend on its neighbours.

    Examples
    --------
    >>> [tile_rows(n) for n in (12, 100, 400, 16384)]
    [256, 64, 16, 16]
    """
    tile = MAX_TILE
    while tile > MIN_TILE and tile * n_features > max_tokens:
        tile //= 2
    return tile


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Evaluate a module, and put those of its parts that were in training back to it.

    A module that is in evaluation mode, as those of fitted models are, is not written to, so that
    many threads can use it at the same time.

    Examples
    --------
    >>> layer = nn.Linear(1, 1)
    >>> with eval_mode(layer):
    ...     layer.training
    False
    >>> layer.training
    True
    """
    in_training = [part for part in model.modules() if part.training]
    if in_training:
        model.eval()
    try:
        yield
    finally:
        for part in in_training:
            part.training = True


def predict_rows(model: nn.Module, table: EncodedTable, device: torch.device) -> np.ndarray:
    """Standardised predictions of all rows in float32, in tiles of fixed size.

    The model takes encoded rows, (B, D), to (B, t); the result is (n_rows, t).
    """
    alone = getattr(model, "rows_are_independent", False)
    size = tile_rows(table.n_features, COMPILED_TILE_TOKENS if alone else TILE_TOKENS)
    predictions = np.empty((table.n_rows, getattr(model, "n_targets", 1)), dtype=np.float32)

    @torch.inference_mode()  # holds for the thread that enters it
    def predict_tile(start: int) -> None:
        stop = min(start + size, table.n_rows)
        rows = torch.arange(start, stop if alone else start + size).clamp_(max=stop - 1)
        tile = model(table.gather(rows).to(device)).float().cpu().numpy()  # (size, t)
        predictions[start:stop] = tile[: stop - start]

    starts = range(0, table.n_rows, size)
    with eval_mode(model):
        if len(starts) > 1 and device.type == "cpu":
            map_in_threads(predict_tile, starts)
        else:
            for start in starts:
                predict_tile(start)
    return predictions


def resolve_device(device: str) -> torch.device:
    """The torch device that an option names; "auto" is a GPU where there is one.

    Raises `InvalidOptionError` if this machine does not have it.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=device)
        return torch.device(device)
    except (AssertionError, RuntimeError, TypeError) as error:
        raise InvalidOptionError(
            'device must be "auto" or a torch device that this machine has, such as "cpu" or '
            f'"cuda:0", got {device!r} ({error}).'
        ) from error
