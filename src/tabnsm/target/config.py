"""Options of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tabnsm.rules import require, require_one_of

TransformChoice = Literal["auto", "none"]


@dataclass(frozen=True)
class TargetConfig:
    """What networks learn of a target, and how far from it they may predict.

    Parameters
    ----------
    target_transform : {"auto", "none"}, default "auto"
        "auto" learns and validates a heavy-tailed target, of which one row in a thousand carries
        over half of the squared deviation, as its asinh.
    linear_residual : bool, default True
        Whether networks learn the residual of a linear fit, where that explains 99 % of the
        squared deviation of the validation rows.
    clip_predictions : bool, default True
        Whether predictions of the networks are limited to the range of the training targets,
        widened by a tenth on each side.

    Examples
    --------
    >>> TargetConfig(target_transform="log")
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: target_transform must be one of ('auto', 'none'), got 'log'.
    """

    # NOTE[DIFF]: the paper standardises; then the loss of all but a few rows of such a target is
    # next to nothing, and so is what is learned of them.
    target_transform: TransformChoice = "auto"
    # NOTE[DIFF]: the paper's network learns the whole target. Where that is a sum of columns, or a
    # category's value, all but exactly, networks can stay far behind ridge regression.
    linear_residual: bool = True
    # NOTE[DIFF]: the paper's network predicts any number, also for a row far from all others.
    clip_predictions: bool = True

    def __post_init__(self) -> None:
        require_one_of("target_transform", self.target_transform, get_args(TransformChoice))
        for name in ("linear_residual", "clip_predictions"):
            value = getattr(self, name)
            require(isinstance(value, bool), f"{name} must be True or False", value)
