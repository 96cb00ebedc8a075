from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.relevance import MIN_SHARE, text_relevance
from tabnsm.tables import Table
from tabnsm.text.projection import TextProjection
from tests.fakes import FakeTextEncoder


def features(values: np.ndarray) -> TextFeatures:
    return TextFeatures(torch.from_numpy(values).float(), torch.arange(len(values)))


def shares(dense, sizes, texts, target, rows=None) -> list[float] | None:
    projections = [
        TextProjection.along_directions(text.values, torch.ones(len(text.values))) for text in texts
    ]
    found = text_relevance(dense, sizes, texts, projections, target, rows)
    return None if found is None else found[0]


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
