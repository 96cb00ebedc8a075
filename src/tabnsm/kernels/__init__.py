"""Fast CPU paths of the functional operators (C behind ctypes), with the same signatures."""

from tabnsm.kernels.attention import sparse_attention
from tabnsm.kernels.library import available

__all__ = ["available", "sparse_attention"]
