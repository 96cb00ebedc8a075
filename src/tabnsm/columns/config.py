"""Options of the table encoder, checked once, when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tabnsm.columns.kinds import KINDS
from tabnsm.errors import InvalidOptionError

if TYPE_CHECKING:
    from tabnsm.text.encoder import TextEncoder

DATE_ENCODINGS = ("calendar", "text")
CATEGORY_ENCODINGS = ("embedding", "code")
REPEATED_STRINGS = ("category", "text")
TEXT_COLUMNS = ("joined", "separate")
TEXT_PRECISIONS = ("float32", "int8")


@dataclass(frozen=True)
class EncoderConfig:
    """How a table becomes numbers.

    Parameters
    ----------
    column_kinds : mapping of str to str, default={}
        Kind by column name, where it should not be found automatically: "numeric", "category",
        "text", "date" or "drop".
    date_encoding : {"calendar", "text"}, default="calendar"
        Calendar parts and elapsed days, or dates as strings like any other (the paper).
    category_encoding : {"embedding", "code"}, default="embedding"
        An integer per category for an embedding, or that integer standardised (the paper).
    repeated_strings : {"category", "text"}, default="category"
        What a column of strings is whose values occur ten times each or more on average: a
        category, or text unless it has fewer than ten values (the paper).
    n_bins : int, default=16
        Maximum number of bins of a number's piecewise-linear token, between quantiles of the fit
        rows; 0 is a linear token (the paper). A column whose values occur four times each or more
        on average has up to four times as many, with a bin between every two values if these are
        enough.
    missing_indicators : bool, default=True
        Add a 0/1 feature for each numeric or date column with missing values in the fit rows.
    clip_outliers : bool, default=True
        Limit numbers to the range of the fit rows, widened by a tenth on each side; infinities
        become the ends of the range. Without it they count as missing. The estimator limits
        what its networks predict likewise.
    text_encoder : str or TextEncoder, default="minilm"
        "minilm", a local path, the name of a sentence-transformers model that is already on
        this machine, or an object that follows :class:`~tabnsm.text.TextEncoder`.
    text_columns : {"joined", "separate"}, default="separate"
        Embed the text columns of a row as one string (the paper), or each column's distinct
        values by themselves: fewer and shorter strings, and features that belong to a column.
    n_text_features : int, default=64
        Maximum number of features of all text together, though one per column at least: principal
        directions of the fit rows' embeddings, as far as needed for 99 % of their variance. 0 is
        as many as the encoder has dimensions; with joined text it is those dimensions (the paper).
    text_precision : {"float32", "int8"}, default="float32"
        Arithmetic of the text encoder's matrix products; "int8" is faster and rounds.
    text_cache : bool, default=True
        Keep text embeddings on disk, so that a string is encoded once.
    verbose : int, default=0
        1 shows a progress bar while texts are encoded.

    Examples
    --------
    >>> EncoderConfig(date_encoding="text").date_encoding
    'text'
    >>> EncoderConfig(date_encoding="iso")
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: date_encoding must be one of 'calendar', 'text', got 'iso'.
    """

    column_kinds: Mapping[str, str] = field(default_factory=dict)
    date_encoding: str = "calendar"
    category_encoding: str = "embedding"
    repeated_strings: str = "category"
    n_bins: int = 16
    missing_indicators: bool = True
    clip_outliers: bool = True
    text_encoder: str | TextEncoder = "minilm"
    text_columns: str = "separate"
    n_text_features: int = 64
    target_means: bool = True
    select_text: bool = True
    text_precision: str = "float32"
    text_cache: bool = True
    verbose: int = 0

    def __post_init__(self) -> None:
        """Check every option that has a fixed set of values."""
        _check_choice("date_encoding", self.date_encoding, DATE_ENCODINGS)
        _check_choice("category_encoding", self.category_encoding, CATEGORY_ENCODINGS)
        _check_choice("repeated_strings", self.repeated_strings, REPEATED_STRINGS)
        _check_choice("text_columns", self.text_columns, TEXT_COLUMNS)
        _check_choice("text_precision", self.text_precision, TEXT_PRECISIONS)
        for option in ("n_bins", "n_text_features"):
            value = getattr(self, option)
            if type(value) is not int or value < 0:
                raise InvalidOptionError(f"{option} must be an integer >= 0, got {value!r}.")
        for option in (
            "missing_indicators",
            "clip_outliers",
            "target_means",
            "select_text",
            "text_cache",
        ):
            _check_choice(option, getattr(self, option), (True, False))
        if not isinstance(self.column_kinds, Mapping):
            raise InvalidOptionError(
                "column_kinds must be a mapping from column name to kind, such as "
                f"{{'zip': 'category'}}, got {type(self.column_kinds).__name__}."
            )
        for name, kind in self.column_kinds.items():
            _check_choice(f"column_kinds[{name!r}]", kind, (*KINDS, "drop"))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form; an encoder object is kept by its name.

        Returns
        -------
        dict
            One entry per option that shapes the encoding.
        """
        encoder = self.text_encoder
        return {
            "column_kinds": {str(name): kind for name, kind in self.column_kinds.items()},
            "date_encoding": self.date_encoding,
            "category_encoding": self.category_encoding,
            "repeated_strings": self.repeated_strings,
            "n_bins": self.n_bins,
            "missing_indicators": self.missing_indicators,
            "clip_outliers": self.clip_outliers,
            "text_encoder": encoder if isinstance(encoder, str) else encoder.name,
            "text_columns": self.text_columns,
            "n_text_features": self.n_text_features,
            "target_means": self.target_means,
            "select_text": self.select_text,
            "text_precision": self.text_precision,
            "text_cache": self.text_cache,
            "verbose": self.verbose,
        }


def _check_choice(option: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        choices = ", ".join(repr(choice) for choice in allowed)
        raise InvalidOptionError(f"{option} must be one of {choices}, got {value!r}.")
