from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.text_direction import _PENALTIES, _ridge, find_direction
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder


def test_ridge_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(300, 5)) * [3, 1, 1, 1, 0.1])
    y = x @ torch.tensor([0.1, 1.0, -1.0, 0.0, 0.5]).double() + torch.from_numpy(
        rng.normal(size=300)
    )
    folds = torch.arange(300) % 3
    share, held_out, direction = _ridge(x, y, folds)
    x, y = x.numpy(), y.numpy()
    variance = np.square(x).mean()
    fits = []
    for penalty in _PENALTIES.tolist():
        model = Ridge(penalty * variance, fit_intercept=False)
        fits.append(
            (
                cross_val_predict(model, x, y, cv=PredefinedSplit(folds.numpy())),
                model.fit(x, y).coef_,
            )
        )
    best = min(fits, key=lambda fit: np.square(y - fit[0]).sum())
    np.testing.assert_allclose(held_out, best[0], rtol=1e-8)
    np.testing.assert_allclose(direction, best[1], rtol=1e-8)
    left = np.square(y - best[0]).sum()
    assert share == pytest.approx(1 - left / np.square(y).sum())


def test_a_text_is_scored_by_weights_that_were_found_without_it():
    """A row's own target must not be in its features: text of noise explains nothing."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 250))
    index = np.repeat(np.arange(300), 2)
    text = TextFeatures(torch.from_numpy(values).float(), torch.from_numpy(index))
    target = np.repeat(rng.normal(size=300), 2)  # the same for both rows of a text
    center = torch.zeros(250, dtype=torch.float64)
    found = find_direction(text, center, np.arange(600), target)
    assert found.texts.tolist() == list(range(300))
    assert abs(np.corrcoef(found.held_out, target[::2])[0, 1]) < 0.2
    assert np.corrcoef(values @ found.weights.numpy(), target[::2])[0, 1] > 0.5
    assert found.share < 0.05


def test_what_text_says_about_the_target_is_a_feature():
    rng = np.random.default_rng(0)
    words = [f"title {k}" for k in rng.permutation(900)]
    frame = pd.DataFrame({"number": rng.normal(size=900), "title": words})
    embeddings = FakeTextEncoder(40).encode(words)
    target = frame["number"].to_numpy() + 3 * embeddings @ rng.normal(size=embeddings.shape[1])
    encoder = TableEncoder(
        EncoderConfig(text_encoder=FakeTextEncoder(40), text_cache=False, n_text_features=4)
    )
    rows = np.arange(600)
    encoded = encoder.fit_transform(Table.from_native(frame), rows, None, target[:, None])
    assert encoder.feature_names == ["number", *(f"title_text_{k}" for k in range(5))]
    again = TableEncoder.from_state(*encoder.to_state(), text_encoder=FakeTextEncoder(40))
    new = again.transform(Table.from_native(frame))
    features, found = (table.gather(torch.arange(900)).numpy() for table in (encoded, new))
    # Rows of the fit have the values of other folds, all others those of the model.
    np.testing.assert_array_equal(features[600:], found[600:])
    np.testing.assert_array_equal(features[:, :5], found[:, :5])
    assert (features[:600, 5] != found[:600, 5]).mean() > 0.9
    residual = target - frame["number"]
    assert np.corrcoef(features[600:, 5], residual[600:])[0, 1] > 0.9


def test_text_that_says_little_has_no_direction():
    rng = np.random.default_rng(0)
    words = [f"title {k}" for k in rng.permutation(900)]
    frame = pd.DataFrame({"number": rng.normal(size=900), "title": words})
    said = FakeTextEncoder(40).encode(words) @ rng.normal(size=40)
    target = frame["number"].to_numpy() + 0.15 * said / said.std() + rng.normal(size=900)
    encoder = TableEncoder(
        EncoderConfig(text_encoder=FakeTextEncoder(40), text_cache=False, n_text_features=4)
    )
    encoder.fit_transform(Table.from_native(frame), None, None, target[:, None])
    assert "title_text_4" not in encoder.feature_names
