"""Embeddings of many strings: from the cache where they are there, from the encoder else."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tabnsm.preprocessing.text_cache import TextCache
from tabnsm.preprocessing.text_encoder import TextEncoder

# Strings that are looked up, encoded and stored at a time; what is done survives a crash.
_BATCH = 1024


def embed_texts(
    texts: list[str], encoder: TextEncoder, *, use_cache: bool, verbose: int = 0
) -> NDArray[np.float32]:
    """Embed strings; alike lengths go together, so that the encoder has little to pad.

    Parameters
    ----------
    texts : list of str
        Distinct strings.
    encoder : TextEncoder
        Embeds what is not in the cache.
    use_cache : bool
        Look strings up on disk, and keep what is new there.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    ndarray of float32
        One row per string.

    Shape
    -----
    (len(texts), d_text)
    """
    embeddings = np.empty((len(texts), encoder.d_text), dtype=np.float32)
    order = np.argsort([len(text) for text in texts], kind="stable")
    batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
    with _open_cache(encoder, use_cache) as cache:
        for batch in _progress(batches, verbose):
            embeddings[batch] = _embed_batch([texts[k] for k in batch], encoder, cache)
    return embeddings


def _open_cache(
    encoder: TextEncoder, use_cache: bool
) -> contextlib.AbstractContextManager[TextCache | None]:
    if not use_cache:
        return contextlib.nullcontext()
    return TextCache(encoder.fingerprint, encoder.d_text)


def _embed_batch(
    texts: list[str], encoder: TextEncoder, cache: TextCache | None
) -> NDArray[np.float32]:
    out = np.empty((len(texts), encoder.d_text), dtype=np.float32)
    found = np.zeros(len(texts), dtype=bool) if cache is None else cache.get(texts, out)
    todo = np.flatnonzero(~found)
    if len(todo):
        new = [texts[position] for position in todo]
        out[todo] = encoder.encode(new)
        if cache is not None:
            cache.put(new, out[todo])
    return out


def _progress(batches: list[NDArray[np.int64]], verbose: int) -> Iterator[NDArray[np.int64]]:
    if verbose < 1:
        yield from batches
        return
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    if console.is_terminal:
        yield from track(batches, "Encoding text", console=console, transient=True)
    else:
        console.print(f"Encoding {sum(map(len, batches)):,} distinct texts", highlight=False)
        yield from batches
