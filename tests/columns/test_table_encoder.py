from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.errors import InvalidDataError, TabNSMWarning
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder

pytestmark = pytest.mark.usefixtures("one_network")

N = 40
PAPER = {
    "date_encoding": "text",
    "category_encoding": "code",
    "repeated_strings": "text",
    "text_columns": "joined",
    "n_text_features": 0,
    "missing_indicators": False,
    "clip_outliers": False,
}


def make_frame(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "f": rng.normal(size=N),
            "word": rng.choice([f"word {k}" for k in range(15)], N),
            "i": rng.integers(0, 100, N),
            "color": rng.choice(["red", "green", "blue"], N),
            "when": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 20_000, N), unit="h"),
            "gap": np.where(rng.random(N) < 0.3, np.nan, rng.normal(size=N)),
            "flag": rng.random(N) < 0.5,
            "constant": 1,
        }
    )
    frame.loc[3, ["color", "word"]] = None
    frame.loc[4, "when"] = pd.NaT
    return frame


def encoder_for(**options: object) -> TableEncoder:
    return TableEncoder(EncoderConfig(text_encoder=FakeTextEncoder(6), **options))


def full(encoded) -> torch.Tensor:
    return encoded.gather(torch.arange(encoded.n_rows))


@pytest.mark.parametrize("options", [{}, PAPER])
def test_every_library_gives_the_same_bits(options):
    frame = make_frame()
    plain = frame.astype(object).where(frame.notna(), None)
    encoded = [
        full(encoder_for(**options).fit_transform(Table.from_native(native)))
        for native in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), plain.to_numpy())
    ]
    for other in encoded[1:]:
        assert torch.equal(encoded[0], other)


def test_order_and_origin_of_features():
    encoder = encoder_for(text_columns="joined", n_text_features=0)
    encoded = encoder.fit_transform(Table.from_native(make_frame()))
    parts = ["days", "year", "month", "day", "weekday", "day_of_year", "hour"]
    assert encoder.feature_names == [
        "f", "i", "gap", "flag",
        *(f"when_{part}" for part in parts),
        "gap_missing", "when_missing",
        "color",
        *(f"text_{k}" for k in range(6)),
    ]  # fmt: skip
    assert encoder.feature_columns == [0, 2, 5, 6, *[4] * 7, 5, 4, 3, *[-1] * 6]
    assert encoder.category_sizes == (*[0] * 13, 5, *[0] * 6)
    assert encoder.n_features == encoded.n_features == len(encoder.feature_names)
    indicator = encoded.dense[:, encoder.feature_names.index("when_missing")]
    assert indicator.nonzero().ravel().tolist() == [4]


