from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tabnsm import InvalidOptionError
from tabnsm.attribution import Explanation


def make(n_rows: int = 6, n_columns: int = 4, **fields: Any) -> Explanation:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n_rows, n_columns)) * np.arange(n_columns, 0, -1)
    base = np.full(n_rows, 10.0)
    strings = np.array([None if k == 1 else f"town ${k}" for k in range(n_rows)], dtype=object)
    numbers = [rng.normal(size=n_rows) for _ in range(n_columns - 1)]
    parts = {
        "predictions": base + values.sum(axis=1),
        "contributions": values,
        "feature_contributions": values,
        "columns": tuple(f"column {k} with a name that is rather long" for k in range(n_columns)),
        "encoded_names": tuple(f"x{k}" for k in range(n_columns)),
        "column_of_feature": np.arange(n_columns),
        "selected_blocks": None,
        "selection_block_size": 2,
        "method": "integrated",
        "base_values": base,
        "path_errors": np.zeros(n_rows),
        "column_values": (strings, *numbers),
    }
    return Explanation(**parts | fields)


def bars(figure: Any) -> list[tuple[float, float]]:
    return [(p.get_x(), p.get_x() + p.get_width()) for p in figure.axes[0].patches]


@pytest.mark.parametrize("top", [1, 3, 4, 10])
def test_a_waterfall_leads_from_base_to_prediction(top: int) -> None:
    explanation = make()
    figure = explanation.plot_waterfall(2, top=top)
    steps = bars(figure)
    assert len(steps) == min(top + 1, 4)
    assert steps[0][0] == pytest.approx(10.0)
    assert steps[-1][1] == pytest.approx(explanation.predictions[2])
    for before, after in pairwise(steps):
        assert before[1] == pytest.approx(after[0])
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    sizes = [abs(end - start) for start, end in steps]
    if top >= 4:
        assert sizes == sorted(sizes)
        assert any("= town" in label for label in labels)
    else:
        assert labels[0] == ("1 other column" if top == 3 else "3 other columns")
    assert "prediction" in figure.axes[0].get_title()


def test_missing_values_are_named() -> None:
    labels = [text.get_text() for text in make().plot_waterfall(1).axes[0].get_yticklabels()]
    assert sum(label.endswith("missing") for label in labels) == 1


def test_files_are_written(tmp_path: Path) -> None:
    explanation = make(30)
    explanation.plot_waterfall(path=tmp_path / "w.png")
    explanation.plot_beeswarm(path=tmp_path / "b.svg")
    assert (tmp_path / "w.png").read_bytes()[1:4] == b"PNG"
    assert b"<svg" in (tmp_path / "b.svg").read_bytes()


def test_a_beeswarm_has_a_point_per_row_and_column() -> None:
    explanation = make(40)
    figure = explanation.plot_beeswarm(top=3)
    axis = figure.axes[0]
    points = np.concatenate([drawn.get_offsets() for drawn in axis.collections])
    assert len(points) == 3 * 40
    size = np.abs(explanation.contributions).mean(axis=0)
    order = np.argsort(-size)[:3]
    for place, column in enumerate(order):
        row = points[np.round(points[:, 1]) == place]
        np.testing.assert_allclose(np.sort(row[:, 0]), np.sort(explanation.values[:, column]))
    # Equal values are moved apart.
    flat = make(20, contributions=np.zeros((20, 4)))
    points = np.asarray(flat.plot_beeswarm(top=1).axes[0].collections[0].get_offsets())
    assert len(np.unique(points[:, 1])) > 10


def test_many_rows_are_sampled() -> None:
    title = make(1500).plot_beeswarm().axes[0].get_title()
    assert title == "Contributions, 1,000 of 1,500 rows"


def test_gradients_are_drawn_in_standard_deviations_and_without_values() -> None:
    gradient = make(8, method="gradient", base_values=None, path_errors=None, column_values=())
    assert "standard deviations" in gradient.plot_beeswarm().axes[0].get_xlabel()
    with pytest.raises(InvalidOptionError, match=r'method="integrated"'):
        gradient.plot_waterfall()


def test_rows_and_tops_are_checked() -> None:
    explanation = make()
    with pytest.raises(InvalidOptionError, match="one of the 6 explained rows, got 6"):
        explanation.plot_waterfall(6)
    for draw in (explanation.plot_waterfall, explanation.plot_beeswarm):
        with pytest.raises(InvalidOptionError, match="top must be >= 1, got 0"):
            draw(top=0)
    with pytest.raises(InvalidOptionError, match="at least 1 explained row"):
        explanation[:0].plot_beeswarm()
