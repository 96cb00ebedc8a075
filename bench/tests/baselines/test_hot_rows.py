"""Networks that look categories up are the networks on one-hot rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tabnsm_bench.baselines import hot_rows, networks
from tabnsm_bench.baselines.catalog import make
from tabnsm_bench.baselines.common import Columns
from tabnsm_bench.baselines.dcn import dcn_v2
from tabnsm_bench.baselines.snn import snn
from tabnsm_bench.baselines.torch_models import NetworkMethod
from tabnsm_bench.protocol import Prepared

COLUMNS = Columns((0, 7, 0, 60, 0, 5))
ONLY_CATEGORIES = Columns((7, 60))
NETWORKS = {
    "mlp": networks.mlp(d_block=16),
    "resnet": networks.resnet(d_block=16),
    "mlp-plr": networks.mlp_plr(d_block=16),
    "tabm": networks.tabm(d_block=16, k=4),
    "snn": snn(d_block=16),
}


def both_ways(
    method: NetworkMethod, columns: Columns, monkeypatch: pytest.MonkeyPatch
) -> tuple[nn.Module, nn.Module]:
    """The network on one-hot rows, and the one that looks categories up."""
    built = []
    for max_columns in (10**6, 10):
        monkeypatch.setattr(hot_rows, "_MAX_COLUMNS", max_columns)
        torch.manual_seed(0)
        built.append(method.build(columns, method.options).eval())
    return built[0], built[1]


def some_rows(columns: Columns, n_rows: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    codes = [torch.randint(s, (n_rows,), generator=generator) for s in columns.category_sizes]
    codes[0][0], codes[-1][0] = 0, columns.category_sizes[-1] - 1
    return torch.randn(n_rows, columns.n_numbers, generator=generator), torch.stack(codes, dim=1)


@pytest.mark.parametrize("columns", [COLUMNS, ONLY_CATEGORIES], ids=["mixed", "only categories"])
@pytest.mark.parametrize("key", NETWORKS)
def test_outputs_and_gradients_are_those_of_one_hot_rows(
    key: str, columns: Columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense, looking = both_ways(NETWORKS[key], columns, monkeypatch)
    kinds = {type(module) for module in looking.modules()}
    assert kinds & {hot_rows.HotLinear, hot_rows.HotBatchEnsemble}
    rows = some_rows(columns, 40)
    expected, found = dense(*rows), looking(*rows)
    torch.testing.assert_close(found, expected)
    expected.pow(2).sum().backward()
    found.pow(2).sum().backward()
    wanted = dict(dense.named_parameters())
    assert dict(looking.named_parameters()).keys() == wanted.keys()
    for name, parameter in looking.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[name].grad, rtol=1e-4, atol=1e-6)


def test_a_network_that_sees_the_row_twice_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    dense, long = both_ways(dcn_v2(d_block=16), COLUMNS, monkeypatch)
    rows = some_rows(COLUMNS, 40)
    assert torch.equal(long(*rows), dense(*rows))


@pytest.mark.parametrize("key", ["mlp", "tabm"])
def test_fits_as_on_one_hot_rows(
    key: str, mixed: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"d_block": 16, "max_epochs": 3} | ({"k": 4} if key == "tabm" else {})
    predictions = []
    for max_columns in (10**6, 1):
        monkeypatch.setattr(hot_rows, "_MAX_COLUMNS", max_columns)
        method = make(key, options)
        method.fit(mixed, seed=0, time_limit=None, n_threads=1)
        predictions.append(method.predict(mixed.test.x, None))
    assert predictions[0].std() > 0
    np.testing.assert_allclose(predictions[1], predictions[0], rtol=1e-3, atol=1e-3)
