from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.columns.text_block import TextBlock
from tabnsm.errors import InvalidOptionError, ModelFileError, TabNSMWarning
from tabnsm.tables import Table
from tabnsm.text import cache_info
from tabnsm.text.embedding import TextTooSlowError
from tests.fakes import FakeTextEncoder

WORDS = [f"word{'s' * (k % 5)} {k}" for k in range(12)]


def make_table(rows: list[int]) -> Table:
    frame = pd.DataFrame(
        {"a": [WORDS[k] for k in rows], "n": np.arange(len(rows)), "b": [WORDS[-k] for k in rows]}
    )
    return Table.from_native(frame.astype({"a": object, "b": object}))


JOINED = {"text_columns": "joined", "n_text_features": 0}


def fit(encoder: FakeTextEncoder, rows: list[int], fit_rows=None, **options):
    table_encoder = TableEncoder(EncoderConfig(text_encoder=encoder, **(JOINED | options)))
    return table_encoder, table_encoder.fit_transform(make_table(rows), fit_rows)


def test_each_distinct_text_is_encoded_once_in_order_of_length():
    encoder = FakeTextEncoder(5)
    _, encoded = fit(encoder, [*range(12), 3, 3, 4])
    (text,) = encoded.texts
    assert text.values.shape == (12, 5)
    assert text.index.shape == (15,)
    assert text.index[12] == text.index[13] == text.index[3]
    assert len(encoder.encoded) == 12
    lengths = [len(text) for text in encoder.encoded]
    assert lengths == sorted(lengths)


def test_statistics_weigh_each_text_by_its_fit_rows():
    fit_rows = np.array([0, 1, 2, 12, 13, *range(3, 12)])
    _, encoded = fit(FakeTextEncoder(5), [*range(12), 3, 3, 4, 5], fit_rows)
    features = encoded.gather(torch.from_numpy(fit_rows))[:, 1:].double()
    torch.testing.assert_close(features.mean(0), torch.zeros(5).double(), atol=1e-6, rtol=0)
    spread = features.std(0, correction=0)
    torch.testing.assert_close(spread, torch.ones(5).double(), atol=1e-5, rtol=0)


def test_one_text_for_all_rows_is_zero():
    config = EncoderConfig(text_encoder=FakeTextEncoder(5), column_kinds={"a": "text"})
    frame = pd.DataFrame({"a": ["same"] * 7})
    encoded = TableEncoder(config).fit_transform(Table.from_native(frame))
    assert encoded.texts[0].values.abs().max() < 1e-6


def test_cache_saves_work_and_changes_no_bit():
    first, again = FakeTextEncoder(5), FakeTextEncoder(5)
    _, before = fit(first, [*range(12)])
    assert cache_info().n_entries == 12
    encoder, after = fit(again, [*range(12)])
    assert again.encoded == []
    assert torch.equal(before.texts[0].values, after.texts[0].values)
    encoder.transform(make_table([1, 2]))
    assert again.encoded == []
    other = FakeTextEncoder(5, name="other")
    fit(other, [*range(12)])
    assert len(other.encoded) == 12


def test_the_cache_can_be_switched_off():
    fit(FakeTextEncoder(5), [*range(12)], text_cache=False)
    assert cache_info().n_entries == 0


def test_truncated_texts_are_counted_and_reported():
    with pytest.warns(TabNSMWarning, match=r"4 of 12 distinct texts are longer than the text"):
        encoder, _ = fit(FakeTextEncoder(5, max_chars=18), [*range(12)])
    note = next(row.note for row in encoder.describe() if row.name == "a")
    assert note.startswith("4 of 12 texts are cut")


def test_progress_is_shown_when_asked(capsys):
    fit(FakeTextEncoder(5), [*range(12)], verbose=1)
    assert capsys.readouterr().err == "Encoding 12 distinct texts\n"


def test_another_encoder_is_refused_when_loading():
    encoder, _ = fit(FakeTextEncoder(5), [*range(12)])
    tensors, meta = encoder.to_state()
    meta = json.loads(json.dumps(meta))
    with pytest.raises(ModelFileError, match=r"must be the one the model was fitted with, 'fake'"):
        TableEncoder.from_state(tensors, meta, text_encoder=FakeTextEncoder(5, name="other"))


