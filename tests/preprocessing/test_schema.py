from __future__ import annotations

import json

from tabnsm.preprocessing.schema import ColumnSpec


def test_facts_survive_json():
    spec = ColumnSpec(
        2, "when", "date", 0.5, 3, "a note", date_format="m/d/Y", date_parts=("days", "year")
    )
    assert ColumnSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_codes_include_unseen_and_missing():
    assert ColumnSpec(0, "c", "category", vocabulary=("a", "b")).n_codes == 3
    assert ColumnSpec(0, "c", "category", vocabulary=("a",), missing_code=True).n_codes == 3
