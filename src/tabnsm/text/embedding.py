"""Embeddings of many strings: from the cache where they are there, from the encoder else."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tabnsm.text.cache import TextCache
from tabnsm.text.encoder import TextEncoder
from tabnsm.text.progress import TextProgress

# Strings that are looked up, encoded and stored at a time; what is done survives a crash.
_BATCH = 1024
# Where time is limited: texts of all lengths, whose time says how long the rest would take.
_SAMPLE = 32
# Work of a text in characters: every text has some, and encoders cut long ones.
_FIXED_WORK, _MAX_WORK = 20, 1200

SecondsLeft = Callable[[], float]


class TextTooSlowError(Exception):
    """Texts take longer to embed than the time limit of a fit allows.

    `work` is what takes so long, as the start of a sentence; `n_done` texts were embedded.
    """

    def __init__(self, work: str, seconds: float, seconds_left: float, n_done: int = 0) -> None:
        super().__init__(f"{work} takes {seconds:.1f} s, {seconds_left:.1f} s are left")
        self.work = work
        self.seconds = seconds
        self.seconds_left = seconds_left
        self.n_done = n_done


def embed_texts(
    texts: Sequence[str],
    encoder: TextEncoder,
    *,
    use_cache: bool,
    verbose: int = 0,
    seconds_left: SecondsLeft | None = None,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Embed strings; alike lengths go together, so that the encoder has little to pad.

    Strings are distinct. Of the `seconds_left` of a time limit they may take half, else
    `TextTooSlowError` is raised; those embedded so far are in the cache. `out`, of shape
    (len(texts), d_text), takes the embeddings; None is a new array.
    """
    embeddings = np.empty((len(texts), encoder.d_text), dtype=np.float32) if out is None else out
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    order = np.argsort(lengths, kind="stable")
    progress = TextProgress(verbose)
    with progress, _open_cache(encoder, use_cache) as cache:
        progress.look_up(len(texts))
        missing = order if cache is None else _look_up(texts, order, cache, embeddings)
        work = _Work(lengths[missing], seconds_left)
        progress.begin(len(missing), work.total)
        for batch in _batches(missing, seconds_left is not None):
            new = [texts[k] for k in batch]
            embeddings[batch] = encoder.encode(new)
            if cache is not None:
                cache.put(new, embeddings[batch])
            progress.done(len(new), _work_of(lengths[batch]))
            work.done(lengths[batch])
    return embeddings


def _look_up(
    texts: Sequence[str], order: NDArray[np.int64], cache: TextCache, out: NDArray[np.float32]
) -> NDArray[np.int64]:
    """Fill in what the cache has; the places of what it has not, in the same order."""
    missing = []
    for start in range(0, len(order), _BATCH):
        batch = order[start : start + _BATCH]
        values = np.empty((len(batch), out.shape[1]), dtype=np.float32)
        found = cache.get([texts[k] for k in batch], values)
        out[batch[found]] = values[found]
        missing.append(batch[~found])
    return np.concatenate(missing) if missing else order


def _batches(places: NDArray[np.int64], is_timed: bool) -> list[NDArray[np.int64]]:
    """Places in batches; where time is limited, a sample of all lengths comes first."""
    batches = []
    if is_timed and len(places) > _SAMPLE:
        first = np.linspace(0, len(places) - 1, _SAMPLE).astype(np.int64)
        batches.append(places[first])
        places = np.delete(places, first)
    return batches + [places[start : start + _BATCH] for start in range(0, len(places), _BATCH)]


class _Work:
    """How much of the texts is done, how long the rest takes, and whether there is time for it."""

    def __init__(self, lengths: NDArray[np.int64], seconds_left: SecondsLeft | None) -> None:
        self.seconds_left = seconds_left
        self.total, self.n_texts = _work_of(lengths), len(lengths)
        self.finished, self.n_done = 0, 0
        self.started = time.monotonic()

    def done(self, lengths: NDArray[np.int64]) -> None:
        is_first = self.n_done == 0
        self.finished += _work_of(lengths)
        self.n_done += len(lengths)
        n_left = self.n_texts - self.n_done
        if self.seconds_left is None or not n_left:
            return
        passed = time.monotonic() - self.started
        seconds = passed * (self.total / self.finished - 1)
        left = self.seconds_left()
        # Half for the texts. What has begun within that goes on, unless it takes all that is left.
        if seconds > (left / 2 if is_first else left):
            work = f"Embedding {n_left:,} more texts"
            raise TextTooSlowError(work, seconds, left, self.n_done)


def _work_of(lengths: NDArray[np.int64]) -> int:
    return int(np.sum(_FIXED_WORK + np.minimum(lengths, _MAX_WORK)))


def _open_cache(
    encoder: TextEncoder, use_cache: bool
) -> contextlib.AbstractContextManager[TextCache | None]:
    if not use_cache:
        return contextlib.nullcontext()
    return TextCache(encoder.fingerprint, encoder.d_text)
