from __future__ import annotations

import json

from tabnsm.columns.schema import ColumnSpec
from tabnsm.tables.number_format import NumberFormat, parse_numbers


def test_facts_survive_json():
    spec = ColumnSpec(
        2, "when", "date", 0.5, 3, "a note", date_format="m/d/Y", date_parts=("days", "year")
    )
    assert ColumnSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_codes_include_unseen_and_missing():
    assert ColumnSpec(0, "c", "category", vocabulary=("a", "b")).n_codes == 3
    assert ColumnSpec(0, "c", "category", vocabulary=("a",), missing_code=True).n_codes == 3


def test_number_formats_survive_json():
    spec = ColumnSpec(0, "price", "numeric", number_format=NumberFormat(".", ",", suffix="kg"))
    assert ColumnSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_columns_of_earlier_files_are_read_as_they_were():
    entries = ColumnSpec(0, "n", "numeric").to_dict()
    for name in ("number_format", "from_dates"):
        del entries[name]
    earlier = ColumnSpec.from_dict(entries)
    assert earlier.from_dates
    assert parse_numbers(["1.5", "1,234"], earlier.number_format)[1].tolist() == [True, False]
