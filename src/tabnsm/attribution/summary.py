"""ExplanationSummary: many explanations as means and a sample."""

from __future__ import annotations

import numpy as np

from tabnsm.attribution.explanation import Explanation


class ExplanationSummary:
    """Means over all rows, and some rows drawn at random, from parts that come by once.

    Parameters
    ----------
    n_sampled : int
        Rows to keep; each has the same chance.
    seed : int, default 0
        Of the draw.

    Attributes
    ----------
    n_rows : int
        Rows seen so far.
    columns : tuple of str
        As in `Explanation`.
    """

    def __init__(self, n_sampled: int, seed: int = 0) -> None:
        self.n_sampled = n_sampled
        self.n_rows = 0
        self.columns: tuple[str, ...] = ()
        self._importance: np.ndarray = np.zeros(0)
        self._foreground: np.ndarray | None = None
        self._sample: list[tuple[np.ndarray, float]] = []
        self._generator = np.random.default_rng(seed)

    def add(self, part: Explanation) -> None:
        """Take further rows into account.

        Parameters
        ----------
        part : Explanation
            Of the same model as all others.
        """
        n_new = len(part.predictions)
        importance = part.importance * n_new
        foreground = part.foreground
        total = None if foreground is None else foreground.sum(axis=0, dtype=np.float64)
        if self.n_rows:
            importance = importance + self._importance
            total = None if total is None else total + self._foreground
        self.columns, self._importance, self._foreground = part.columns, importance, total

        attributions = part.attributions
        for k in range(n_new):
            place = self.n_rows + k
            if place >= self.n_sampled:
                # A later row takes the place of an earlier one with the chance that keeps the
                # sample even, however many are still to come.
                place = int(self._generator.integers(place + 1))
            if place < self.n_sampled:
                self._sample[place : place + 1] = [(attributions[k], float(part.predictions[k]))]
        self.n_rows += n_new

    @property
    def importance(self) -> np.ndarray:
        """Mean share of each column in the attribution of a row, (n_columns,)."""
        return self._importance / self.n_rows

    @property
    def foreground(self) -> np.ndarray | None:
        """Mean share of a row's queries that selected each column's block, (n_columns,)."""
        return None if self._foreground is None else self._foreground / self.n_rows

    @property
    def sampled_attributions(self) -> np.ndarray:
        """Attributions of the rows that were kept, (n_sampled, n_columns)."""
        return np.array([attributions for attributions, _ in self._sample])

    @property
    def sampled_predictions(self) -> np.ndarray:
        """Their predictions, (n_sampled,)."""
        return np.array([prediction for _, prediction in self._sample])
