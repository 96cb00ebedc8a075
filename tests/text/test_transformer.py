"""Models of sentence-transformers, by their own forward pass where the fast one differs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tabnsm.errors import InvalidOptionError
from tabnsm.text.minilm import load_minilm, minilm_folder
from tabnsm.text.transformer import TransformerEncoder, load_transformer

TEXTS = ["a red car", "senior accountant in a small town"]


@pytest.mark.slow
def test_another_model_uses_its_own_forward_pass_and_has_no_int8(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = load_transformer(str(minilm_folder()))._model
    wanted = load_minilm().encode(TEXTS)
    monkeypatch.setattr(
        "tabnsm.text.bert.BertForward.__call__", lambda self, ids: torch.zeros(len(ids), 384)
    )
    other = TransformerEncoder("other", model)
    assert other.forward is None
    np.testing.assert_allclose(other.encode(TEXTS), wanted, atol=1e-6)
    with pytest.raises(InvalidOptionError, match=r"text_precision must be 'float32' for .*'other'"):
        TransformerEncoder("other", model, "int8")
