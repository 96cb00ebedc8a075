"""Text columns, joined or each by itself: every distinct string is embedded once."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.encoded import TextFeatures
from tabnsm.errors import InvalidOptionError, ModelFileError, warn
from tabnsm.tables.column import Factor
from tabnsm.text.embedding import SecondsLeft, TextTooSlowError, embed_texts
from tabnsm.text.encoder import TextEncoder, load_encoder, recall_encoder
from tabnsm.text.projection import TextProjection

if TYPE_CHECKING:
    from tabnsm.columns.config import EncoderConfig

_TENSORS = ("center", "scale", "directions")
# Seconds to import and load a model of sentence-transformers, once in a process.
_LOAD_SECONDS = 5.0
_LIBRARY = "sentence_transformers"


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
    """The text part of a table: an encoder, and what becomes of its embeddings.

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
        self._projections: list[TextProjection] = []

    @classmethod
    def create(cls, config: EncoderConfig, seconds_left: SecondsLeft | None = None) -> TextBlock:
        """Load the encoder that the options ask for.

        Parameters
        ----------
        config : EncoderConfig
            Options.
        seconds_left : callable or None
            Seconds left of a time limit.

        Returns
        -------
        TextBlock
            Not fitted yet.

        Raises
        ------
        TextTooSlowError
            If loading would take more than half of the time left.
        """
        is_loaded = not isinstance(config.text_encoder, str) or _LIBRARY in sys.modules
        if seconds_left is not None and not is_loaded and seconds_left() / 2 < _LOAD_SECONDS:
            raise TextTooSlowError("Loading the text encoder", _LOAD_SECONDS, seconds_left())
        return cls(load_encoder(config.text_encoder, config.text_precision), config)

    @classmethod
    def from_state(
        cls, tensors: dict[str, Tensor], meta: dict[str, Any], config: EncoderConfig
    ) -> TextBlock:
        """Rebuild a fitted block, and check that the encoder is there and the same.

        A model whose files show that is loaded only when a string is not in the cache.

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
        joined = config.text_columns == "joined"
        prefixes = [""] if joined else [f"{k}." for k in range(len(meta["d_text"]))]
        projections = [
            # Copies, since what was read may be a view of the whole file.
            TextProjection(
                **{
                    name: tensors[f"{prefix}{name}"].clone()
                    for name in _TENSORS
                    if f"{prefix}{name}" in tensors
                }
            )
            for prefix in prefixes
        ]
        try:
            encoder = recall_encoder(
                config.text_encoder,
                config.text_precision,
                meta["fingerprint"],
                len(projections[0].center),
            )
        except InvalidOptionError as error:
            raise ModelFileError(
                f"This model has text columns and needs the text encoder {meta['name']!r}. "
                f"{error} Or pass the encoder as text_encoder when loading."
            ) from error
        if encoder.fingerprint != meta["fingerprint"]:
            raise ModelFileError(
                f"The text encoder must be the one the model was fitted with, {meta['name']!r} "
                f"({meta['fingerprint'][:16]}), got {encoder.name!r} "
                f"({encoder.fingerprint[:16]}). Pass that one as text_encoder when loading."
            )
        block = cls(encoder, config)
        block.note = meta["note"]
        block._projections = projections
        return block

    def keep(self, kept: Sequence[bool]) -> None:
        """Leave out some of the columns that are embedded each by itself."""
        self._projections = list(itertools.compress(self._projections, kept))

    @property
    def d_text(self) -> int | list[int]:
        """Number of features of the joined text, or of each text column."""
        widths = [len(projection.scale) for projection in self._projections]
        return widths[0] if self._is_joined else widths

    @property
    def _is_joined(self) -> bool:
        return self.config.text_columns == "joined"

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything fitted, as tensors and JSON-able facts.

        Returns
        -------
        tuple of dict
            Tensors and facts.
        """
        tensors: dict[str, Tensor] = {}
        for k, projection in enumerate(self._projections):
            prefix = "" if self._is_joined else f"{k}."
            tensors |= {
                f"{prefix}{name}": value
                for name in _TENSORS
                if (value := getattr(projection, name)) is not None
            }
        return tensors, {
            "name": self.encoder.name,
            "fingerprint": self.encoder.fingerprint,
            "d_text": self.d_text,
            "note": self.note,
        }

    def fit_transform(
        self,
        factors: Sequence[Factor],
        rows: NDArray[np.int64] | None,
        seconds_left: SecondsLeft | None = None,
    ) -> tuple[TextFeatures, ...]:
        """Embed all rows; what becomes of the embeddings is learned from the fit rows.

        Parameters
        ----------
        factors : sequence of Factor
            Text columns.
        rows : ndarray of int64 or None
            Fit rows; None for all.
        seconds_left : callable or None
            Seconds left of a time limit.

        Returns
        -------
        tuple of TextFeatures
            Of the joined text, or of each text column.

        Raises
        ------
        TextTooSlowError
            If embedding would take more than half of the time left.
        """
        texts, indices = self._distinct(factors)
        embeddings = self._embed_all(texts, seconds_left)
        self._report_truncated(list(dict.fromkeys(itertools.chain(*texts))))
        counts = [
            torch.from_numpy(np.bincount(index if rows is None else index[rows], minlength=len(e)))
            for index, e in zip(indices, embeddings, strict=True)
        ]
        n_features = self.config.n_text_features
        if self._is_joined and not n_features:
            self._projections = [TextProjection.along_axes(embeddings[0], counts[0])]
        else:
            # NOTE[DIFF]: the paper keeps all dimensions, most of which hold noise on few rows.
            self._projections = TextProjection.along_directions(
                list(zip(embeddings, counts, strict=True)), n_features or self.encoder.d_text
            )
        return self._features(embeddings, indices)

    def transform(self, factors: Sequence[Factor]) -> tuple[TextFeatures, ...]:
        """Embed new rows.

        Parameters
        ----------
        factors : sequence of Factor
            Text columns.

        Returns
        -------
        tuple of TextFeatures
            Of the joined text, or of each text column.
        """
        texts, indices = self._distinct(factors)
        return self._features(self._embed_all(texts), indices)

    def _distinct(
        self, factors: Sequence[Factor]
    ) -> tuple[list[list[str]], list[NDArray[np.int64]]]:
        """Distinct strings, and each row's, of the joined text or of each column."""
        groups = [factors] if self._is_joined else [[factor] for factor in factors]
        texts, indices = zip(*(join_texts(group) for group in groups), strict=True)
        return list(texts), list(indices)

    def _features(
        self, embeddings: list[Tensor], indices: list[NDArray[np.int64]]
    ) -> tuple[TextFeatures, ...]:
        return tuple(
            TextFeatures(project(values), torch.from_numpy(index))
            for project, values, index in zip(self._projections, embeddings, indices, strict=True)
        )

    def _report_truncated(self, texts: list[str]) -> None:
        n_truncated = self.encoder.count_truncated(texts)
        if n_truncated == 0:
            return
        self.note = f"{n_truncated:,} of {len(texts):,} texts are cut: too long for the encoder"
        warn(
            f"{n_truncated:,} of {len(texts):,} distinct texts are longer than the text encoder "
            f"{self.encoder.name!r} reads; what comes after its limit is ignored. Shorten them, "
            "or drop text columns that say little."
        )

    def _embed_all(
        self, texts: list[list[str]], seconds_left: SecondsLeft | None = None
    ) -> list[Tensor]:
        """One tensor per list of strings; a string that several lists hold is embedded once."""
        if len(texts) == 1:
            return [torch.from_numpy(self._embed(texts[0], seconds_left))]
        place_of = {text: k for k, text in enumerate(dict.fromkeys(itertools.chain(*texts)))}
        embeddings = torch.from_numpy(self._embed(list(place_of), seconds_left))
        return [embeddings[[place_of[text] for text in part]] for part in texts]

    def _embed(self, texts: list[str], seconds_left: SecondsLeft | None) -> NDArray[np.float32]:
        return embed_texts(
            texts,
            self.encoder,
            use_cache=self.config.text_cache,
            verbose=self.config.verbose,
            seconds_left=seconds_left,
        )
