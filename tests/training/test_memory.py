from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tabnsm import InvalidOptionError, TabNSMRegressor
from tabnsm.columns import TableEncoder
from tabnsm.nn.config import ArchitectureConfig
from tabnsm.training import memory
from tabnsm.training.config import TrainingConfig
from tabnsm.training.memory import check_memory, physical_memory

pytestmark = pytest.mark.usefixtures("one_network")

X = np.random.default_rng(0).normal(size=(40, 3))


@pytest.mark.parametrize(
    "options", [{"d_token": 10**6}, {"head_width": 10**10}, {"d_token": 4 * 10**20}]
)
def test_a_network_that_no_machine_holds_is_refused_before_encoding(options, monkeypatch):
    def fail(*_):
        raise AssertionError("the table was encoded")

    monkeypatch.setattr(TableEncoder, "fit_transform", fail)
    (name, value), *_ = options.items()
    message = rf"must fit into memory \(.* GB\), got .*{name}={value}.* Lower what"
    with pytest.raises(InvalidOptionError, match=message):
        TabNSMRegressor(**options).fit(X, X[:, 0])


def test_the_number_of_features_counts(monkeypatch):
    monkeypatch.setattr("tabnsm.training.memory.physical_memory", lambda: 2**25)
    sizes = ArchitectureConfig(), TrainingConfig(batch_size=256)
    check_memory(*sizes, 1000, 100)
    with pytest.raises(
        InvalidOptionError, match=r"256 rows: for 5000 feature\(s\), .* weights need"
    ):
        check_memory(*sizes, 1000, 5000)
    check_memory(*sizes, 4, 100)  # a batch has no more rows than the table
    wide = np.random.default_rng(0).normal(size=(40, 3000))
    with pytest.raises(InvalidOptionError, match=r"3000 feature\(s\)"):
        TabNSMRegressor().fit(wide, wide[:, 0])


def test_an_unknown_memory_size_refuses_nothing(monkeypatch):
    monkeypatch.setattr(memory, "_GROUP_LIMITS", ())
    assert physical_memory() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.delattr(os, "sysconf")
    assert physical_memory() is None
    check_memory(ArchitectureConfig(d_token=10**6), TrainingConfig(), 10)


def test_limits_of_the_process_and_of_its_group_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_GROUP_LIMITS", ())
    whole = memory.physical_memory()
    assert whole is not None
    for text, expected in (("max\n", whole), ("12345678\n", 12345678), (f"{2**63}\n", whole)):
        (tmp_path / "limit").write_text(text)
        monkeypatch.setattr(memory, "_GROUP_LIMITS", (str(tmp_path / "limit"), "/no/such/file"))
        assert memory.physical_memory() == expected
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(memory, "_GROUP_LIMITS", ())
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, -1))
    assert memory.physical_memory() == 1000
