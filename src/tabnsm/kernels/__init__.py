"""Fast CPU paths of the operators (C behind ctypes), with the results of the torch ones."""

from tabnsm.kernels.attention import sparse_attention
from tabnsm.kernels.interaction import interaction, serves
from tabnsm.kernels.library import available
from tabnsm.kernels.tokens import bend_tokens

__all__ = ["available", "bend_tokens", "interaction", "serves", "sparse_attention"]