def test_separate_columns_have_features_of_their_own():
    text_encoder = FakeTextEncoder(5)
    encoder, encoded = fit(text_encoder, [*range(12), 3, 3], text_columns="separate")
    widths = [text.values.shape[1] for text in encoded.texts]
    assert sum(widths) == 5
    assert encoder.feature_names == [
        "n",
        *(f"a_text_{k}" for k in range(widths[0])),
        *(f"b_text_{k}" for k in range(widths[1])),
    ]
    assert encoder.feature_columns == [1, *[0] * widths[0], *[2] * widths[1]]
    # Both columns hold the same twelve words: each is embedded once.
    assert sorted(text_encoder.encoded) == sorted(WORDS)
    features = encoded.gather(torch.arange(14))[:, 1:].double()
    torch.testing.assert_close(features.mean(0), torch.zeros(5).double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("text_columns", ["joined", "separate"])
def test_text_has_no_more_features_than_asked_for(text_columns):
    options = {"text_columns": text_columns, "n_text_features": 4}
    encoder, encoded = fit(FakeTextEncoder(9), [*range(12), 3], **options)
    names = [name for name in encoder.feature_names if name != "n"]
    assert len(names) == sum(text.values.shape[1] for text in encoded.texts) == 4
    tensors, meta = encoder.to_state()
    again = TableEncoder.from_state(tensors, meta, text_encoder=FakeTextEncoder(9))
    assert again.feature_names == encoder.feature_names
    found = again.transform(make_table([5, 2])).gather(torch.arange(2))[:, 1:]
    assert torch.equal(found, encoded.gather(torch.tensor([5, 2]))[:, 1:])


def test_separate_columns_survive_their_state_and_do_not_depend_on_other_rows():
    rows = [*range(12), 3, 3, 4]
    encoder, encoded = fit(FakeTextEncoder(5), rows, text_columns="separate", text_cache=False)
    expected = encoded.gather(torch.arange(15))[:, 1:]
    tensors, meta = encoder.to_state()
    meta = json.loads(json.dumps(meta))
    again = TableEncoder.from_state(tensors, meta, text_encoder=FakeTextEncoder(5))
    assert again.feature_names == encoder.feature_names
    assert again.config.text_columns == "separate"
    for chosen in ([*range(15)], [7], [14, 2, 2, 0], [*range(14, -1, -1)]):
        table = make_table(rows).take(np.array(chosen))
        found = again.transform(table).gather(torch.arange(len(chosen)))[:, 1:]
        assert torch.equal(found, expected[chosen])


def test_separate_columns_take_unseen_and_missing_values():
    encoder, _ = fit(FakeTextEncoder(5), [*range(12)], text_columns="separate")
    frame = pd.DataFrame(
        {"a": ["never seen", None, ""], "n": [1, 2, 3], "b": [WORDS[2]] * 3}, dtype=object
    )
    features = encoder.transform(Table.from_native(frame)).gather(torch.arange(3))
    assert torch.isfinite(features).all()
    of_a = [k for k, column in enumerate(encoder.feature_columns) if column == 0]
    assert not torch.equal(features[0, of_a], features[1, of_a])
    assert torch.equal(features[1, of_a], features[2, of_a])  # missing is the empty string


def test_a_separate_column_that_is_constant_does_no_harm():
    config = EncoderConfig(
        text_encoder=FakeTextEncoder(5), column_kinds={"a": "text"}, text_columns="separate"
    )
    encoder = TableEncoder(config)
    encoded = encoder.fit_transform(Table.from_native(pd.DataFrame({"a": ["same"] * 7})))
    assert encoder.feature_names == ["a_text_0"]
    assert encoded.texts[0].values.abs().max() < 1e-6
    other = encoder.transform(Table.from_native(pd.DataFrame({"a": ["other"]})))
    assert torch.isfinite(other.gather(torch.tensor([0]))).all()


def test_text_without_time_for_it_is_left_out():
    frame = pd.DataFrame({"a": [f"text {k}" for k in range(200)], "n": np.arange(200.0) % 7})
    table = Table.from_native(frame)
    config = EncoderConfig(text_encoder=FakeTextEncoder(5))
    encoder = TableEncoder(config)
    message = (
        r"Embedding 168 more texts would take about \d+ s, which is over half of the 0\.0 s left "
        r"of time_limit\. The text columns 'a' are left out of this fit\. Raise time_limit by "
        r"about \d+ s; the 32 texts embedded so far are in the cache\."
    )
    with pytest.warns(TabNSMWarning, match=message):
        encoded = encoder.fit_transform(table, None, lambda: 0.0)
    assert encoded.texts == ()
    assert encoder.feature_names == ["n"]
    notes = {row.name: (row.kind, row.note) for row in encoder.describe()}
    assert notes["a"] == (
        "drop",
        "left out: embedding its text takes longer than half of time_limit",
    )
    again = TableEncoder.from_state(*encoder.to_state())
    assert torch.equal(again.transform(Table.from_native(frame[["n"]])).dense, encoded.dense)
    with pytest.raises(InvalidOptionError, match="for the text of a table without other columns"):
        TableEncoder(config).fit_transform(Table.from_native(frame[["a"]]), None, lambda: 0.0)


def test_an_encoder_that_is_not_loaded_is_not_loaded_at_the_last_moment(monkeypatch):
    for library in ("sentence_transformers", "tokenizers"):
        monkeypatch.delitem(sys.modules, library, raising=False)
    monkeypatch.setattr("tabnsm.columns.text_block.load_encoder", lambda *a: pytest.fail("loaded"))
    with pytest.raises(TextTooSlowError, match="Loading the text encoder takes 1"):
        TextBlock.create(EncoderConfig(), lambda: 1.9)
    with pytest.raises(TextTooSlowError, match="Loading the text encoder takes 5"):
        TextBlock.create(EncoderConfig(text_encoder="another"), lambda: 9.0)
    # One that the user made is there.
    monkeypatch.setattr("tabnsm.columns.text_block.load_encoder", lambda encoder, _: encoder)
    mine = FakeTextEncoder(5)
    assert TextBlock.create(EncoderConfig(text_encoder=mine), lambda: 9.0).encoder is mine
