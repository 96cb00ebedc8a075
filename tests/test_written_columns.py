"""Numbers and dates as people write them predict what the same table with clean columns does."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm import InvalidDataError, TabNSMRegressor, TabNSMWarning
from tabnsm.cli import main
from tabnsm.files import read_table
from tests.fakes import FakeTextEncoder

pytestmark = pytest.mark.usefixtures("one_network")

N = 240
RNG = np.random.default_rng(0)
NUMBERS = np.round(RNG.normal(0, 3000, N), 2)
OTHER = np.round(RNG.normal(size=N), 3)
Y = NUMBERS / 1000 + OTHER
PRICES = np.round(100 * Y, 2)
DAYS = pd.Timestamp("2010-03-04") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D")
Y_OF_DAYS = np.asarray((DAYS - DAYS[0]).days) / 100 + OTHER


def european(number: float) -> str:
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


STYLES: dict[str, Callable[[float], str]] = {
    "$1,234.5": lambda x: f"${x:,.2f}" if x >= 0 else f"-${-x:,.2f}",
    "1,234.5": lambda x: f"{x:,.2f}" if x >= 0 else f"({-x:,.2f})",
    "1.234,5€": lambda x: f"{european(x)} €",
    "1.234,5": european,
    "1 234,5": lambda x: european(x).replace(".", "\u202f").replace("-", "\u2212"),
    "1'234.5": lambda x: f"{x:,.2f}".replace(",", "'"),
    "1,234.5%": lambda x: f"{x:.2f}%",
    "1,234.5 kg": lambda x: f"{x:.2f} kg",
}


def quick(**options: object) -> TabNSMRegressor:
    options = {"text_encoder": FakeTextEncoder(4), **options}
    return TabNSMRegressor(max_epochs=2, d_token=8, n_ensemble=1, random_state=0, **options)


def predictions(column: object, y: np.ndarray = Y, **options: object) -> np.ndarray:
    frame = pd.DataFrame({"c": column, "other": OTHER})
    return quick(**options).fit(frame[:200], y[:200]).predict(frame[200:])


def row(model: TabNSMRegressor, name: str = "c") -> tuple[str, str]:
    return next((row.kind, row.note) for row in model.describe_columns() if row.name == name)


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    return predictions(NUMBERS)


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_formatted_numbers_predict_as_plain_ones(style, clean):
    texts = [STYLES[style](number) for number in NUMBERS]
    np.testing.assert_array_equal(predictions(texts), clean)
    frame = pd.DataFrame({"c": texts, "other": OTHER})
    assert row(quick().fit(frame, Y)) == ("numeric", f"numbers written as {style}")
    # Asked for or found, the numbers are the same.
    np.testing.assert_array_equal(predictions(texts, column_kinds={"c": "numeric"}), clean)


def test_the_format_is_that_of_the_fit_also_after_a_load(clean, tmp_path):
    frame = pd.DataFrame({"c": [STYLES["1.234,5€"](x) for x in NUMBERS], "other": OTHER})
    model = quick().fit(frame[:200], Y[:200])
    model.save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors", text_encoder=FakeTextEncoder(4))
    # Alone, "1.234" would be 1.234.
    for k in range(200, 205):
        one = loaded.predict(frame[k : k + 1])
        np.testing.assert_array_equal(one, clean[k - 200 : k - 199])
    np.testing.assert_array_equal(loaded.predict(frame[200:].assign(c=NUMBERS[200:])), clean)
    without_sign = [european(x) for x in NUMBERS[200:]]
    np.testing.assert_array_equal(loaded.predict(frame[200:].assign(c=without_sign)), clean)


def test_another_unit_is_missing_with_a_warning():
    frame = pd.DataFrame({"c": [f"{k} kg" for k in range(N)], "other": OTHER})
    model = quick().fit(frame, Y)
    new = pd.DataFrame({"c": ["3 kg", "3 lb"], "other": [0.0, 0.0]})
    with pytest.warns(TabNSMWarning, match=r"'c' \(1 not numbers, such as '3 lb'\)"):
        kilos, pounds = model.predict(new)
    assert pounds == model.predict(new.assign(c=["3 kg", None]))[1]
    assert kilos != pounds


MARKED = [
    "?" if k % 50 == 7 else "unknown" if k % 60 == 9 else str(number)
    for k, number in enumerate(NUMBERS)
]
MARKED_CLEAN = pd.to_numeric(pd.Series(MARKED), errors="coerce").to_numpy()
N_MARKED = int(np.isnan(MARKED_CLEAN[:200]).sum())


def test_markers_of_missing_values_are_missing():
    message = rf"'c' \({N_MARKED} not numbers, such as '\?', 'unknown'\).*column_kinds=\{{'c': 'cat"
    with pytest.warns(TabNSMWarning, match=message) as caught:
        marked = predictions(MARKED)
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(marked, predictions(MARKED_CLEAN))
    with pytest.warns(TabNSMWarning, match=message):
        asked = predictions(MARKED, column_kinds={"c": "numeric"})
    np.testing.assert_array_equal(asked, marked)


def test_numeric_on_request_coerces_whatever_the_share():
    texts = ["see note" if k % 3 else str(number) for k, number in enumerate(NUMBERS)]
    frame = pd.DataFrame({"c": texts, "other": OTHER})
    with pytest.warns(TabNSMWarning, match=r"'c' \(160 not numbers, such as 'see note'\)"):
        model = quick(column_kinds={"c": "numeric"}).fit(frame, Y)
    assert row(model) == ("numeric", "160 unreadable value(s) are missing")


def test_no_column_of_numbers_looks_like_a_row_id():
    texts = [f"${k:,}" for k in RNG.permutation(N) + 1000]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = quick().fit(pd.DataFrame({"c": texts, "other": OTHER}), Y)
    assert row(model)[0] == "numeric"


def test_leading_zeros_are_codes():
    codes = np.array(["01234", "98101", "00501"])[np.arange(N) % 3]
    frame = pd.DataFrame({"c": codes, "other": OTHER})
    assert row(quick().fit(frame, Y)) == ("category", "codes, because of leading zeros")
    assert row(quick(column_kinds={"c": "numeric"}).fit(frame, Y))[0] == "numeric"


@pytest.mark.parametrize(
    "styles",
    [["%d %b %Y"], ["%B %d, %Y"], ["%a, %d %b %Y"], ["%d-%m-%Y"], ["%m/%d/%y"],
     ["%Y-%m-%d", "%d %b %Y", "%m/%d/%Y"]],
)  # fmt: skip
def test_dates_predict_as_datetimes(styles):
    texts = [day.strftime(styles[k % len(styles)]) for k, day in enumerate(DAYS)]
    np.testing.assert_array_equal(predictions(texts, Y_OF_DAYS), predictions(DAYS, Y_OF_DAYS))


def test_the_order_of_day_and_month_is_that_of_the_fit():
    frame = pd.DataFrame({"c": DAYS.strftime("%d/%m/%Y"), "other": OTHER})
    model = quick().fit(frame, Y_OF_DAYS)
    new = pd.DataFrame({"c": ["01/02/2011"], "other": [0.0]})
    february = new.assign(c=pd.to_datetime(["2011-02-01"]))
    np.testing.assert_array_equal(model.predict(new), model.predict(february))


def test_ambiguous_dates_are_read_month_first_with_a_warning():
    texts = [f"0{k % 9 + 1}/0{k % 7 + 1}/{2000 + k % 20}" for k in range(N)]
    message = r"'c' \('0\d/0\d/2\d+' is read with the month first\).*dayfirst=True"
    with pytest.warns(TabNSMWarning, match=message):
        read = predictions(texts, Y_OF_DAYS)
    american = predictions(pd.to_datetime(pd.Series(texts), format="%m/%d/%Y"), Y_OF_DAYS)
    np.testing.assert_array_equal(read, american)


@pytest.mark.parametrize("new", [DAYS[:5], DAYS[:1], ["2020-01-31"], ["29 Aug 2011", "1 May 2012"]])
def test_dates_where_numbers_were_are_refused(new):
    model = quick().fit(pd.DataFrame({"c": NUMBERS, "other": OTHER}), Y)
    rows = pd.DataFrame({"c": new, "other": OTHER[: len(new)]})
    with pytest.raises(InvalidDataError, match=r"'c' must hold numbers.*got dates such as '"):
        model.predict(rows)


def test_dates_read_as_numbers_on_request_stay_so(tmp_path):
    frame = pd.DataFrame({"c": DAYS, "other": OTHER})
    model = quick(column_kinds={"c": "numeric"}).fit(frame, Y_OF_DAYS)
    model.save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors", text_encoder=FakeTextEncoder(4))
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))


def test_a_target_may_be_written_with_currency_and_markers():
    frame = pd.DataFrame({"other": OTHER})
    texts = pd.Series([f"${y:,.2f}" for y in PRICES])
    texts[5] = "unknown"
    with pytest.warns(TabNSMWarning, match="1 of 240 rows of X have no target"):
        written = quick().fit(frame, texts).predict(frame)
    target = PRICES.copy()
    target[5] = np.nan
    with pytest.warns(TabNSMWarning, match="1 of 240 rows of X have no target"):
        plain = quick().fit(frame, target).predict(frame)
    np.testing.assert_array_equal(written, plain)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables of the same rows: as people write them, and with clean columns."""
    folder = tmp_path_factory.mktemp("files")
    weight = np.where(np.arange(N) % 4, 1.5, 1000.0)
    written = pd.DataFrame(
        {
            "price": [STYLES["$1,234.5"](x) for x in NUMBERS],
            "length": [f"{x:.3f} m".replace(".", ",") for x in OTHER],
            "marked": MARKED,
            "day": [d.strftime("%d %b %Y" if k % 2 else "%Y-%m-%d") for k, d in enumerate(DAYS)],
            "code": np.array(["01234", "98101", "00501"])[np.arange(N) % 3],
            "weight": [f"{w:,.1f}" for w in weight],
            "y": [f"{y:,.2f} EUR" for y in PRICES],
        }
    )
    clean = written.assign(
        price=NUMBERS, length=OTHER, marked=MARKED_CLEAN, day=DAYS, weight=weight,
        y=PRICES,
    )  # fmt: skip
    for name, frame in (("written", written), ("clean", clean)):
        frame[:200].to_csv(folder / f"{name}.csv", index=False)
        frame[200:].to_csv(folder / f"{name}_new.csv", index=False)
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    assert main([*arguments]) == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_the_command_line_reads_a_csv_file_the_same_way(files, capsys):
    scores, errors = {}, {}
    for name in ("written", "clean"):
        model = str(files / f"{name}.safetensors")
        training = ["--weight", "weight", "--time", "day", "--epochs", "2", "--seed", "0", "-q"]
        table = str(files / f"{name}.csv")
        _, errors[name] = run(capsys, "fit", table, "-t", "y", "-o", model, *training)
        new = str(files / f"{name}_new.csv")
        run(capsys, "predict", model, new, "-o", str(files / f"{name}_out.csv"))
        scores[name], _ = run(capsys, "evaluate", model, new, "-t", "y", "--json")
    assert json.loads(scores["written"]) == json.loads(scores["clean"])
    written, clean = (read_table(files / f"{name}_out.csv") for name in ("written", "clean"))
    assert written.equals(clean)
    assert f"{N_MARKED} value(s) could not be read" in errors["written"]
    shown, _ = run(capsys, "info", str(files / "written.safetensors"), "--json")
    notes = {column["name"]: column["note"] for column in json.loads(shown)["columns"]}
    assert notes["price"] == "numbers written as $1,234.5"
    assert notes["code"] == "codes, because of leading zeros"
