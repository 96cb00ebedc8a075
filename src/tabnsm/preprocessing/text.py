"""Text columns: joined per row, each distinct string embedded once by a frozen encoder."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.errors import InvalidOptionError, ModelFileError, TabNSMWarning
from tabnsm.preprocessing.column import Factor
from tabnsm.preprocessing.config import EncoderConfig
from tabnsm.preprocessing.text_cache import TextCache
from tabnsm.preprocessing.text_encoder import TextEncoder, load_encoder

# Strings that are looked up, encoded and stored at a time; what is done survives a crash.
_BATCH = 1024
_STATISTICS_ROWS = 16_384


def join_texts(factors: Sequence[Factor]) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct joined strings, and which of them each row has.

    The values of a row are joined with one space, a missing one as the empty string. Only
    distinct combinations are ever written out.

    Parameters
    ----------
    factors : sequence of Factor
        Text columns of one table.

    Returns
    -------
    tuple
        The distinct strings, and the position of each row's string among them.

    Examples
    --------
    >>> first = Factor(np.array([0, 1, 0]), ["red", "blue"])
    >>> second = Factor(np.array([0, -1, 0]), ["car"])
    >>> join_texts([first, second])
    (['red car', 'blue '], array([0, 1, 0]))
    """
    key = np.zeros(len(factors[0].codes), dtype=np.int64)
    for factor in factors:
        # Renumbering after each column keeps the key far below the limit of int64.
        key = key * (len(factor.values) + 1) + factor.codes + 1
        key = np.unique(key, return_inverse=True)[1].reshape(-1)
    first_row = np.unique(key, return_index=True)[1]
    columns = [_values_at([*factor.values, ""], factor.codes[first_row]) for factor in factors]
    position_of: dict[str, int] = {}
    position = np.empty(len(first_row), dtype=np.int64)
    # Different combinations can join to one string; rows in order of first appearance.
    for combination in np.argsort(first_row):
        text = " ".join(values[combination] for values in columns)
        position[combination] = position_of.setdefault(text, len(position_of))
    return list(position_of), position[key]


def _values_at(values: list[str], codes: NDArray[np.int64]) -> list[str]:
    return [values[code] for code in codes.tolist()]


