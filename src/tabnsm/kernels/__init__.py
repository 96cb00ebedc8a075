"""Fast CPU paths of the operators (C behind ctypes), with the results of the torch ones."""

from tabnsm.kernels.adamw import AdamWKernel, AdamWSlots, serves_adamw
from tabnsm.kernels.attention import sparse_attention
from tabnsm.kernels.blend import blend_losses, serves_blend
from tabnsm.kernels.head import HeadPass, head, serves_head
from tabnsm.kernels.interaction import InteractionPass, InteractionShape, interaction, serves
from tabnsm.kernels.library import available
from tabnsm.kernels.tokens import add_piecewise_tokens

__all__ = [
    "AdamWKernel",
    "AdamWSlots",
    "HeadPass",
    "InteractionPass",
    "InteractionShape",
    "add_piecewise_tokens",
    "available",
    "blend_losses",
    "head",
    "interaction",
    "serves",
    "serves_adamw",
    "serves_blend",
    "serves_head",
    "sparse_attention",
]
