"""From embeddings of texts to standardised features, fitted on the training rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Term = Callable[[Tensor, Tensor], Tensor]

# Directions of a column are kept until they hold this share of its variance over the rows.
# What is left is mostly noise, which standardising would blow up to the size of the rest.
KEPT_VARIANCE = 0.99
# Less than the rounding of float32 is no spread at all.
_ROUNDING = 1e-6
_ROWS = 256
_STATISTICS_ROWS = 16_384


@dataclass(frozen=True)
class TextProjection:
    """Standardised features of embeddings, all of them or along orthonormal directions."""

    center: Tensor  # (d_text,), over the training rows
    scale: Tensor  # (d,)
    directions: Tensor | None = None  # (d_text, d); None is the axes themselves

    @classmethod
    def along_axes(cls, embeddings: Tensor, counts: Tensor) -> TextProjection:
        """Standardise each dimension of the embeddings.

        `counts` are the training rows with each distinct text.
        """
        weight = counts.double() / counts.sum()
        center = _sum_of_parts(embeddings, weight, lambda part, share: share @ part)
        variance = _sum_of_parts(
            embeddings, weight, lambda part, share: share @ (part - center).square_()
        )
        spread = variance.sqrt()
        return cls(center, torch.where(spread > _ROUNDING * center.abs(), spread, 1.0))

    @classmethod
    def along_directions(cls, embeddings: Tensor, counts: Tensor) -> TextProjection:
        """The principal directions of a column, as many as `KEPT_VARIANCE` needs, one at least.

        `counts` are the training rows with each distinct text. The target plays no part.
        """
        spectrum = _spectrum(embeddings, counts)
        return cls(
            spectrum.center,
            spectrum.spread[: spectrum.n_needed].contiguous(),
            spectrum.directions[:, : spectrum.n_needed].contiguous(),
        )

    def narrow(
        self, width: int, added: Sequence[Tensor], scales: Sequence[float]
    ) -> TextProjection:
        """The first directions, and further ones, each (d_text,), with the scales of theirs."""
        assert self.directions is not None
        kept = [self.directions[:, :width], *(direction[:, None] for direction in added)]
        scale = torch.cat([self.scale[:width], torch.tensor(scales, dtype=torch.float64)])
        return TextProjection(self.center, scale, torch.cat(kept, dim=1).contiguous())

    def __call__(self, embeddings: Tensor, out: Tensor | None = None) -> Tensor:
        """Features of texts; a row's bits do not depend on the others.

        `out` takes them; None is a new tensor, or the embeddings' where there are no directions.
        """
        if self.directions is None:
            features = embeddings if out is None else out
            pairs = (torch.split(both, _STATISTICS_ROWS) for both in (embeddings, features))
            for part, place in zip(*pairs, strict=True):
                place.copy_((part - self.center) / self.scale)
            return features
        features = torch.empty(len(embeddings), len(self.scale)) if out is None else out
        # Products of one fixed shape: a smaller one may add in another order.
        tile = torch.zeros(_ROWS, len(self.center), dtype=torch.float64)
        for part, place in zip(
            torch.split(embeddings, _ROWS), torch.split(features, _ROWS), strict=True
        ):
            tile[: len(part)] = part - self.center
            place.copy_(((tile @ self.directions) / self.scale)[: len(part)])
        return features


@dataclass(frozen=True)
class _Spectrum:
    """Principal directions of a column, the widest first."""

    center: Tensor
    directions: Tensor
    spread: Tensor
    n_needed: int


def _spectrum(embeddings: Tensor, counts: Tensor) -> _Spectrum:
    weight = counts.double() / counts.sum()
    center = _sum_of_parts(embeddings, weight, lambda part, share: share @ part)
    power = _sum_of_parts(embeddings, weight, lambda part, share: share @ part.square().sum(1))
    covariance = _sum_of_parts(
        embeddings,
        weight,
        lambda part, share: (part - center).T @ ((part - center) * share[:, None]),
    )
    values, vectors = torch.linalg.eigh(covariance)
    values, vectors = values.flip(0).clamp_min(0), vectors.flip(1)
    # The sign of a direction is free: the largest entry is made positive.
    peak = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    vectors = vectors * peak.sign()
    real = values > _ROUNDING**2 * power
    share = torch.cumsum(torch.where(real, values, 0.0), 0)
    n_needed = int((share < KEPT_VARIANCE * share[-1]).sum()) + 1
    return _Spectrum(center, vectors, torch.where(real, values.sqrt(), 1.0), n_needed)


def _sum_of_parts(embeddings: Tensor, weight: Tensor, term: Term) -> Tensor:
    """Sum over texts in float64, a few at a time, so that memory stays small."""
    parts = zip(
        torch.split(embeddings, _STATISTICS_ROWS),
        torch.split(weight, _STATISTICS_ROWS),
        strict=True,
    )
    return torch.stack([term(part.double(), share) for part, share in parts]).sum(0)


def share_out(needs: Sequence[int], total: int) -> list[int]:
    """Give each what it needs, or an even share of what the others leave.

    Each gets 1 at least.

    Examples
    --------
    >>> share_out([3, 200, 500], 384)
    [3, 190, 191]
    >>> share_out([3, 20], 384)
    [3, 20]
    """
    given = [0] * len(needs)
    left = total
    for n_before, place in enumerate(sorted(range(len(needs)), key=lambda k: needs[k])):
        given[place] = max(1, min(needs[place], left // (len(needs) - n_before)))
        left -= given[place]
    return given
