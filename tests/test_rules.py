from __future__ import annotations

import math

import numpy as np
import pytest

from tabnsm.errors import InvalidOptionError
from tabnsm.rules import is_finite, is_integer, require, require_one_of


def test_integers_are_those_of_python_and_numpy() -> None:
    assert is_integer(3, 3)
    assert is_integer(np.int32(4), 3)
    for value in (2, True, 3.0, "3", None, np.True_):
        assert not is_integer(value, 3)


def test_finite_numbers() -> None:
    for value in (0, -1.5, np.float32(2), np.int64(3)):
        assert is_finite(value)
    for other in (True, math.inf, math.nan, "1", None):
        assert not is_finite(other)


def test_the_error_has_the_rule_and_the_value() -> None:
    require(True, "n must be 1", 1)
    with pytest.raises(InvalidOptionError, match=r"^n must be 1, got 2\.$"):
        require(False, "n must be 1", 2)
    require_one_of("gates", "head", ("head", "feature"))
    with pytest.raises(InvalidOptionError, match=r"gates must be one of .*, got None\."):
        require_one_of("gates", None, ("head", "feature"))
