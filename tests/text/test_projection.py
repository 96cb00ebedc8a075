from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.text.projection import KEPT_VARIANCE, TextProjection, share_out


def column(n_texts: int, d_text: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    widths = torch.linspace(2, 0.05, d_text)
    embeddings = torch.randn(n_texts, d_text, generator=generator) * widths + 1
    counts = torch.randint(0, 5, (n_texts,), generator=generator)
    counts[0] = 3
    return embeddings, counts


def as_rows(embeddings: torch.Tensor, counts: torch.Tensor) -> np.ndarray:
    return np.repeat(embeddings.double().numpy(), counts.numpy(), axis=0)


def test_axes_are_standardised_over_the_training_rows():
    embeddings, counts = column(40, 6)
    embeddings[:, 2] = 0.7
    rows = as_rows(embeddings, counts)
    projection = TextProjection.along_axes(embeddings, counts)
    np.testing.assert_allclose(projection.center, rows.mean(0), rtol=1e-12)
    spread = rows.std(0)
    spread[2] = 1
    np.testing.assert_allclose(projection.scale, spread, rtol=1e-9)
    features = projection(embeddings.clone())
    np.testing.assert_allclose(as_rows(features, counts).std(0)[[0, 1, 3, 4, 5]], 1, rtol=1e-6)


def test_directions_are_the_principal_ones_of_the_training_rows():
    embeddings, counts = column(60, 8)
    rows = as_rows(embeddings, counts)
    projection = TextProjection.along_directions(embeddings, counts)
    _, widths, directions = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    n_kept = len(projection.scale)
    share = np.cumsum(widths**2) / (widths**2).sum()
    assert share[n_kept - 1] >= KEPT_VARIANCE > share[n_kept - 2]
    overlap = np.abs(np.sum(directions[:n_kept].T * projection.directions.numpy(), axis=0))
    np.testing.assert_allclose(overlap, 1, atol=1e-8)
    features = as_rows(projection(embeddings.clone()), counts)
    np.testing.assert_allclose(features.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(np.cov(features.T, bias=True), np.eye(n_kept), atol=1e-5)
    # Rows without training rows have no part in it, and get finite features all the same.
    assert (counts == 0).any()


def test_few_texts_need_few_directions():
    few, many = column(4, 30, seed=1), column(200, 30, seed=2)
    assert len(TextProjection.along_directions(*few).scale) <= 3
    assert len(TextProjection.along_directions(*many).scale) > 12


def test_a_narrow_projection_has_the_first_directions_and_the_added_ones():
    embeddings, counts = column(60, 8)
    wide = TextProjection.along_directions(embeddings, counts)
    added = torch.randn(8, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    narrow = wide.narrow(2, [added], [4.0])
    features = narrow(embeddings)
    torch.testing.assert_close(features[:, :2], wide(embeddings)[:, :2])
    expected = (embeddings.double() - wide.center) @ added / 4
    torch.testing.assert_close(features[:, 2], expected.float())


def test_a_column_with_one_text_is_one_feature_that_is_zero():
    embeddings = torch.randn(1, 9, generator=torch.Generator().manual_seed(0))
    projection = TextProjection.along_directions(embeddings, torch.tensor([7]))
    assert projection.scale.tolist() == [1.0]
    features = projection(embeddings.clone())
    assert features.shape == (1, 1)
    assert features.abs().max() < 1e-6


@pytest.mark.parametrize("n_rows", [1, 5, 255, 256, 257, 600])
def test_a_text_has_the_same_bits_whatever_its_place(n_rows):
    embeddings, counts = column(600, 24)
    projection = TextProjection.along_directions(embeddings, counts)
    features = projection(embeddings)
    assert torch.equal(projection(embeddings[-n_rows:]), features[-n_rows:])
    assert torch.equal(projection(embeddings[:n_rows]), features[:n_rows])


@given(st.lists(st.integers(1, 600), min_size=1, max_size=12), st.integers(1, 500))
def test_shares(needs, total):
    given_out = share_out(needs, total)
    assert all(1 <= got <= need for got, need in zip(given_out, needs, strict=True))
    assert sum(given_out) <= max(total, len(needs))
    if sum(needs) <= total:
        assert given_out == needs
    elif total >= len(needs):
        # Nothing is left over, and nobody gets less than one who needs no more.
        assert sum(given_out) == total
        short = [got for got, need in zip(given_out, needs, strict=True) if got < need]
        assert min(short) >= max(given_out) - 1
