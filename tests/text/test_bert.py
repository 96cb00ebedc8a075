from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tabnsm.text.bert import BertForward
from tabnsm.text.int8 import Int8Linear

transformers = pytest.importorskip("transformers")

N_TOKENS = 60


@pytest.fixture(scope="module")
def bert() -> Any:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=N_TOKENS,
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=70,
        initializer_range=0.2,
    )
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" in name or name.endswith("bias"):  # else all ones and zeros
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def make_ids(n_texts: int, n_tokens: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, N_TOKENS, (n_texts, n_tokens), generator=generator)


@torch.inference_mode()
def oracle(bert: Any, ids: torch.Tensor) -> torch.Tensor:
    """The model of transformers itself, mean over the tokens, unit length."""
    return F.normalize(bert(input_ids=ids).last_hidden_state.mean(1), dim=1)


@pytest.mark.parametrize("n_tokens", [1, 2, 3, 17, 33, 70])
@pytest.mark.parametrize("n_texts", [1, 2, 40])
def test_equals_the_model_of_transformers(bert, n_texts, n_tokens):
    ids = make_ids(n_texts, n_tokens)
    found = BertForward.of(bert, "float32")(ids)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, oracle(bert, ids), atol=1e-5, rtol=0)


def test_tokens_that_texts_share_keep_their_places(bert):
    # The same tokens in another order, and equal texts.
    ids = torch.tensor([[5, 6, 7, 5], [7, 6, 5, 5], [5, 6, 7, 5], [5, 5, 5, 5]])
    found = BertForward.of(bert, "float32")(ids)
    torch.testing.assert_close(found, oracle(bert, ids), atol=1e-5, rtol=0)
    assert torch.equal(found[0], found[2])
    assert not torch.allclose(found[0], found[1], atol=1e-3)


@pytest.mark.parametrize("n_tokens", [2, 17, 70])
def test_int8_is_close_and_is_what_was_asked_for(bert, n_tokens):
    ids = make_ids(30, n_tokens)
    forward = BertForward.of(bert, "int8")
    assert all(isinstance(layer.widen, Int8Linear) for layer in forward.layers)
    found = forward(ids)
    cosine = (found * oracle(bert, ids)).sum(1)
    assert 0.98 < cosine.min() < 0.999999
    torch.testing.assert_close(found.norm(dim=1), torch.ones(30))


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_text_does_not_depend_on_the_others(bert, precision):
    forward = BertForward.of(bert, precision)
    ids = make_ids(50, 20)
    together = forward(ids)
    assert torch.equal(forward(ids.flip(0)).flip(0), together)
    assert torch.equal(forward(ids[7:9]), together[7:9])


def test_what_is_not_built_like_bert_is_refused():
    with pytest.raises((KeyError, AttributeError)):
        BertForward.of(torch.nn.Linear(3, 3), "float32")
