"""Fast CPU paths of the operators (C behind ctypes), with the results of the torch ones."""

from tabnsm.kernels.adamw import AdamWKernel, AdamWSlots, serves_adamw
from tabnsm.kernels.attention import sparse_attention
from tabnsm.kernels.head import head, serves_head
from tabnsm.kernels.interaction import interaction, serves
from tabnsm.kernels.library import available
from tabnsm.kernels.tokens import add_piecewise_tokens

__all__ = [
    "AdamWKernel",
    "AdamWSlots",
    "add_piecewise_tokens",
    "available",
    "head",
    "interaction",
    "serves",
    "serves_adamw",
    "serves_head",
    "sparse_attention",
]
