"""Networks that do not fit into memory are refused before any work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from torch import Tensor

from tabnsm.errors import InvalidOptionError
from tabnsm.nn.config import ArchitectureConfig
from tabnsm.nn.size import count_weights
from tabnsm.training.config import TrainingConfig

_BYTES = 4  # of a float32
# Weights, their gradients, AdamW's two moments, and the best weights so far.
_COPIES = 5
# Tokens of a batch and their gradients.
_TOKEN_COPIES = 2
# Of control groups of version 2 and 1.
_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_NO_LIMIT = 2**60  # version 1 and some systems write a number near 2**63, others -1
_GROWING = ("d_token", "head_width", "compress_block_size")


def physical_memory() -> int | None:
    """Bytes of memory that this process may use, or None where the system does not say.

    The least of the machine's memory, the limit of the control group, as of a container, and the
    limits of the process.

    Returns
    -------
    int or None
    """
    try:
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, OSError, ValueError):
        found = []
    for path in _GROUP_LIMITS:
        with suppress(OSError, ValueError):  # "max" is no limit
            found.append(int(Path(path).read_text()))
    with suppress(ImportError):
        import resource

        limits = [
            resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)
        ]
        found += [limit for limit in limits if limit != resource.RLIM_INFINITY]
    return min((n_bytes for n_bytes in found if n_bytes > 0), default=None)


def check_memory(
    architecture: ArchitectureConfig,
    training: TrainingConfig,
    n_rows: int,
    n_features: int = 1,
    category_sizes: Sequence[int] | None = None,
    bins: Tensor | None = None,
) -> None:
    """Refuse a network of which one step of training needs more memory than the machine has.

    It counts only what is needed in any case, so that nothing is refused that would work.

    Parameters
    ----------
    architecture : ArchitectureConfig
    training : TrainingConfig
    n_rows : int
        Rows of the table.
    n_features : int, default 1
        Encoded features; with 1 only what no table could make fit is refused.
    category_sizes : sequence of int or None
    bins : Tensor or None
        As for `TabNSM`.

    Raises
    ------
    InvalidOptionError
        With the size of the network and what to lower.
    """
    memory = physical_memory()
    if memory is None:
        return
    batch_size = min(training.resolved_batch_size(n_rows), n_rows)
    n_tokens = batch_size * n_features * architecture.d_token
    try:
        n_weights = count_weights(architecture, n_features, category_sizes, bins)
        needed = _BYTES * (_COPIES * n_weights + _TOKEN_COPIES * n_tokens)
        if needed <= memory:
            return
        size = f"{n_weights:,} weights need at least {_gigabytes(needed)} to train"
    except OverflowError:
        size = "its weights have more bytes than can be addressed"
    default = ArchitectureConfig()
    got = ", ".join(f"{name}={getattr(architecture, name)}" for name in _GROWING)
    usual = ", ".join(f"{getattr(default, name)}" for name in _GROWING)
    raise InvalidOptionError(
        f"A network must fit into memory ({_gigabytes(memory)}), got {got} and batches of "
        f"{batch_size} rows: for {n_features} feature(s), {size}. Lower what is far above its "
        f"default ({usual}), or batch_size."
    )


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:,.1f} GB"
