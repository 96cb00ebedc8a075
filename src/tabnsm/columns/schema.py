"""What is known of each input column, in a form that can be saved."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tabnsm.columns.vocabulary import n_codes
from tabnsm.tables.number_format import PLAIN, NumberFormat

# Models of earlier versions read "1,234" as missing, and dates as numbers.
_EARLIER_FORMAT = {"thousands": "", "decimal": "."}


@dataclass(frozen=True)
class ColumnSpec:
    """What was found out about one input column; shares and counts are of the fit rows."""

    position: int
    name: str
    kind: str
    missing: float = 0.0
    distinct: int = 0
    note: str = ""
    """What the user should know of it."""
    has_value: bool = True
    """Not if it is constant where present: then it has only its indicator."""
    has_indicator: bool = False
    number_format: NumberFormat = PLAIN
    from_dates: bool = False
    """Whether a numeric column holds dates, as the user asked."""
    date_format: str | None = None
    """Of dates written as strings; several have commas between them."""
    date_origin: int = 0
    """Earliest date, in microseconds since 1970."""
    date_parts: tuple[str, ...] = ()
    """Those that vary."""
    vocabulary: tuple[str, ...] = ()
    missing_code: bool = False
    """Whether missing is a category of its own."""
    places: tuple[str, ...] = ()
    """Of a category of many codes: the characters at each place, which are features, too."""
    optional: bool = False
    """Whether a table may lack the column; then all its values are missing."""

    @property
    def n_codes(self) -> int:
        """Number of category codes, code 0 for unseen values included."""
        return n_codes(self.vocabulary, missing_code=self.missing_code)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, entries: dict[str, Any]) -> ColumnSpec:
        """Read :meth:`to_dict`, also after a round trip through JSON.

        Files of formats 1 to 3 have no entry for how numbers are written.
        """
        earlier = {"number_format": _EARLIER_FORMAT, "from_dates": True}
        keys = ("date_parts", "vocabulary", "places")
        tuples = {key: tuple(entries.get(key, ())) for key in keys}
        facts = {**earlier, **entries, **tuples}
        return cls(**{**facts, "number_format": NumberFormat(**facts["number_format"])})
