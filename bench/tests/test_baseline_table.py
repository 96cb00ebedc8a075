from __future__ import annotations

from bench.tests.made_results import done, failed
from tabnsm_bench.baseline_table import baseline_table
from tabnsm_bench.baselines.catalog import BASELINES
from tabnsm_bench.protocol import RunSpec


def test_every_baseline_has_a_row_with_a_score_or_a_reason() -> None:
    good = done(RunSpec("ridge", "cpu_small"), 2.0, fit_cpu_seconds=0.25)
    short = done(RunSpec("ridge", "cpu_small", max_epochs=3), 2.0, fit_cpu_seconds=9.0)
    bad = done(RunSpec("mlp", "cpu_small"), 2.0, fit_cpu_seconds=1.0, notes=["short"])
    bad["metrics"]["test"]["r2"] = -0.1
    lost = failed(RunSpec("saint", "cpu_small"), "MemoryError: saint ran out of memory.\nmore")
    table = baseline_table([good, short, bad, lost])
    rows = {row[0].text: row[1:] for row in table.rows}
    assert list(rows) == [info.name for info in BASELINES.values()]
    assert [cell.text for cell in rows["Ridge"]] == ["scikit-learn", "0.900", "0.2"]
    assert not rows["Ridge"][1].marks
    assert rows["MLP"][1].text == "-0.100"
    notes = {name: [table.footnotes[k - 1] for k in row[1].marks] for name, row in rows.items()}
    assert notes["MLP"] == ["short", "not better than the mean after so few epochs"]
    assert notes["SAINT"] == ["MemoryError: saint ran out of memory."]
    assert "no regressor" in notes["TabEBM"][0]
    assert notes["KNN-5"] == ["not run."]
    assert table.notes[0] == "1 of 39 methods are better than the mean on every dataset."
