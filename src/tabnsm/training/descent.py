"""Steps down the gradient: clipping, AdamW, and the running average of the weights."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor, nn

from tabnsm.kernels import AdamWKernel, AdamWSlots, serves_adamw
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.config import TrainingConfig

_STATE = ("exp_avg", "exp_avg_sq", "step")


class Descent(torch.optim.AdamW):
    """AdamW whose steps also clip the gradient and move an average, in one pass where possible.

    One pass is the compiled kernel's; the first step is torch's, which makes the state.
    """

    _kernel: AdamWKernel | None = None
    _place: tuple[WeightAverage, Tensor, Tensor, Tensor] | None = None
    """What the kernel was made for: the average, and the state of the first weight."""

    def descend(self, loss: Tensor, average: WeightAverage, clip: float) -> None:
        """One step down the gradient of a loss, of a model's weights and of their average.

        Parameters
        ----------
        loss : Tensor, shape ()
        average : WeightAverage
            Of all the weights.
        clip : float
            Largest norm of the whole gradient.
        """
        self.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.move(average, clip)

    def move(self, average: WeightAverage, clip: float) -> None:
        """The same down the gradients that are there."""
        if not self._move_in_one_pass(average, clip):
            weights = [weight for group in self.param_groups for weight in group["params"]]
            nn.utils.clip_grad_norm_(weights, clip)
            self.step()
            average.update()

    @torch.no_grad()
    def _move_in_one_pass(self, average: WeightAverage, clip: float) -> bool:
        kernel = self._prepare(average)
        if kernel is None:
            return False
        gradients: list[Tensor] = []
        for weight in kernel.slots.weight:
            gradient = weight.grad
            if gradient is None or not gradient.is_contiguous():
                return False
            gradients.append(gradient)
        options = self.param_groups[0]
        kernel.step(
            gradients,
            [
                1 - group["lr"] * group["weight_decay"]
                for group in self.param_groups
                for _ in group["params"]
            ],
            learning_rate=options["lr"],
            clip=clip,
            betas=options["betas"],
            epsilon=options["eps"],
            keep=average.count_step(),
        )
        return True

    def _prepare(self, average: WeightAverage) -> AdamWKernel | None:
        """The kernel on this optimizer's tensors; a checkpoint may have put others there."""
        weights: list[Tensor] = [
            weight for group in self.param_groups for weight in group["params"]
        ]
        first = self.state.get(weights[0], {})
        if not first:
            return None
        # Looking at all of the tensors in every step would take longer than a small step itself.
        place = (average, *(first[name] for name in _STATE))
        if self._place is not None and all(map(operator.is_, self._place, place)):
            return self._kernel
        self._kernel, self._place = None, place
        states: list[dict[str, Any]] = [self.state.get(weight, {}) for weight in weights]
        if not all(states):
            return None
        mean, square, step = ([state[name] for state in states] for name in _STATE)
        slots = AdamWSlots(weights, mean, square, step, average.of(weights))
        if serves_adamw([tensor for slot in slots for tensor in slot]):
            self._kernel = AdamWKernel(slots)
        return self._kernel


def make_optimizer(model: nn.Module, config: TrainingConfig) -> Descent:
    """AdamW that decays matrices, but not tokens, biases, norms and blending scalars."""
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        is_matrix = parameter.ndim >= 2 and not name.startswith("tokenizer.")
        (decayed if is_matrix else free).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    return Descent(groups, lr=config.learning_rate, fused=True)
