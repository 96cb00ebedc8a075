"""Stand-ins for heavy parts, for tests that are about something else."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray


class FakeTextEncoder:
    """Deterministic unit vectors from a hash of each string; counts what it is asked."""

    def __init__(self, d_text: int = 384, name: str = "fake", max_chars: int = 10_000) -> None:
        self.name = name
        self.d_text = d_text
        self.fingerprint = f"{name}-{d_text}"
        self.max_chars = max_chars
        self.encoded: list[str] = []

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        self.encoded.extend(texts)
        rows = np.empty((len(texts), self.d_text), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
            row[:] = np.random.default_rng(seed).standard_normal(self.d_text)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def count_truncated(self, texts: list[str]) -> int:
        return sum(len(text) > self.max_chars for text in texts)
