"""WeightAverage: a running average of the weights, which validates and predicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

WARM_UP = 10
"""Step n moves the average by at least (WARM_UP - 1) / (WARM_UP + n): the start is forgotten."""


class WeightAverage:
    """Exponential average of a model's parameters over the steps of training.

    Parameters
    ----------
    model : Module
    keep : float
        Share of the average that a step keeps; 0 makes it the weights themselves.

    Examples
    --------
    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> average = WeightAverage(model, keep=0.5)
    >>> for value in (1.0, 2.0):
    ...     _ = nn.init.constant_(model.weight, value)
    ...     average.update()
    >>> with average.applied():
    ...     round(model.weight.item(), 2)
    1.7
    >>> model.weight.item()
    2.0
    """

    def __init__(self, model: nn.Module, keep: float) -> None:
        self.keep = keep
        self.n_steps = 0
        self.values = {name: p.detach().clone() for name, p in model.named_parameters()}
        # Found once: a model looks for its own at every call.
        self._weights: list[Tensor] = list(model.parameters())

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights after a step."""
        if self.keep:
            move = 1 - self.count_step()
            torch._foreach_lerp_(list(self.values.values()), self._weights, move)

    def count_step(self) -> float:
        """Count a step that is taken in; the share of the average that it keeps."""
        if not self.keep:
            return 0.0
        self.n_steps += 1
        return min(self.keep, (1 + self.n_steps) / (WARM_UP + self.n_steps))

    def of(self, weights: Sequence[Tensor]) -> list[Tensor]:
        """Averages of some of the model's weights, in their order; empty where none are kept."""
        if not self.keep:
            return []
        found = dict(zip(map(id, self._weights), self.values.values(), strict=True))
        return [found[id(weight)] for weight in weights]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model with the average's weights, and with its own again afterwards."""
        if not self.keep:
            yield
            return
        own = [weight.detach().clone() for weight in self._weights]
        with torch.no_grad():
            torch._foreach_copy_(self._weights, list(self.values.values()))
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self._weights, own)

    def state_dict(self) -> dict[str, Tensor]:
        """What a resumed run needs; nothing where the average is the weights themselves."""
        return {**self.values, "n_steps": torch.tensor(self.n_steps)} if self.keep else {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` returned for the same model."""
        if not self.keep:
            return
        for name, value in self.values.items():
            value.copy_(state[name])
        self.n_steps = int(state["n_steps"])
