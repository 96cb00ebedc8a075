from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.tables.number_format import (
    PLAIN,
    NumberFormat,
    are_codes,
    find_number_format,
    parse_floats,
    parse_numbers,
)


def find(values: list[str], **options: bool) -> NumberFormat | None:
    return find_number_format(values, np.ones(len(values), dtype=np.int64), **options)


@pytest.mark.parametrize(
    ("values", "numbers", "written_as"),
    [
        (["1", "-2.5", " 1e3 "], [1, -2.5, 1000], ""),
        (["$1,234.50", "$5"], [1234.5, 5], "$1,234.5"),
        (["1,234.5", "12"], [1234.5, 12], "1,234.5"),
        (["1,234", "5,678"], [1234, 5678], "1,234.5"),
        (["1,234,567", "0.5"], [1234567, 0.5], "1,234.5"),
        (["1.234,5", "12,5", "1.234"], [1234.5, 12.5, 1234], "1.234,5"),
        (["1.234", "1.234.567"], [1234, 1234567], "1.234,5"),
        (["1.234", "2.345"], [1.234, 2.345], ""),
        (["1,5", "2,25", ",5"], [1.5, 2.25, 0.5], "1.234,5"),
        (["0,123", "1,234"], [0.123, 1.234], "1.234,5"),
        (["1,6e-05", "-2,5e3"], [1.6e-5, -2500], "1.234,5"),
        (["1 234,5", "2"], [1234.5, 2], "1 234,5"),
        (["1\u00a0234", "1\u202f234\u2009567"], [1234, 1234567], "1 234.5"),
        (["1'234.5", "1’234’567"], [1234.5, 1234567], "1'234.5"),
        (["1'234,5", "7"], [1234.5, 7], "1'234,5"),
        (["45.1%", "3 %"], [45.1, 3], "1,234.5%"),
        (["12 kg", "3kg", "1,200 kg"], [12, 3, 1200], "1,234.5 kg"),
        (["12,5 kg", "3 kg"], [12.5, 3], "1.234,5 kg"),
        (["12 m/s²", "13 m/s²"], [12, 13], "1,234.5 m/s²"),
        (["20 °C", "-3 °C"], [20, -3], "1,234.5°C"),
        (["12 sq ft", "13 sq ft"], [12, 13], "1,234.5 sq ft"),
        (["12 m2", "15 m2"], [12, 15], "1,234.5 m2"),
        (["$12.50/hr", "$13/hr"], [12.5, 13], "$1,234.5/hr"),
        (["(1,234)", "5"], [-1234, 5], "1,234.5"),
        (["-$5", "$-6", "$(7)", "($8)", "$9"], [-5, -6, -7, -8, 9], "$1,234.5"),
        (["\u22125", "6"], [-5, 6], "1,234.5"),
        (["USD 5", "USD 1,200"], [5, 1200], "USD 1,234.5"),
        (["5 €", "6,50 €", "1.000 €"], [5, 6.5, 1000], "1.234,5€"),
        (["5 EUR", "6", "7"], [5, 6, 7], "1,234.5 EUR"),
        (["R$ 5", "R$ 1.200,50"], [5, 1200.5], "R$1.234,5"),
        (["₹1,234", "₹5"], [1234, 5], "₹1,234.5"),
        (["$5", "6"], [5, 6], "$1,234.5"),
    ],
)
def test_numbers_as_people_write_them(values, numbers, written_as):
    number_format = find(values)
    assert number_format is not None
    parsed, valid, _ = parse_numbers(values, number_format)
    assert valid.all()
    np.testing.assert_array_equal(parsed, numbers)
    note = number_format.describe(values)
    assert note == (f"numbers written as {written_as}" if written_as else "")


@pytest.mark.parametrize(
    "values",
    [
        ["SKU-12", "SKU-13"],
        ["A12", "A13"],
        ["cust_0001", "cust_0002"],
        ["12 kg", "13 g"],
        ["$5", "€6"],
        ["10k", "1.5M"],
        ["12:30", "13:45"],
        ["2020-01-01", "2020-01-02"],
        ["1-2", "3-4"],
        ["1/2", "3/4"],
        ["1st", "2nd", "3rd"],
        ["5 ft 3", "5 ft 4"],
        ["12 Main St", "13 Elm Rd"],
        ["192.168.1.1", "10.0.0.1"],
        ["1,23,456", "7,89,012"],
        ["(5", "6)"],
        ["-(5)", "+-6"],
        ["1_000", "2_000"],
        ["45%", "0.5"],
        ["1.5", "12,5"],
        ["01234", "98101"],
        ["01234", "98101", "unknown"],
        ["one", "two"],
        ["?", "-"],
        ["1", "?"],
        [],
    ],
)
def test_what_is_no_number(values):
    assert find(values) is None


