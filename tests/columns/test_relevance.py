from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.relevance import _PENALTIES, MIN_SHARE, _ridge, text_scores
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder


def features(values: np.ndarray) -> TextFeatures:
    return TextFeatures(torch.from_numpy(values).float(), torch.arange(len(values)))


def shares(dense, sizes, texts, target, rows=None) -> list[float] | None:
    centers = [torch.zeros(text.values.shape[1], dtype=torch.float64) for text in texts]
    scores = text_scores(dense, sizes, texts, centers, target, rows)
    return None if scores is None else [max(s.share for s in own) for own in scores]


def test_text_that_explains_the_residual_is_kept():
    rng = np.random.default_rng(0)
    number, telling, noise = rng.normal(size=(3, 1000))
    target = (2 * number + telling)[:, None]
    dense = number[:, None].astype(np.float32)
    said = features(np.stack([telling, rng.normal(size=1000)], axis=1))
    unsaid = features(np.stack([noise, number], axis=1))  # what the other column says as well
    found = shares(dense, (0,), [said, unsaid], target)
    assert found[0] > 0.5
    assert found[1] < 0.05
    assert shares(dense[:100], (0,), [said, unsaid], target[:100]) is None


def test_rows_in_order_of_time_hide_nothing():
    rng = np.random.default_rng(0)
    days, telling = np.arange(900.0), rng.normal(size=900)
    target = (0.05 * days + telling)[:, None]  # the drift is known from the days alone
    dense = days[:, None].astype(np.float32)
    assert shares(dense, (0,), [features(telling[:, None])], target)[0] > 0.5


def test_only_fit_rows_are_looked_at():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(600, 2)).astype(np.float32)
    text, target = rng.normal(size=(600, 3)), rng.normal(size=(600, 1))
    rows, other = np.arange(400), target.copy()
    other[400:] = 100 * text[400:, :1]
    found = [shares(dense, (0, 0), [features(text)], y, rows) for y in (target, other)]
    assert found[0] == found[1]
    assert found[0][0] < MIN_SHARE


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


def test_a_text_is_scored_by_a_direction_that_was_found_without_it():
    """A row's own target must not be in its features: text of noise scores no better than 0."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 250))
    index = np.repeat(np.arange(300), 2)
    text = TextFeatures(torch.from_numpy(values).float(), torch.from_numpy(index))
    target = np.repeat(rng.normal(size=300), 2)[:, None]  # the same for both rows of a text
    center = torch.zeros(250, dtype=torch.float64)
    ((score,),) = text_scores(np.zeros((600, 0), np.float32), (), [text], [center], target, None)
    assert score.texts.tolist() == list(range(300))
    assert abs(np.corrcoef(score.held_out, target[::2, 0])[0, 1]) < 0.2
    assert np.corrcoef(values @ score.direction.numpy(), target[::2, 0])[0, 1] > 0.5
    assert score.share > 0.1  # the other row of the text tells it
    assert score.share_of_new < 0.05


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


def test_column_that_says_nothing_is_left_out_and_never_embedded():
    rng = np.random.default_rng(0)
    words = [" ".join(rng.choice(list("abcdefgh"), 6)) for _ in range(600)]
    frame = pd.DataFrame({"number": rng.normal(size=600), "title": words})
    target = frame["number"].to_numpy()[:, None] + 0.1 * rng.normal(size=(600, 1))
    config = EncoderConfig(text_encoder=FakeTextEncoder(), text_cache=False)
    encoder = TableEncoder(config)
    encoded = encoder.fit_transform(Table.from_native(frame), None, None, target)
    assert encoder.feature_names == ["number"]
    assert encoded.texts == ()
    assert "says nothing about the target" in str(encoder.describe())
    again = TableEncoder.from_state(*encoder.to_state())
    assert again.transform(Table.from_native(frame[["number"]])).n_features == 1
    kept = TableEncoder(EncoderConfig(text_encoder=FakeTextEncoder(), select_text=False))
    assert kept.fit_transform(Table.from_native(frame), None, None, target).texts
