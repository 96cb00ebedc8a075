"""Intervals and quantiles on the command line: options, columns of the output, coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tabnsm.errors import InvalidOptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tabnsm.estimator import TabNSMRegressor
    from tabnsm.metrics import IntervalScores
    from tabnsm.target import TargetModel

COVERAGE_LEVELS = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Outputs:
    """What ``tabnsm predict`` writes of each target: the prediction, and what is asked for.

    Parameters
    ----------
    interval : float or None
        Confidence level of the columns "lower" and "upper".
    quantiles : tuple of float
        Levels of the columns such as "quantile_0.1".
    """

    interval: float | None = None
    quantiles: tuple[float, ...] = ()

    def names(self, target: TargetModel, places: Sequence[int]) -> list[str]:
        """Columns of the output; of several targets with the target's name at the end."""
        found = []
        for place in places:
            prediction = target.prediction_names[place]
            ending = prediction.removeprefix("prediction")
            found.append(prediction)
            if self.interval is not None:
                found += [f"lower{ending}", f"upper{ending}"]
            found += [f"quantile_{level:g}{ending}" for level in self.quantiles]
        return found

    @property
    def levels(self) -> list[float]:
        """Levels of all quantiles."""
        from tabnsm.intervals.levels import interval_levels

        ends = [] if self.interval is None else interval_levels(self.interval)[0]
        return [*ends, *self.quantiles]

    def columns(
        self, estimator: TabNSMRegressor, table: Any, places: Sequence[int]
    ) -> list[NDArray[Any]]:
        """Values of these columns, (n,) each, for the rows of a table."""
        found = predict_all(estimator, table, self.levels)
        return [found[:, place, k] for place in places for k in range(found.shape[2])]


def predict_all(estimator: TabNSMRegressor, table: Any, levels: Sequence[float]) -> NDArray[Any]:
    """Predictions of all targets, then their quantiles, (n, t, 1 + q)."""
    import numpy as np

    if not levels:
        prediction = estimator.predict(table)
        return prediction.reshape(len(prediction), estimator.target_.n_targets, 1)
    points, quantiles = estimator.predict_with_quantiles(table, levels)
    return np.concatenate([points[:, :, None], quantiles], axis=2)


def predict_and_score(
    estimator: TabNSMRegressor, batches: Iterable[Any], truth: NDArray[Any], places: Sequence[int]
) -> tuple[NDArray[Any], list[IntervalScores]]:
    """Predictions of all rows, and how good their intervals are, which are not kept.

    Parameters
    ----------
    estimator : TabNSMRegressor
    batches : iterable of table
        The rows.
    truth : ndarray of float64, shape (n, t)
        True values, NaN where missing.
    places : sequence of int, of length t
        Targets of the model that `truth` has.

    Returns
    -------
    ndarray of float64, shape (n, t), and list of IntervalScores, one of each target
    """
    import numpy as np

    from tabnsm.intervals import interval_levels
    from tabnsm.metrics import IntervalScores

    levels = reached_levels(estimator)
    wanted = interval_levels(levels)[0] if levels else []
    prediction = np.full(truth.shape, np.nan)
    scores = [IntervalScores(levels) for _ in places]
    start = 0
    for table in batches:
        found = predict_all(estimator, table, wanted)[:, places]  # (n, t, 1 + 2 k)
        rows = slice(start, start + len(found))
        prediction[rows] = found[:, :, 0]
        bounds = found[:, :, 1:].reshape(*found.shape[:2], 2, len(levels))
        for k, score in enumerate(scores):
            score.add(truth[rows, k], bounds[:, k])
        start = rows.stop
    return prediction, scores


def reached_levels(estimator: TabNSMRegressor) -> list[float]:
    """Confidence levels at which intervals are evaluated; models of earlier files have none."""
    calibration = estimator.calibration_
    return [] if calibration is None else calibration.reached(COVERAGE_LEVELS)


def split_levels(text: str) -> tuple[float, ...]:
    """Levels with commas between.

    Examples
    --------
    >>> split_levels("0.1,0.5,0.9")
    (0.1, 0.5, 0.9)
    """
    try:
        levels = tuple(float(part) for part in text.split(","))
    except ValueError:
        levels = ()
    if not levels or not all(0 < level < 1 for level in levels) or len(set(levels)) < len(levels):
        raise InvalidOptionError(
            "--quantiles must be different numbers between 0 and 1 with commas between, such as "
            f"0.1,0.5,0.9, got {text!r}."
        )
    return levels


def check_interval(level: float | None) -> None:
    """Refuse a confidence level that is none."""
    if level is not None and not 0 < level < 1:
        raise InvalidOptionError(
            f"--interval must be between 0 and 1, both excluded, got {level:g}."
        )