def test_paper_options_give_standardised_columns():
    encoder = encoder_for(**PAPER)
    features = full(encoder.fit_transform(Table.from_native(make_frame()))).double()
    assert encoder.feature_names == [
        "f",
        "i",
        "gap",
        "flag",
        "color",
        *[f"text_{k}" for k in range(6)],
    ]
    no_gaps = [k for k, name in enumerate(encoder.feature_names) if name != "gap"]
    torch.testing.assert_close(features.mean(0), torch.zeros(11).double(), atol=1e-6, rtol=0)
    spread = features[:, no_gaps].std(0, correction=0)
    torch.testing.assert_close(spread, torch.ones(10).double(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("options", [{}, PAPER])
def test_rows_outside_the_fit_change_no_statistic(options):
    frame, other = make_frame(), make_frame(1)
    rows = np.arange(25)
    changed = pd.concat([frame.iloc[:25], other.iloc[25:]])
    changed.loc[30, "color"] = "violet"
    changed.loc[31, "f"] = 1e9
    first, second = encoder_for(**options), encoder_for(**options)
    before = first.fit_transform(Table.from_native(frame), rows)
    after = second.fit_transform(Table.from_native(changed), rows)
    for (key, left), right in zip(
        first.to_state()[0].items(), second.to_state()[0].values(), strict=True
    ):
        assert torch.equal(left, right), key
    assert first.to_state()[1] == second.to_state()[1]
    chosen = torch.arange(25)
    assert torch.equal(before.gather(chosen), after.gather(chosen))


@pytest.mark.parametrize("options", [{}, PAPER])
def test_state_round_trip_is_bit_equal(options):
    encoder = encoder_for(**options)
    table = Table.from_native(make_frame())
    encoded = encoder.fit_transform(table)
    tensors, meta = encoder.to_state()
    meta = json.loads(json.dumps(meta))
    again = TableEncoder.from_state(tensors, meta, text_encoder=FakeTextEncoder(6))
    assert torch.equal(full(again.transform(table)), full(encoded))
    assert torch.equal(full(encoder.transform(table)), full(encoded))
    assert again.feature_names == encoder.feature_names
    assert again.category_sizes == encoder.category_sizes
    assert str(again.describe()) == str(encoder.describe())


def test_columns_are_matched_by_name():
    frame = make_frame()
    encoder = encoder_for()
    encoded = encoder.fit_transform(Table.from_native(frame))
    shuffled = frame[frame.columns[::-1]].assign(extra=1).drop(columns="constant")
    assert torch.equal(full(encoder.transform(Table.from_native(shuffled))), full(encoded))


def test_a_missing_column_is_named():
    encoder = encoder_for()
    encoder.fit_transform(Table.from_native(make_frame()))
    frame = make_frame().drop(columns=["f", "color"])
    with pytest.raises(InvalidDataError, match=r"got none named 'f', 'color'. Add them"):
        encoder.transform(Table.from_native(frame))


def test_arrays_must_have_as_many_columns():
    encoder = TableEncoder()
    encoder.fit_transform(Table.from_native(np.eye(3)))
    message = "X has 2 features, but TabNSMRegressor is expecting 3 features as input."
    with pytest.raises(ValueError, match=message):
        encoder.transform(Table.from_native(np.eye(2)))
    named = pd.DataFrame(np.eye(3), columns=list("abc"))
    message = "X has feature names, but TabNSMRegressor was fitted without feature names"
    with pytest.warns(TabNSMWarning, match=message):
        assert encoder.transform(Table.from_native(named)).n_rows == 3


def test_changed_types_are_converted():
    frame = pd.DataFrame(
        {
            "code": [str(k % 3) + "x" if k == 0 else str(k % 3) for k in range(12)],
            "n": np.arange(12.0),
            "when": pd.date_range("2020-01-01", periods=12),
        }
    )
    encoder = TableEncoder()
    encoded = encoder.fit_transform(Table.from_native(frame))
    changed = pd.DataFrame(
        {"code": [1.0, 2.0], "n": ["1", "2"], "when": ["01/02/2020", "2020-01-03"]}
    )
    with pytest.warns(TabNSMWarning, match="'01/02/2020' is read with the month first"):
        dense = encoder.transform(Table.from_native(changed)).dense
    assert torch.equal(dense, encoded.dense[[1, 2]])
    with pytest.raises(InvalidDataError, match=r"'n' must hold numbers.*got text such as 'many'"):
        encoder.transform(Table.from_native(changed.assign(n=["many", "few"])))


@pytest.mark.parametrize("empty", [None, np.nan])
def test_an_empty_column_at_prediction_is_missing(empty):
    frame = make_frame()
    encoder = encoder_for()
    encoder.fit_transform(Table.from_native(frame))
    encoded = encoder.transform(Table.from_native(frame.assign(when=empty, gap=empty, color=empty)))
    first = dict(zip(encoder.feature_names, full(encoded)[0].tolist(), strict=True))
    assert first["when_missing"] == first["gap_missing"] == 1
    assert first["when_days"] == first["gap"] == 0


def test_dates_of_another_format_at_prediction_are_missing_with_a_warning():
    days = [f"{month}/{month + 10}/2020" for month in range(1, 13)]
    encoder = TableEncoder()
    encoder.fit_transform(Table.from_native(pd.DataFrame({"when": days})))
    new = pd.DataFrame({"when": ["2020-05-06", None, "1/2/2020"]})
    message = r"'when' \(1 not dates written as m/d/Y, such as '2020-05-06'\)"
    with pytest.warns(TabNSMWarning, match=message):
        dense = encoder.transform(Table.from_native(new)).dense
    assert dense[:2].count_nonzero() == 0
    assert dense[2].count_nonzero() > 0


def test_a_boolean_means_the_same_in_a_file_and_in_a_frame():
    flags = pd.DataFrame({"flag": [True, False, True, True]})
    words = flags.astype(str)
    for at_fit in (flags, words):
        encoder = TableEncoder()
        encoded = encoder.fit_transform(Table.from_native(at_fit))
        for later in (flags, words, words.map(str.upper)):
            assert torch.equal(encoder.transform(Table.from_native(later)).dense, encoded.dense)


def test_far_values_are_clipped_with_one_warning():
    frame = pd.DataFrame({"a": [0.0, 10.0], "b": [0.0, 1.0], "c": [0, 1]})
    encoder = TableEncoder()
    encoder.fit_transform(Table.from_native(frame))
    far = pd.DataFrame({"a": [500.0, np.inf, 5.0], "b": [-9.0, 0.0, 1.05], "c": [0, 1, 0]})
    with pytest.warns(TabNSMWarning, match=r"3 value\(s\).*in 'a' \(2\), 'b' \(1\)") as caught:
        dense = encoder.transform(Table.from_native(far)).dense
    assert len(caught) == 1
    np.testing.assert_allclose(dense[:, 0], [1.2, 1.0, 0.0], rtol=1e-6)
    keep = TableEncoder(EncoderConfig(clip_outliers=False))
    keep.fit_transform(Table.from_native(frame))
    assert keep.transform(Table.from_native(far)).dense[0, 0] == 99.0


def test_input_is_not_modified():
    frame = make_frame()
    before = frame.copy(deep=True)
    encoder_for().fit_transform(Table.from_native(frame))
    pd.testing.assert_frame_equal(frame, before)
    matrix = np.array([[1.0, np.nan], [np.inf, 2.0], [3.0, 4.0]], dtype=np.float32)
    matrix.setflags(write=False)
    assert TableEncoder().fit_transform(Table.from_native(matrix)).dense.isfinite().all()


cells = st.one_of(st.none(), st.floats(), st.integers(), st.booleans(), st.text(max_size=4))


@pytest.mark.slow
@given(st.lists(st.tuples(cells, cells, st.floats(width=32)), min_size=1, max_size=15), st.data())
def test_odd_values_never_break_the_encoding(rows, data):
    options = data.draw(st.sampled_from([{}, PAPER]))
    encoder = encoder_for(text_cache=False, **options)
    try:
        encoded = encoder.fit_transform(Table.from_native(pd.DataFrame(rows).astype(object)))
    except InvalidDataError as error:
        assert "must have a column with values" in str(error)  # noqa: PT017
        return
    assert full(encoded).isfinite().all()
    assert encoded.n_features == encoder.n_features
