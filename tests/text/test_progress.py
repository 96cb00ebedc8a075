from __future__ import annotations

import pytest

from tabnsm.text.embedding import embed_texts
from tabnsm.text.progress import TextProgress
from tests.fakes import FakeTextEncoder


def test_silent_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    embed_texts(["a", "bb"], FakeTextEncoder(4), use_cache=False)
    assert capsys.readouterr().err == ""


def test_a_log_says_how_many_and_how_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tabnsm.text.progress._PAUSE", 0.0)
    monkeypatch.setattr("tabnsm.text.embedding._BATCH", 2)
    embed_texts([f"text {k}" for k in range(6)], FakeTextEncoder(4), use_cache=False, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Encoding 6 distinct texts"
    assert lines[1].startswith("  2 of 6 texts, about ")
    assert lines[1].endswith(" s left")
    assert len(lines) == 3  # none when all are done


def test_nothing_new_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    encoder = FakeTextEncoder(4)
    for _ in range(2):
        embed_texts(["a", "b"], encoder, use_cache=True, verbose=1)
    assert capsys.readouterr().err.splitlines() == ["Encoding 2 distinct texts"]


def test_a_terminal_has_a_bar_that_is_there_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    with TextProgress(1) as progress:
        assert progress.progress is not None
        task = progress.progress.tasks[0]
        assert task.started
        progress.look_up(5)
        assert task.description == "Looking up 5 texts"
        progress.begin(5, 100)
        progress.done(2, 40)
        assert task.percentage == pytest.approx(40)
