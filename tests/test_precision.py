from __future__ import annotations

import pytest
import torch

from tabnsm.errors import InvalidOptionError
from tabnsm.precision import check_dtype, pack_weights, unpack_weights


@pytest.fixture
def weights() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    rows = torch.logspace(-3, 3, 7)[:, None]  # of very different size
    return {
        "matrix": rows * torch.randn(7, 50, generator=generator),
        "zeros": torch.zeros(3, 4),
        "bias": torch.randn(7, generator=generator),
        "scalar": torch.tensor(0.3),
    }


def test_float32_keeps_the_bits(weights):
    packed = pack_weights(weights, "float32")
    assert all(torch.equal(unpack_weights(packed)[name], weights[name]) for name in weights)


def test_bfloat16_takes_half_and_rounds_to_eight_bits(weights):
    packed = pack_weights(weights, "bfloat16")
    assert {tensor.dtype for tensor in packed.values()} == {torch.bfloat16}
    found = unpack_weights(packed)
    for name, weight in weights.items():
        assert found[name].dtype == torch.float32
        assert torch.allclose(found[name], weight, rtol=2**-8, atol=0)


def test_int8_has_a_scale_for_every_row(weights):
    packed = pack_weights(weights, "int8")
    assert packed["matrix"].dtype == torch.int8
    found = unpack_weights(packed)
    assert set(found) == set(weights)
    largest = weights["matrix"].abs().amax(dim=1, keepdim=True)
    assert ((found["matrix"] - weights["matrix"]).abs() <= 0.501 * largest / 127).all()
    assert torch.equal(found["zeros"], weights["zeros"])
    assert torch.equal(found["bias"], weights["bias"])  # only matrices are rounded


def test_unknown_precisions_are_refused():
    with pytest.raises(InvalidOptionError, match=r"dtype must be one of .*'bfloat16'.*'int4'"):
        check_dtype("int4")
