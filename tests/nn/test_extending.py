from __future__ import annotations

import numpy as np
import pytest
import torch

from tabnsm.nn import TabNSM
from tabnsm.nn.extending import extend_network

OLD, NEW = [0, 3, 0], [0, 0, 5, 0]  # sizes of categories; a number comes in between
PLACES, CODES = np.array([0, 2, 3]), {1: np.array([0, 1, 4])}


def bins(n_features: int, numbers: list[int]) -> torch.Tensor:
    made = torch.stack([torch.full((n_features, 4), torch.inf), torch.ones(n_features, 4)], dim=1)
    made[numbers, 0] = torch.linspace(-1, 1, 4)
    return made


def pair(**options) -> tuple[TabNSM, TabNSM]:
    torch.manual_seed(0)
    small = {"d_token": 8, "head_width": 16, **options}
    old = TabNSM(3, category_sizes=OLD, bins=bins(3, [0, 2]), **small)
    return old.eval(), TabNSM(4, category_sizes=NEW, bins=bins(4, [0, 1, 3]), **small).eval()


def test_tokens_of_known_features_and_codes_stay():
    old, begun = pair()
    begun.load_state_dict(extend_network(old, begun, PLACES, CODES))
    x = torch.tensor([[0.3, 1.0, -0.2], [0.9, 2.0, 0.0], [-2.0, 0.0, 1.5]])
    wide = torch.zeros(3, 4)
    wide[:, PLACES] = x
    wide[1, 2] = 4.0  # where the last code, that of missing values, has gone
    tokens, wide_tokens = old.tokenizer(x), begun.tokenizer(wide)
    assert torch.allclose(wide_tokens[:, PLACES], tokens, atol=1e-6)


def test_a_new_category_begins_as_an_unseen_one():
    old, begun = pair()
    begun.load_state_dict(extend_network(old, begun, PLACES, CODES))
    x = torch.tensor([[0.3, 0.1, 0.0, -0.2], [0.3, 0.1, 3.0, -0.2]])
    assert torch.equal(*begun(x))


def test_the_head_takes_nothing_of_a_new_feature():
    old, begun = pair()
    begun.load_state_dict(extend_network(old, begun, PLACES, CODES))
    features = torch.randn(5, 3 * 9)
    wide = torch.randn(5, 4 * 9)
    pools = 4 + PLACES[:, None] * 8 + np.arange(8)
    wide[:, np.concatenate([PLACES, pools.ravel()])] = features
    assert torch.allclose(begun.head.predict(wide), old.head.predict(features), atol=1e-5)


@pytest.mark.parametrize("options", [{"mixer": False}, {"n_token_pools": 0}, {"n_targets": 2}])
def test_any_architecture_keeps_its_head(options):
    old, begun = pair(**options)
    weights = extend_network(old, begun, PLACES, CODES)
    begun.load_state_dict(weights)
    columns = weights["head.mlp3.0.weight"][:, PLACES]
    assert torch.equal(columns, old.head.mlp3[0].weight[:, :3])


def test_nothing_new_keeps_every_bit():
    old, _ = pair()
    begun = TabNSM(3, category_sizes=OLD, bins=bins(3, [0, 2]), d_token=8, head_width=16)
    same = extend_network(old, begun, np.arange(3), {1: np.arange(3)})
    assert all(torch.equal(same[name], weight) for name, weight in old.state_dict().items())


def test_a_head_of_another_shape_begins_anew():
    options = {"d_token": 8, "head_width": 16}
    old, begun = TabNSM(64, **options), TabNSM(65, **options)  # fewer pools beyond 64 features
    weights = extend_network(old, begun, np.arange(64), {})
    assert torch.equal(weights["head.mlp1.0.weight"], begun.head.mlp1[0].weight)
    assert torch.equal(weights["tokenizer.bias"][:64], old.tokenizer.bias)
