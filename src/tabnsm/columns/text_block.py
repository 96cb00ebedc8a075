"""Text columns, joined or each by itself: every distinct string is embedded once."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.joined import all_distinct, join_texts
from tabnsm.columns.text_direction import Directions
from tabnsm.errors import InvalidOptionError, ModelFileError, warn
from tabnsm.tables.column import Factor
from tabnsm.tables.stored import parts_of
from tabnsm.text.embedding import SecondsLeft, TextTooSlowError, embed_texts
from tabnsm.text.encoder import TextEncoder, load_encoder, recall_encoder
from tabnsm.text.projection import TextProjection, share_out
from tabnsm.work_folder import WorkFolder

if TYPE_CHECKING:
    from tabnsm.columns.config import EncoderConfig

_TENSORS = ("center", "scale", "directions")
# The library that reads an encoder, and the seconds that this takes once in a process.
_MINILM_LOAD, _OTHER_LOAD = ("tokenizers", 1.0), ("sentence_transformers", 5.0)


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
        library, seconds = _MINILM_LOAD if config.text_encoder == "minilm" else _OTHER_LOAD
        is_loaded = not isinstance(config.text_encoder, str) or library in sys.modules
        if seconds_left is not None and not is_loaded and seconds_left() / 2 < seconds:
            raise TextTooSlowError("Loading the text encoder", seconds, seconds_left())
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

    def narrow(self, directions: Directions = ()) -> list[TextProjection]:
        """Projections that share `n_text_features`, with a further feature for each direction."""
        if self._projections[0].directions is None:
            return self._projections
        total = self.config.n_text_features or self.encoder.d_text
        widths = share_out([len(found.scale) for found in self._projections], total)
        added = directions or [()] * len(widths)
        return [
            found.narrow(width, [each.weights for each in own], [each.scale for each in own])
            for found, width, own in zip(self._projections, widths, added, strict=True)
        ]

    def fit(
        self,
        factors: Iterable[Factor],
        rows: NDArray[np.int64] | None,
        seconds_left: SecondsLeft | None = None,
        folder: WorkFolder | None = None,
    ) -> tuple[TextFeatures, ...]:
        """Embed all rows, and find the directions of the fit rows; `project` makes features.

        Parameters
        ----------
        factors : iterable of Factor
            Text columns.
        rows : ndarray of int64 or None
            Fit rows; None for all.
        seconds_left : callable or None
            Seconds left of a time limit.
        folder : WorkFolder or None
            Where embeddings are kept; None is in memory.

        Returns
        -------
        tuple of TextFeatures
            Embeddings of the joined text, or of each text column.

        Raises
        ------
        TextTooSlowError
            If embedding would take more than half of the time left.
        """
        texts, indices = self._distinct(factors, folder)
        distinct, places = all_distinct(texts, folder)
        embeddings = self._embed_all(distinct, places, seconds_left, folder)
        self._report_truncated(distinct)
        counts = [
            torch.from_numpy(np.bincount(index if rows is None else index[rows], minlength=len(e)))
            for index, e in zip(indices, embeddings, strict=True)
        ]
        if self._is_joined and not self.config.n_text_features:
            find = TextProjection.along_axes
        else:
            # NOTE[DIFF]: the paper keeps all dimensions, most of which hold noise on few rows.
            find = TextProjection.along_directions
        self._projections = [find(*pair) for pair in zip(embeddings, counts, strict=True)]
        pairs = zip(embeddings, map(torch.from_numpy, indices), strict=True)
        return tuple(TextFeatures(*pair) for pair in pairs)

    def project(
        self,
        texts: Sequence[TextFeatures],
        directions: Directions = (),
        folder: WorkFolder | None = None,
    ) -> tuple[TextFeatures, ...]:
        """Features of what `fit` embedded, as many as the options allow.

        Parameters
        ----------
        texts : sequence of TextFeatures
            Embeddings.
        directions : sequence of sequence of TextDirection
            What each column says about the targets, a further feature each.
        folder : WorkFolder or None
            Where features are kept; None is in memory.

        Returns
        -------
        tuple of TextFeatures
        """
        self._projections = self.narrow(directions)
        embeddings, indices = [t.values for t in texts], [t.index for t in texts]
        features = self._features(embeddings, indices, folder)
        for text, own in zip(features, directions, strict=bool(directions)):
            for place, found in enumerate(own, text.values.shape[1] - len(own)):
                text.values[found.texts, place] = (found.held_out / found.scale).float()
        return features

    def transform(
        self, factors: Iterable[Factor], folder: WorkFolder | None = None
    ) -> tuple[TextFeatures, ...]:
        """Embed new rows.

        Parameters
        ----------
        factors : iterable of Factor
            Text columns.
        folder : WorkFolder or None
            Where embeddings are kept; None is in memory.

        Returns
        -------
        tuple of TextFeatures
            Of the joined text, or of each text column.
        """
        texts, indices = self._distinct(factors, folder)
        embeddings = self._embed_all(*all_distinct(texts, folder), None, folder)
        return self._features(embeddings, list(map(torch.from_numpy, indices)), folder)

    def _distinct(
        self, factors: Iterable[Factor], folder: WorkFolder | None
    ) -> tuple[list[Sequence[str]], list[NDArray[np.int64]]]:
        """Distinct strings, and each row's, of the joined text or of each column."""
        groups = [list(factors)] if self._is_joined else ([factor] for factor in factors)
        texts, indices = [], []
        for k, group in enumerate(groups):
            strings, index = join_texts(group, folder)
            texts.append(strings)
            indices.append(index if folder is None else folder.keep(f"text_index_{k}", index))
        return texts, indices

    def _features(
        self,
        embeddings: list[Tensor],
        indices: list[Tensor],
        folder: WorkFolder | None,
    ) -> tuple[TextFeatures, ...]:
        features = []
        for k, (project, index) in enumerate(zip(self._projections, indices, strict=True)):
            shape = (len(embeddings[k]), len(project.scale))
            out = None if folder is None else torch.from_numpy(folder.empty(f"text_{k}", shape))
            features.append(TextFeatures(project(embeddings[k], out), index))
        return tuple(features)

    def _report_truncated(self, texts: Sequence[str]) -> None:
        n_truncated = sum(self.encoder.count_truncated(list(part)) for part in parts_of(texts))
        if n_truncated == 0:
            return
        self.note = f"{n_truncated:,} of {len(texts):,} texts are cut: too long for the encoder"
        warn(
            f"{n_truncated:,} of {len(texts):,} distinct texts are longer than the text encoder "
            f"{self.encoder.name!r} reads; what comes after its limit is ignored. Shorten them, "
            "or drop text columns that say little."
        )

    def _embed_all(
        self,
        texts: Sequence[str],
        places: list[NDArray[np.int64]],
        seconds_left: SecondsLeft | None,
        folder: WorkFolder | None,
    ) -> list[Tensor]:
        """Embed distinct strings: one tensor, or one per list of places of them."""
        name = "embeddings" if places else "embeddings_0"
        embeddings = embed_texts(
            texts,
            self.encoder,
            use_cache=self.config.text_cache,
            verbose=self.config.verbose,
            seconds_left=seconds_left,
            out=_room(folder, name, (len(texts), self.encoder.d_text)),
        )
        if not places:
            return [torch.from_numpy(embeddings)]
        parts = []
        for k, part in enumerate(places):
            out = _room(folder, f"embeddings_{k}", (len(part), self.encoder.d_text))
            parts.append(torch.from_numpy(np.take(embeddings, part, 0, out, mode="clip")))
        return parts


def _room(folder: WorkFolder | None, name: str, shape: tuple[int, int]) -> NDArray[np.float32]:
    return np.empty(shape, dtype=np.float32) if folder is None else folder.empty(name, shape)
