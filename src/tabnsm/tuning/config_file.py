"""Options of the regressor as a JSON file."""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tabnsm.container import atomic_write
from tabnsm.earlier import rename_options
from tabnsm.errors import InvalidOptionError
from tabnsm.estimator import TabNSMRegressor


def option_names() -> list[str]:
    """Names of all options of `TabNSMRegressor`."""
    return list(inspect.signature(TabNSMRegressor).parameters)


def check_names(names: Iterable[str], allowed: Iterable[str], what: str) -> None:
    """Raise `InvalidOptionError`, with a suggestion, at the first name that is not allowed.

    Examples
    --------
    >>> check_names(["d_tokn"], ["d_token", "n_heads"], "options")
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: options must name options of TabNSMRegressor, but there is \
no 'd_tokn'. Did you mean 'd_token'?
    """
    known = list(allowed)
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            remedy = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(known)}."
            raise InvalidOptionError(
                f"{what} must name options of TabNSMRegressor, but there is no {name!r}. {remedy}"
            )


def write_config(path: str | Path, options: Mapping[str, Any]) -> None:
    """Write options as JSON, for ``tabnsm fit --config`` and for people.

    Parameters
    ----------
    path : str or Path
        Replaced as a whole, or not at all.
    options : mapping of str to value
        JSON-able options of `TabNSMRegressor`.
    """
    check_names(options, option_names(), "options")
    text = json.dumps(dict(options), indent=2, allow_nan=False)
    atomic_write(path, f"{text}\n".encode())


def read_config(path: str | Path) -> dict[str, Any]:
    """Read options that `write_config`, or a person, wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    dict of str to value
        Ready for ``TabNSMRegressor(**options)``; values are checked by `fit`.

    Raises
    ------
    InvalidOptionError
        If the file is not a JSON object, or names an option that does not exist.
    """
    try:
        options = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidOptionError(
            f"A config must be a file that can be read, got {path} ({error.strerror})."
        ) from error
    except ValueError as error:
        raise InvalidOptionError(
            f"A config must be a JSON object of options, but {path} is not JSON ({error})."
        ) from error
    if not isinstance(options, dict):
        raise InvalidOptionError(
            f"A config must be a JSON object of options, but {path} holds "
            f"a {type(options).__name__}."
        )
    options = rename_options(options)
    check_names(options, option_names(), str(path))
    return options
