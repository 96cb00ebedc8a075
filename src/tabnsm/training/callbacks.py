"""Callback: what a fit calls after every epoch, after every network and at its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tabnsm.errors import InvalidOptionError
from tabnsm.training.history import History

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor

STOPPED = "stopped by a callback"
"""Why training ended, as histories have it."""

_METHODS = ("on_epoch", "on_network", "on_end")


class Callback:
    """Follow a fit, and stop it; pass objects of subclasses to ``fit(..., callbacks=[...])``.

    Override what is needed; an object of another class needs one of the methods. All of them are
    called in the thread that called `fit`, also for networks that worker processes train. An
    error that a method raises ends the fit.

    Examples
    --------
    >>> class StopBelow(Callback):
    ...     def __init__(self, rmse):
    ...         self.rmse = rmse
    ...
    ...     def on_epoch(self, network, history):
    ...         return history.best.validation_rmse < self.rmse
    >>> from tabnsm import TabNSMRegressor
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = TabNSMRegressor(preset="fast", random_state=0)
    >>> model.fit(X, X[:, 0] * X[:, 1], callbacks=[StopBelow(100.0)]).n_iter_
    1
    """

    def on_epoch(self, network: int, history: History) -> bool | None:
        """One more epoch of a network is done.

        Parameters
        ----------
        network : int
            Counted from 1. Epochs of networks that are trained side by side alternate.
        history : History
            All epochs of this network; ``history[-1]`` is the newest. Not to be changed.

        Returns
        -------
        bool or None
            Whether to stop the fit. Networks then end with the epoch that they are in, and the
            model has those that are finished, the first, and those that predict about as well.
        """

    def on_network(self, network: int, history: History) -> bool | None:
        """A network of the model is trained.

        Parameters
        ----------
        network : int
            Counted from 1.
        history : History
            With `best_epoch` and `stop_reason`.

        Returns
        -------
        bool or None
            Whether to stop the fit.
        """

    def on_end(self, model: FittedRegressor) -> None:
        """The fit is done; not called where it ends with an error.

        Parameters
        ----------
        model : TabNSMRegressor
            Fitted.
        """


class CallbackList:
    """Calls each of several callbacks; all are called, also where one of them stops the fit.

    Parameters
    ----------
    callbacks : iterable or None
        Objects with some of the methods of `Callback`.

    Examples
    --------
    >>> CallbackList(["log.csv"])
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: callbacks must be objects with a method on_epoch, \
on_network or on_end, got 'log.csv'. Derive a class from tabnsm.callbacks.Callback.
    """

    def __init__(self, callbacks: Iterable[Any] | None = None) -> None:
        if callbacks is not None and not isinstance(callbacks, Iterable):
            raise InvalidOptionError(f"callbacks must be a list or None, got {callbacks!r}.")
        self.callbacks = tuple(callbacks or ())
        for callback in self.callbacks:
            if isinstance(callback, type) or not any(hasattr(callback, m) for m in _METHODS):
                raise InvalidOptionError(
                    "callbacks must be objects with a method on_epoch, on_network or on_end, got "
                    f"{callback!r}. Derive a class from tabnsm.callbacks.Callback."
                )

    def on_epoch(self, network: int, history: History) -> bool:
        """Whether a callback stops the fit after this epoch."""
        return self._call("on_epoch", network, history)

    def on_network(self, network: int, history: History) -> bool:
        """Whether a callback stops the fit after this network."""
        return self._call("on_network", network, history)

    def on_end(self, model: FittedRegressor) -> None:
        """Tell all that the fit is done."""
        self._call("on_end", model)

    def _call(self, method: str, *arguments: Any) -> bool:
        called = [getattr(callback, method, None) for callback in self.callbacks]
        answers = [call(*arguments) for call in called if call is not None]
        return any(answers)
