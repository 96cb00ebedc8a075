"""A network in operators of ONNX predicts what the network does, for any number of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from tabnsm.export.network import OnnxAttention, OnnxNetwork, rows_per_run
from tabnsm.export.onnx_file import check_file, save, trace
from tabnsm.nn import TabNSM

BINS = torch.tensor([[[-1.0, 0.0], [1.0, 2.0]]])


def network(n_features: int, seed: int = 0, **options: Any) -> TabNSM:
    generator = torch.Generator().manual_seed(seed)
    options = {"d_token": 16, "head_width": 16, "generator": generator} | options
    return TabNSM(n_features, **options).eval()


def bins(n_features: int, without: int) -> torch.Tensor:
    """Two bins for each feature but the last ones, one of which has a single bin."""
    found = BINS.repeat(n_features, 1, 1)
    found[n_features - without :, 0] = torch.inf
    found[0, 0, 1] = torch.inf
    return found


CASES = {
    "numbers": {"n_features": 5},
    "all blocks": {"n_features": 25, "bins": bins(25, 1)},
    "all in bins": {"n_features": 7, "bins": bins(7, 0)},
    "categories": {"n_features": 3, "category_sizes": (3, 2, 4)},
    "mixed": {"n_features": 45, "category_sizes": (0, 5) * 22 + (3,), "bins": bins(45, 44)},
    "one feature": {"n_features": 1},
    "groups": {"n_features": 50, "max_exact_features": 20},
    "blocks of several sizes": {"n_features": 33, "selection_block_size": 4, "compress_stride": 5},
    "full": {"n_features": 12, "attention": "full"},
    "mamba": {"n_features": 4, "attention": "mamba"},
    "paper": {"n_features": 31, "mixer": False, "gates": "feature", "n_token_pools": 0},
    "several targets": {"n_features": 6, "n_targets": 3},
}


@torch.no_grad()
def rows(model: TabNSM, n_rows: int) -> torch.Tensor:
    x = 2 * torch.randn(n_rows, model.n_features, generator=torch.Generator().manual_seed(1))
    categories = model.tokenizer.categorical
    x[:, categories] = torch.randint(0, 6, (n_rows, len(categories))).float()  # also unknown codes
    return x


@pytest.mark.parametrize("name", CASES)
def test_it_predicts_what_the_network_does(name: str) -> None:
    model = network(**CASES[name])
    x = rows(model, 40)
    with torch.no_grad():
        torch.testing.assert_close(OnnxNetwork(model)(x), model(x), atol=2e-5, rtol=1e-4)


def test_narrow_tables_take_the_faster_way() -> None:
    attention = {name: OnnxNetwork(network(**CASES[name])).interaction.attention for name in CASES}
    assert isinstance(attention["mixed"], OnnxAttention)
    assert attention["mixed"].is_dense
    assert not attention["groups"].is_dense
    assert not attention["blocks of several sizes"].is_dense
    assert not isinstance(attention["full"], OnnxAttention)


def test_rows_of_a_run_fall_with_the_width() -> None:
    assert rows_per_run(1) == 256
    assert rows_per_run(10**9) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed", "groups", "all in bins"])
def test_the_file_takes_any_number_of_rows_and_other_weights(name: str, tmp_path: Path) -> None:
    first, second = (network(seed=seed, **CASES[name]) for seed in (0, 1))
    x = rows(first, 70)
    exported = OnnxNetwork(first)
    program = trace(exported, x[:3], {0: "n_rows"}, ("features", "standard"))
    for model in (first, second):
        save(program, OnnxNetwork(model), tmp_path / "n.onnx")
        check_file(tmp_path / "n.onnx", OnnxNetwork(model), x)
        session = onnxruntime.InferenceSession(tmp_path / "n.onnx")
        with torch.no_grad():
            wanted = model(x).numpy()
        for n_rows in (1, 2, 70):
            found = session.run(None, {"features": x[:n_rows].numpy()})[0]
            np.testing.assert_allclose(found, wanted[:n_rows], atol=2e-5, rtol=1e-4)


@pytest.mark.slow
def test_a_file_that_computes_something_else_is_refused(tmp_path: Path) -> None:
    first, second = (network(n_features=3, seed=seed) for seed in (0, 1))
    x = rows(first, 5)
    program = trace(OnnxNetwork(first), x[:3], {0: "n_rows"}, ("features", "standard"))
    save(program, OnnxNetwork(first), tmp_path / "n.onnx")
    with pytest.raises(RuntimeError, match=r"n\.onnx that is off by"):
        check_file(tmp_path / "n.onnx", OnnxNetwork(second), x)
