"""Names under which this machine is reached."""

from __future__ import annotations

import socket

import pytest

from almanac.allowed_hosts import LOCAL, allowed_hosts, is_allowed


def test_an_address_on_loopback_is_reached_by_local_names_only() -> None:
    assert allowed_hosts("127.0.0.1") == LOCAL
    assert allowed_hosts("127.0.0.1", ["Fabric.Example."]) == (*LOCAL, "fabric.example")
    assert {*LOCAL, "0.0.0.0", socket.gethostname().lower()} <= set(allowed_hosts("0.0.0.0"))


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8501", "localhost.", "192.168.1.7:80", "[fe80::1]:80", "127.0.0.1"]
)
def test_local_names_and_addresses_are_allowed(host: str) -> None:
    assert is_allowed(host, LOCAL)


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "localhost@evil.example", "evil.example@localhost"),
        *("", "a b", "localhost:port", "localhost:99999", "localhost/x", "localhost?x", "[::1"),
        "127.0.0.1.evil.example",
    ],
)
def test_other_names_are_not_allowed(host: str) -> None:
    assert not is_allowed(host, LOCAL)
