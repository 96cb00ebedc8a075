"""Run a module's source with one change in it: a test that cannot fail is no test."""

from __future__ import annotations

import types
from types import ModuleType


def mutated(module: ModuleType, old: str, new: str) -> ModuleType:
    """The module, executed anew from its source with `old` replaced by `new`."""
    assert module.__file__ is not None
    with open(module.__file__) as file:
        source = file.read()
    assert source.count(old) >= 1, f"{old!r} does not occur in {module.__name__}"
    copy = types.ModuleType(module.__name__ + "_mutated")
    copy.__file__ = module.__file__
    exec(compile(source.replace(old, new), module.__file__, "exec"), copy.__dict__)
    return copy
