"""torch as a new process has it, whatever the caller has set, while the library runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from tabnsm.threads import one_torch_thread


@contextmanager
def usual_torch() -> Iterator[None]:
    """Run with torch's own settings, and give the caller's back afterwards.

    Default dtype float32, default device CPU, gradients recorded, neither inference mode nor
    autocast, one thread beside those that `tabnsm.threads` starts: the settings that a fit needs,
    and by which a model predicts the same bits everywhere. Also a decorator.

    Examples
    --------
    >>> with torch.no_grad(), usual_torch():
    ...     torch.is_grad_enabled()
    True
    """
    dtype = torch.get_default_dtype()
    with ExitStack() as settings:
        # A mode slows down every call of torch, so that none is entered without need.
        if torch.get_default_device().type != "cpu":
            settings.enter_context(torch.device("cpu"))
        if torch.is_inference_mode_enabled():
            settings.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            settings.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                settings.enter_context(torch.autocast(device, enabled=False))
        if dtype != torch.float32:
            torch.set_default_dtype(torch.float32)
            settings.callback(torch.set_default_dtype, dtype)
        settings.enter_context(one_torch_thread())
        yield
