"""From torch modules to ONNX files."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tabnsm.errors import MissingExtraError

# Says that torchvision is missing, which nothing here needs.
_LOGGER = "torch.onnx._internal.exporter._registration"
_TOLERANCE = 1e-3


def trace(
    module: nn.Module,
    example: Tensor,
    dynamic: Mapping[int, str],
    names: tuple[str, str],
) -> Any:
    """The graph of a module as an ONNX program, with its weights by the names they have in torch.

    Parameters
    ----------
    module : nn.Module
        One tensor in, one out.
    example : Tensor
        An input.
    dynamic : mapping of int to str
        Axes of the input whose length may change, and what they are called.
    names : tuple of str
        Of input and output.

    Returns
    -------
    torch.onnx.ONNXProgram

    Raises
    ------
    MissingExtraError
        If the extra "onnx" is not installed.
    """
    check_onnx()
    shapes = ({axis: torch.export.Dim(name) for axis, name in dynamic.items()},)
    with _quiet(), torch.no_grad():
        return torch.onnx.export(
            module.eval(),
            (example,),
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=[names[0]],
            output_names=[names[1]],
            external_data=False,
            optimize=False,  # which would rename weights; `save` does it
            verbose=False,
        )


def save(program: Any, module: nn.Module, path: Path) -> None:
    """Write the graph of `program` with the weights of `module`, which has the same form."""
    import onnx_ir
    from onnxscript import optimizer

    weights: dict[str, Tensor] = dict(module.named_parameters(remove_duplicate=False))
    weights |= dict(module.named_buffers(remove_duplicate=False))
    model = program.model.clone()
    for name, value in model.graph.initializers.items():
        if name in weights:
            value.const_value = onnx_ir.tensor(weights[name].detach().contiguous(), name=name)
    with _quiet():
        optimizer.optimize(model)
    onnx_ir.save(model, path)


def check_file(path: Path, module: nn.Module, x: Tensor) -> None:
    """Raise `RuntimeError` unless a file computes what its module does, for most rows.

    Optimizers of graphs have had errors that change results. A row may differ where rounding
    decides between two blocks that are scored alike.
    """
    import numpy as np
    from onnxruntime import InferenceSession

    session = InferenceSession(path, providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
    with torch.no_grad():
        wanted = module(x).numpy()
    is_close = np.isclose(found, wanted, rtol=_TOLERANCE, atol=_TOLERANCE).all(axis=1)
    if is_close.mean() <= 0.5:
        raise RuntimeError(
            f"An exported network must compute what the model does, got {path.name} that is off by "
            f"up to {np.abs(found - wanted).max():.3g} standard deviations. Try another version of "
            "onnxscript, and report it."
        )


def check_onnx() -> None:
    """Raise `MissingExtraError` unless what writes ONNX files is installed."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("onnx", "ONNX files") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep warnings of the libraries about their own code from the user."""
    logger = logging.getLogger(_LOGGER)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
