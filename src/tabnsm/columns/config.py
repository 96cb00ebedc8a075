"""Options of the table encoder, checked once, when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from tabnsm.columns.kinds import KINDS
from tabnsm.errors import InvalidOptionError

if TYPE_CHECKING:
    from tabnsm.text.encoder import TextEncoder

_CHOICES: dict[str, tuple[object, ...]] = {
    "date_encoding": ("calendar", "text"),
    "category_encoding": ("embedding", "code"),
    "repeated_strings": ("category", "text"),
    "text_columns": ("joined", "separate"),
    "text_precision": ("float32", "int8"),
    **dict.fromkeys(
        ("missing_indicators", "clip_outliers", "target_means", "select_text", "text_cache"),
        (True, False),
    ),
}


@dataclass(frozen=True)
class EncoderConfig:
    """How a table becomes numbers; `TabNSMRegressor` documents these options.

    Bins are between quantiles of the fit rows; a column whose values occur four times each or more
    on average has up to four times as many, with a bin between every two values if these are
    enough. Infinities become the ends of the clipped range; unclipped, they count as missing. The
    features of text are principal directions of the fit rows' embeddings, as far as needed for 99 %
    of their variance, and one per column at least. `verbose` of 1 shows a bar while texts are
    encoded.

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
        for option, allowed in _CHOICES.items():
            _check_choice(option, getattr(self, option), allowed)
        for option in ("n_bins", "n_text_features"):
            value = getattr(self, option)
            if type(value) is not int or value < 0:
                raise InvalidOptionError(f"{option} must be an integer >= 0, got {value!r}.")
        if not isinstance(self.column_kinds, Mapping):
            raise InvalidOptionError(
                "column_kinds must be a mapping from column name to kind, such as "
                f"{{'zip': 'category'}}, got {type(self.column_kinds).__name__}."
            )
        for name, kind in self.column_kinds.items():
            _check_choice(f"column_kinds[{name!r}]", kind, (*KINDS, "drop"))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form; an encoder object is kept by its name."""
        encoder = self.text_encoder
        return {option.name: getattr(self, option.name) for option in fields(self)} | {
            "column_kinds": {str(name): kind for name, kind in self.column_kinds.items()},
            "text_encoder": encoder if isinstance(encoder, str) else encoder.name,
        }


def _check_choice(option: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        choices = ", ".join(repr(choice) for choice in allowed)
        raise InvalidOptionError(f"{option} must be one of {choices}, got {value!r}.")
