"""CompiledPass: predictions and gradients of a network by the kernels, without autograd."""

from __future__ import annotations

from torch import Tensor, nn

from tabnsm import kernels
from tabnsm.nn.model import TabNSM


class CompiledPass:
    """Passes of one network, for training on a CPU.

    In a step on a few dozen rows, autograd takes longer than the kernels: it goes through some
    fifty weights forward and backward. Here it sees the tokenizer alone. The bits are the same.

    Parameters
    ----------
    network : TabNSM
        That `serves`; its weights stay where they are.

    Examples
    --------
    >>> import torch
    >>> network, x = TabNSM(n_features=3, d_token=16), torch.randn(4, 3)
    >>> if CompiledPass.serves(network):
    ...     compiled = CompiledPass(network)
    ...     assert torch.equal(compiled.forward(x), network(x))
    ...     compiled.backward(torch.ones(4, 1))
    """

    def __init__(self, network: TabNSM) -> None:
        self.tokenizer, interaction = network.tokenizer, network.interaction
        shape = interaction.kernel_shape(network.n_features, network.n_pools)
        d_token = network.config.d_token
        named = interaction.kernel_parameters(), network.head.kernel_parameters()
        weights = [{name: x.detach() for name, x in part.items()} for part in named]
        gradients = [{name: x.new_empty(x.shape) for name, x in part.items()} for part in weights]
        self._interaction = kernels.InteractionPass(
            shape, network.n_features, d_token, weights[0], gradients[0]
        )
        self._head = kernels.HeadPass(weights[1], gradients[1])
        self._gradients = [
            (part[name], into[name])
            for part, into in zip(named, gradients, strict=True)
            for name in part
        ]
        self._tokens: Tensor | None = None

    @staticmethod
    def serves(network: nn.Module) -> bool:
        """Whether the kernels can do all of a network but the tokenizer."""
        return (
            type(network) is TabNSM
            and network.interaction.runs_compiled(network.tokenizer.bias)
            and kernels.serves_head(network.tokenizer.bias)
            and all(x.is_contiguous() for x in network.parameters())
        )

    def forward(self, x: Tensor) -> Tensor:
        """Predictions, (B, D) -> (B, t), without a graph."""
        self._tokens = self.tokenizer(x)  # (B, D, d_token)
        features = self._interaction.forward(self._tokens.detach())  # (B, D * (1 + n_pools))
        return self._head.forward(features)

    def backward(self, d_prediction: Tensor) -> None:
        """Put the gradients of all weights into their `grad`, whatever was there.

        Parameters
        ----------
        d_prediction : Tensor, shape (B, t)
            Of the predictions of the last call of `forward`.
        """
        assert self._tokens is not None
        d_tokens = self._interaction.backward(self._head.backward(d_prediction.contiguous()))
        self.tokenizer.zero_grad()
        self._tokens.backward(d_tokens)  # type: ignore[no-untyped-call]
        self._tokens = None
        for weight, gradient in self._gradients:
            weight.grad = gradient
