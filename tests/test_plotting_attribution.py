from __future__ import annotations

import builtins
import struct
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tabnsm.errors import MissingExtraError
from tabnsm.plotting_attribution import plot_heatmap, plot_importance


def example(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray, list[str], np.ndarray]:
    rng = np.random.default_rng(0)
    attributions = rng.uniform(size=(n_rows, n_columns))
    names = [f"column {k}" for k in range(n_columns)]
    return attributions, rng.normal(size=n_rows), names, rng.dirichlet(np.ones(n_columns))


def texts(path: Path) -> str:
    """What an SVG says: glyphs are drawn as paths, but each text stays as a comment."""
    content = path.read_text(encoding="utf-8")
    ET.fromstring(content)
    return content


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "n_columns"), [(1, 1), (3, 31), (100, 400)])
def test_both_pictures_as_png_and_svg(tmp_path: Path, n_rows: int, n_columns: int) -> None:
    attributions, predictions, names, importance = example(n_rows, n_columns)
    written = plot_heatmap(attributions, predictions, names, importance, tmp_path / "heatmap")
    written += plot_importance(names, importance, n_rows, tmp_path / "bars.v1")
    assert [path.name for path in written] == [
        "heatmap.png",
        "heatmap.svg",
        "bars.v1.png",
        "bars.v1.svg",
    ]
    assert sorted(tmp_path.iterdir()) == sorted(written)
    for path in written[::2]:
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", content[16:24])
        assert 500 < width < 2000
        assert 180 < height < 2000


def test_the_other_columns_are_drawn_together(tmp_path: Path) -> None:
    attributions, predictions, names, importance = example(20, 400)
    plot_heatmap(attributions, predictions, names, importance, tmp_path / "h", top=10)
    plot_importance(names, importance, 20, tmp_path / "b", top=10)
    order = np.argsort(-importance)
    for stem, rest in (("h", "strongest of 390 others"), ("b", "390 other columns together")):
        content = texts(tmp_path / f"{stem}.svg")
        assert rest in content
        shown = [k for k in range(400) if f"<!-- column {k} -->" in content]
        assert sorted(order[:10]) == shown


def test_a_truncated_tail_is_marked(tmp_path: Path) -> None:
    names = [f"column {k}" for k in range(100)]
    plot_importance(names, np.full(100, 0.01), 5, tmp_path / "b", top=10)
    assert "90.0 (cut off)" in texts(tmp_path / "b.svg")
    plot_importance(names[:3], np.array([0.5, 0.3, 0.2]), 5, tmp_path / "b", top=2)
    assert "cut off" not in texts(tmp_path / "b.svg")


def test_a_model_that_looks_at_nothing(tmp_path: Path) -> None:
    plot_importance(["a", "b"], np.zeros(2), 5, tmp_path / "b")
    plot_heatmap(np.zeros((3, 2)), np.zeros(3), ["a", "b"], np.zeros(2), tmp_path / "h")
    assert len(list(tmp_path.iterdir())) == 4


def test_odd_names(tmp_path: Path) -> None:
    """A formula's sign, a script the font lacks, a line break, and no end."""
    names = ["price in $ or $", "价格", "two\nlines", "long " * 20]
    attributions = np.ones((2, 4))
    plot_heatmap(attributions, np.zeros(2), names, np.full(4, 0.25), tmp_path / "h")
    content = texts(tmp_path / "h.svg")
    assert "two lines" in content
    assert "long long long long long lo…" in content


@pytest.mark.slow
def test_same_input_same_bytes(tmp_path: Path) -> None:
    attributions, predictions, names, importance = example(5, 5)
    for stem in ("a", "b"):
        plot_heatmap(attributions, predictions, names, importance, tmp_path / stem)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_matplotlib(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[plot\]"'):
        plot_importance(["a"], np.ones(1), 1, tmp_path / "b")
