"""A cluster that cannot be used is refused before anything waits for it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tabnsm.distributed.cluster import _connect, failure
from tabnsm.errors import InvalidOptionError


class FakeRay:
    """Records the addresses that it is asked to connect to."""

    def __init__(self) -> None:
        self.addresses: list[str] = []

    def init(self, address: str, **_: object) -> None:
        self.addresses.append(address)


@pytest.fixture
def listening() -> Iterator[int]:
    """A port at which somebody answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def silent() -> int:
    """A port at which nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize("address", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "127.0.0.1:9{}"])
def test_an_address_where_nothing_listens(silent: int, address: str) -> None:
    """Also a port beyond the largest."""
    ray = FakeRay()
    address = address.format(silent)
    with pytest.raises(InvalidOptionError, match=f"reached at '{address}'.*ray start --head"):
        _connect(ray, address, 1)
    assert ray.addresses == []


@pytest.mark.parametrize("address", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "auto", "local"])
def test_other_addresses_go_to_ray(listening: int, address: str) -> None:
    ray = FakeRay()
    _connect(ray, address.format(listening), 1)
    assert ray.addresses == [address.format(listening)]


def test_a_failure_names_its_cause() -> None:
    """Ray's hints come after the error of a worker."""
    text = "ray::submit()\nFile ...\ntabnsm.errors.InvalidDataError: Column 'a'.\nTo retry, ..."
    error = RuntimeError("above")
    error.__cause__ = RuntimeError(text)
    found = str(failure(error, "Try again.", "Prediction"))
    assert found == "Prediction on the cluster failed: Column 'a'. Try again."
    hint = "ray.exceptions.UserCodeError: x\nOSError: No space left\nTo retry, ..."
    for text, reason in {hint: "No space left", "a\nb": "b", "": "RuntimeError"}.items():
        assert str(failure(RuntimeError(text), "")) == f"Training on the cluster failed: {reason} "
