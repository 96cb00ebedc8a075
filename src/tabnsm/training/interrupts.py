"""What Ctrl-C means for a fit: the end of it, or the end of the call that made it."""

from __future__ import annotations

import sys
from types import FrameType

# Packages whose functions fit one model after the other. A fold or a trial that ended early with
# a half-trained model would be scored like the others, and the next one would begin.
REPEATED_FITTERS = (
    "joblib.parallel",
    "mapie",
    "optuna",
    "sklearn.ensemble",
    "sklearn.feature_selection",
    "sklearn.impute",
    "sklearn.linear_model",
    "sklearn.model_selection",
    "sklearn.multioutput",
)


def is_one_of_many_fits() -> bool:
    """Whether this call comes from something that fits many times, such as a cross-validation.

    Looks for modules of `REPEATED_FITTERS` among the callers. A fit on its own, in a pipeline or
    in a loop that the user wrote is not one of many: nothing tells that loop from any other code.

    Examples
    --------
    >>> is_one_of_many_fits()
    False
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if any(module == name or module.startswith(f"{name}.") for name in REPEATED_FITTERS):
            return True
        frame = frame.f_back
    return False
