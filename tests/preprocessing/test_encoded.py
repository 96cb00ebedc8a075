from __future__ import annotations

import torch

from tabnsm.preprocessing import EncodedTable


def test_gather_joins_numbers_and_the_text_of_each_row():
    dense = torch.arange(6.0).reshape(3, 2)
    text = torch.tensor([[10.0], [20.0]])
    encoded = EncodedTable(dense, text, torch.tensor([1, 0, 1]))
    rows = torch.tensor([2, 1])
    assert encoded.gather(rows).tolist() == [[4, 5, 20], [2, 3, 10]]
    taken = encoded.take(rows)
    assert (taken.n_rows, taken.n_features) == (2, 3)
    assert taken.text is text
    assert torch.equal(taken.gather(torch.arange(2)), encoded.gather(rows))


def test_without_text_the_numbers_are_all():
    encoded = EncodedTable(torch.ones(2, 3))
    assert encoded.n_features == 3
    assert torch.equal(encoded.take(torch.tensor([1])).gather(torch.tensor([0])), torch.ones(1, 3))