def test_markers_and_a_few_strings_are_left_out():
    numbers = [str(k) for k in range(98)]
    assert find([*numbers, "?", "Unknown", "-"]) == PLAIN
    assert find([*numbers, "about ten", "see note"]) == PLAIN
    assert find([*numbers, "about ten", "see note", "many"]) is None
    # Fewer than ten distinct values are categories if one of them is a word.
    few = np.array([300, 300, 300, 5])
    assert find_number_format(["1", "2", "3", "many"], few) is None
    assert find_number_format(["1", "2", "3", "?"], few) == PLAIN
    prices = [f"${k},000" for k in range(1, 99)]
    assert find([*prices, "on request"]) == NumberFormat(prefix="$")


def test_the_frequent_strings_decide():
    values = [f"remark {k}" for k in range(30)] + ["1", "2"]
    assert find(values) is None
    assert find_number_format(values, np.array([1] * 30 + [2_000] * 2)) == PLAIN


def test_strings_of_digits_with_a_leading_zero_are_codes():
    assert are_codes(["01234", "98101"])
    assert are_codes([" 007 ", "1"])
    assert not are_codes(["0", "5"])
    assert not are_codes(["01234", "1.5"])
    assert not are_codes(["00:10", "0x1"])
    assert find(["01234", "98101"], forced=True) == PLAIN
    assert find(["0", "0.5", "10"]) == PLAIN


def test_forced_numbers_need_one_number():
    assert find(["low", "high", "1,5", "2,25"], forced=True) == NumberFormat(".", ",")
    assert find(["low", "high"], forced=True) is None


def test_new_rows_may_be_plain_or_without_the_unit_but_not_of_another_unit():
    kilos = NumberFormat(".", ",", suffix="kg")
    new = ["1.234,5 kg", "1.234,5", "7", "1234.5", "5 g", "1,234,567", "many"]
    parsed, valid, exact = parse_numbers(new, kilos)
    np.testing.assert_array_equal(parsed[:4], [1234.5, 1234.5, 7, 1234.5])
    assert valid.tolist() == [True, True, True, True, False, False, False]
    assert exact.tolist() == [True, False, False, False, False, False, False]


def test_plain_numbers_are_read_as_python_reads_them():
    _, valid = parse_floats(["1_000", "", "1e5", " 2 ", "+3", "yes", "truely"])
    assert valid.tolist() == [False, False, True, True, True, False, False]
    booleans, valid = parse_floats(["True", "FALSE", " true "])
    assert valid.all()
    assert booleans.tolist() == [1, 0, 1]
    # As in earlier versions: a column of these has nothing odd.
    assert find(["1", "nan"]) == PLAIN
    assert find(["True", "False"]) == PLAIN
    assert find(["True", "False", "unknown"]) is None


STYLES = [
    NumberFormat(thousands, decimal, prefix, suffix)
    for thousands, decimal in [(",", "."), (".", ","), (" ", ","), ("'", "."), (" ", ".")]
    for prefix, suffix in [("", ""), ("$", ""), ("USD", ""), ("", "%"), ("", "kg"), ("€", "/day")]
]


def write(number: float, style: NumberFormat, *, brackets: bool) -> str:
    text = f"{abs(number):,.2f}"
    text = text.replace(",", "T").replace(".", style.decimal).replace("T", style.thousands)
    text = f"{style.prefix} {text}{style.suffix}"
    return text if number >= 0 else f"({text})" if brackets else f"\u2212{text}"


@pytest.mark.slow
@given(
    st.sampled_from(STYLES),
    st.lists(st.integers(-(10**12), 10**12), min_size=2),
    st.booleans(),
)
def test_numbers_of_any_style_are_read_back(style, hundredths, brackets):
    # One number proves the format; the others may be of any size.
    numbers = [1234.5, -0.25, *(whole / 100 for whole in hundredths)]
    texts = list(dict.fromkeys(write(number, style, brackets=brackets) for number in numbers))
    found = find(texts)
    assert found == style
    parsed, valid, exact = parse_numbers(texts, found)
    assert valid.all()
    assert exact.all()
    np.testing.assert_array_equal(parsed, list(dict.fromkeys(numbers)))


@given(st.lists(st.text()))
def test_any_text_is_read_or_refused(values):
    counts = np.ones(len(values), dtype=np.int64)
    for forced in (False, True):
        number_format = find_number_format(values, counts, forced=forced)
        if number_format is not None:
            parse_numbers(values, number_format)


@given(st.lists(st.floats(allow_nan=False).map(repr), min_size=1))
def test_plain_numbers_keep_their_bits(values):
    assert find(values) == PLAIN
    assert parse_numbers(values, PLAIN)[0].tolist() == [float(value) for value in values]
