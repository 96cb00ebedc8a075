from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tabnsm.columns import EncodedTable
from tabnsm.errors import InvalidOptionError
from tabnsm.nn import Ensemble, TabNSM
from tabnsm.prediction import predict_rows, resolve_device, tile_rows

CPU = torch.device("cpu")


def encoded(n_rows: int) -> EncodedTable:
    return EncodedTable(torch.randn(n_rows, 5, generator=torch.Generator().manual_seed(3)))


@pytest.mark.parametrize("n_rows", [1, 255, 256, 257, 600])
def test_tiles_always_have_the_same_shape(n_rows: int) -> None:
    shapes: set[tuple[int, ...]] = set()

    class Sum(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            shapes.add(tuple(x.shape))
            return x.sum(-1, keepdim=True)

    table = encoded(n_rows)
    expected = table.dense.sum(-1, keepdim=True)
    np.testing.assert_allclose(predict_rows(Sum(), table, CPU), expected, rtol=1e-5)
    assert shapes == {(tile_rows(5), 5)} == {(256, 5)}


@pytest.mark.parametrize("n_targets", [1, 3])
def test_predictions_have_a_column_per_target(n_targets: int) -> None:
    networks = [TabNSM(5, d_token=8, n_targets=n_targets).eval() for _ in range(2)]
    table = encoded(300)
    for model in (networks[0], Ensemble(networks)):
        prediction = predict_rows(model, table, CPU)
        assert (prediction.shape, prediction.dtype) == ((300, n_targets), np.float32)
        with torch.no_grad():
            np.testing.assert_allclose(prediction, model(table.dense), atol=1e-5)


def test_the_mode_of_the_model_is_kept() -> None:
    for mode in (True, False):
        model = TabNSM(5, d_token=8).train(mode)
        predict_rows(model, encoded(4), CPU)
        assert model.training is mode


def test_devices() -> None:
    assert resolve_device("cpu") == CPU
    assert resolve_device("auto").type in ("cpu", "cuda")
    with pytest.raises(InvalidOptionError, match='device must be "auto" or a torch device'):
        resolve_device("abacus")
