"""Shared fixtures: the hypothesis profile, a cache of texts for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("ci")


@pytest.fixture(autouse=True)
def _own_text_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache of text embeddings."""
    monkeypatch.setenv("TABNSM_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def one_network() -> Iterator[None]:
    """Train one network unless a test says how many, where the ensemble is not what is tested.

    Without it a fit trains what ships, and takes up to four times as long.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tabnsm.training.config.MAX_NETWORKS", 1)
        yield
