"""What new rows hold that the training rows did not, collected for one warning of each sort."""

from __future__ import annotations

from dataclasses import dataclass, field

from tabnsm.columns.unseen import UnseenValues, describe_unseen
from tabnsm.errors import warn
from tabnsm.tables.reading import ReadingNotes

_MAX_COLUMNS = 5


@dataclass(frozen=True)
class RowNotes:
    """What was found while some rows were encoded.

    Strings that could not be read, values far outside the fit range by column, and category columns
    of which most values are not known.
    """

    reading: ReadingNotes = field(default_factory=ReadingNotes)
    far: dict[str, int] = field(default_factory=dict)
    unseen: list[UnseenValues] = field(default_factory=list)

    def warn(self) -> None:
        """Warn of all columns at once, if there is anything to report."""
        self.reading.warn(fitting=False)
        if self.far:
            self._warn_far()
        if self.unseen:
            warn(describe_unseen(self.unseen))

    def _warn_far(self) -> None:
        worst = sorted(self.far, key=lambda name: -self.far[name])
        named = ", ".join(f"{name!r} ({self.far[name]})" for name in worst[:_MAX_COLUMNS])
        n_more = len(worst) - _MAX_COLUMNS
        more = f" and {n_more} more column(s)" if n_more > 0 else ""
        warn(
            f"{sum(self.far.values())} value(s) lie far outside the range of the training rows "
            f"and were clipped to it, in {named}{more}. Predictions for these rows are "
            "extrapolations."
        )
