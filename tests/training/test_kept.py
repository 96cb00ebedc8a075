"""What is kept of the networks of a fit, and what is said about the others."""

from __future__ import annotations

import pytest

from tabnsm.nn.model import TabNSM
from tabnsm.training.history import EpochRecord, History
from tabnsm.training.kept import KeptNetworks


def ended(reason: str) -> History:
    return History([EpochRecord(1, 0.5, 2.0, 1e-3, 1.0, False)], 1, reason)


@pytest.fixture(scope="module")
def model() -> TabNSM:
    return TabNSM(3, d_token=8)


def test_networks_are_in_order_whenever_they_end(model: TabNSM) -> None:
    kept = KeptNetworks(3)
    for number in (2, 0, 1):
        assert kept.add(number, "done", model, ended(f"done {number}"))
    assert [history.stop_reason for _, history in kept.pairs] == ["done 0", "done 1", "done 2"]
    assert not kept.messages


def test_a_network_without_an_end_is_kept_if_it_is_the_first(model: TabNSM) -> None:
    kept = KeptNetworks(3)
    reason = "time_limit=2 s reached"
    assert [kept.add(number, reason, model, ended(reason)) for number in (1, 0)] == [False, True]
    assert not kept.add(2, "diverged", None, History())
    assert kept.messages == [
        "Training diverged in network 3 of 3, which is left out. Lower learning_rate if this "
        "happens to many."
    ]
    kept.note_cut(reason, {0, 1})
    assert kept.pairs[0][1].stop_reason == f"{reason}: 1 of 3 networks trained"
    assert len(kept.messages) == 1


def test_ctrl_c_names_all_networks_that_are_left_out(model: TabNSM) -> None:
    kept = KeptNetworks(8)
    kept.add(1, "done", model, ended("done"))
    kept.note_cut("interrupted", {0, 1, 2})
    assert kept.messages == [
        "Training was interrupted in networks 1 and 3 of 8, which are left out; the model has the "
        "1 that is finished."
    ]
    assert kept.pairs[0][1].stop_reason == "done; interrupted: 1 of 8 networks trained"