class TextBlock:
    """The text part of a table: an encoder and the statistics of its dimensions.

    Parameters
    ----------
    encoder : TextEncoder
        Embeds strings.
    config : EncoderConfig
        Options.
    """

    def __init__(self, encoder: TextEncoder, config: EncoderConfig) -> None:
        self.encoder = encoder
        self.config = config
        self.note = ""

    @classmethod
    def create(cls, config: EncoderConfig) -> TextBlock:
        """Load the encoder that the options ask for.

        Parameters
        ----------
        config : EncoderConfig
            Options.

        Returns
        -------
        TextBlock
            Not fitted yet.
        """
        return cls(load_encoder(config.text_encoder), config)

    @classmethod
    def from_state(
        cls, tensors: dict[str, Tensor], meta: dict[str, Any], config: EncoderConfig
    ) -> TextBlock:
        """Rebuild a fitted block, and check that the encoder is the same.

        Parameters
        ----------
        tensors : dict
            Tensors of :meth:`to_state`.
        meta : dict
            Facts of :meth:`to_state`.
        config : EncoderConfig
            Options.

        Returns
        -------
        TextBlock
            Embeds as the saved one did.

        Raises
        ------
        ModelFileError
            If the encoder is not there or is another one.
        """
        try:
            block = cls.create(config)
        except InvalidOptionError as error:
            raise ModelFileError(
                f"This model has text columns and needs the text encoder {meta['name']!r}. "
                f"{error} Or pass the encoder as text_encoder when loading."
            ) from error
        if block.encoder.fingerprint != meta["fingerprint"]:
            raise ModelFileError(
                f"The text encoder must be the one the model was fitted with, {meta['name']!r} "
                f"({meta['fingerprint'][:16]}), got {block.encoder.name!r} "
                f"({block.encoder.fingerprint[:16]}). Pass that one as text_encoder when loading."
            )
        block.note = meta["note"]
        block._center = tensors["center"].numpy().copy()
        block._scale = tensors["scale"].numpy().copy()
        return block

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything fitted, as tensors and JSON-able facts.

        Returns
        -------
        tuple of dict
            Tensors and facts.
        """
        tensors = {
            "center": torch.from_numpy(self._center.copy()),
            "scale": torch.from_numpy(self._scale.copy()),
        }
        encoder = self.encoder
        return tensors, {
            "name": encoder.name,
            "fingerprint": encoder.fingerprint,
            "d_text": encoder.d_text,
            "note": self.note,
        }

    def fit_transform(
        self, factors: Sequence[Factor], rows: NDArray[np.int64] | None
    ) -> tuple[Tensor, Tensor]:
        """Embed all rows; mean and spread come from the fit rows.

        Parameters
        ----------
        factors : sequence of Factor
            Text columns.
        rows : ndarray of int64 or None
            Fit rows; None for all.

        Returns
        -------
        tuple of Tensor
            One standardised embedding per distinct string, and the index of each row's.

        Shape
        -----
        (n_texts, d_text), (n_rows,)
        """
        texts, index = join_texts(factors)
        self._report_truncated(texts)
        embeddings = self._embed(texts)
        counts = np.bincount(index if rows is None else index[rows], minlength=len(texts))
        self._center, self._scale = _weighted_statistics(embeddings, counts)
        return self._standardize(embeddings), torch.from_numpy(index)

    def transform(self, factors: Sequence[Factor]) -> tuple[Tensor, Tensor]:
        """Embed new rows.

        Parameters
        ----------
        factors : sequence of Factor
            Text columns.

        Returns
        -------
        tuple of Tensor
            One standardised embedding per distinct string, and the index of each row's.

        Shape
        -----
        (n_texts, d_text), (n_rows,)
        """
        texts, index = join_texts(factors)
        return self._standardize(self._embed(texts)), torch.from_numpy(index)

    def _report_truncated(self, texts: list[str]) -> None:
        n_truncated = self.encoder.count_truncated(texts)
        if n_truncated == 0:
            return
        self.note = f"{n_truncated:,} of {len(texts):,} texts are cut: too long for the encoder"
        warnings.warn(
            f"{n_truncated:,} of {len(texts):,} distinct texts are longer than the text encoder "
            f"{self.encoder.name!r} reads; what comes after its limit is ignored. Shorten them, "
            "or drop text columns that say little.",
            TabNSMWarning,
            stacklevel=5,
        )

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        """One row per string; alike lengths go together, so that little of a batch is padding."""
        embeddings = np.empty((len(texts), self.encoder.d_text), dtype=np.float32)
        order = np.argsort([len(text) for text in texts], kind="stable")
        batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
        with self._open_cache() as cache:
            for batch in _progress(batches, self.config.verbose):
                embeddings[batch] = self._embed_batch([texts[k] for k in batch], cache)
        return embeddings

    def _embed_batch(self, texts: list[str], cache: TextCache | None) -> NDArray[np.float32]:
        out = np.empty((len(texts), self.encoder.d_text), dtype=np.float32)
        found = np.zeros(len(texts), dtype=bool) if cache is None else cache.get(texts, out)
        todo = np.flatnonzero(~found)
        if len(todo):
            new = [texts[position] for position in todo]
            out[todo] = self.encoder.encode(new)
            if cache is not None:
                cache.put(new, out[todo])
        return out

    def _open_cache(self) -> contextlib.AbstractContextManager[TextCache | None]:
        if not self.config.text_cache:
            return contextlib.nullcontext()
        return TextCache(self.encoder.fingerprint, self.encoder.d_text)

    def _standardize(self, embeddings: NDArray[np.float32]) -> Tensor:
        for start in range(0, len(embeddings), _STATISTICS_ROWS):
            part = embeddings[start : start + _STATISTICS_ROWS]
            part[...] = (part - self._center) / self._scale
        return torch.from_numpy(embeddings)


def _weighted_statistics(
    embeddings: NDArray[np.float32], counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation over rows, a distinct string counting as often as it occurs."""
    total = counts.sum()
    parts = [
        slice(start, start + _STATISTICS_ROWS)
        for start in range(0, len(embeddings), _STATISTICS_ROWS)
    ]
    mean = sum(counts[part] @ embeddings[part].astype(np.float64) for part in parts) / total
    variance = sum(counts[part] @ np.square(embeddings[part] - mean) for part in parts) / total
    spread = np.sqrt(variance)
    # Less than the rounding of float32 is no spread at all.
    return mean, np.where(spread > 1e-6 * np.abs(mean), spread, 1.0)


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
