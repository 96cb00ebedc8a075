from __future__ import annotations

import torch

from tabnsm.columns import EncodedTable
from tabnsm.columns.encoded import TextFeatures


def test_gather_joins_numbers_and_the_text_of_each_row():
    dense = torch.arange(6.0).reshape(3, 2)
    text = TextFeatures(torch.tensor([[10.0], [20.0]]), torch.tensor([1, 0, 1]))
    other = TextFeatures(torch.tensor([[30.0, 31.0]]), torch.tensor([0, 0, 0]))
    encoded = EncodedTable(dense, (text, other))
    rows = torch.tensor([2, 1])
    assert encoded.gather(rows).tolist() == [[4, 5, 20, 30, 31], [2, 3, 10, 30, 31]]
    taken = encoded.take(rows)
    assert (taken.n_rows, taken.n_features, taken.n_texts) == (2, 5, 3)
    assert taken.texts[0].values is text.values
    assert torch.equal(taken.gather(torch.arange(2)), encoded.gather(rows))


def test_without_text_the_numbers_are_all():
    encoded = EncodedTable(torch.ones(2, 3))
    assert (encoded.n_features, encoded.n_texts) == (3, 0)
    assert torch.equal(encoded.take(torch.tensor([1])).gather(torch.tensor([0])), torch.ones(1, 3))
