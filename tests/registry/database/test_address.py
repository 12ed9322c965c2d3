"""Addresses of servers: no password in them, nor in what is printed of them."""

from __future__ import annotations

import pytest

from registry.database.address import ELSEWHERE, fault, shown
from registry.database.driver import Database
from registry.errors import DatabaseUnavailable


@pytest.mark.parametrize(
    "uri", ["bolt://localhost:7687", "neo4j+s://fabric.example", "bolt://[::1]:7687", "bolt://10.0.0.1"]
)
def test_an_address_is_used_and_shown_as_it_is(uri: str) -> None:
    assert fault(uri) == ""
    assert shown(uri) == uri


@pytest.mark.parametrize(
    "uri", ["http://x", "bolt://", "localhost", "bolt://x:port", "bolt://[::1", "", "bolt:x"]
)
def test_what_is_no_address_is_named(uri: str) -> None:
    assert "not a Bolt address" in fault(uri)
    with pytest.raises(DatabaseUnavailable, match="not a Bolt address"):
        Database.connect(uri)


@pytest.mark.parametrize(
    ("uri", "masked"),
    [
        ("bolt://user:secret@host:7687", "bolt://***@host:7687"),
        ("bolt://user:se@cr/et@host", "bolt://***@host"),
        ("bolt://:secret@host", "bolt://***@host"),
        ("neo4j+s://user@host", "neo4j+s://***@host"),
        ("user:secret@host", "user:***@host"),
        ("bolt:user:secret@host", "bolt:***@host"),
        ("//user:secret@host", "//***@host"),
    ],
)
def test_credentials_are_refused_and_masked(uri: str, masked: str) -> None:
    assert fault(uri) == ELSEWHERE
    assert "secret" not in shown(uri)
    assert shown(uri).endswith("***@" + uri.rpartition("@")[2])
    with pytest.raises(DatabaseUnavailable, match="holds a user or a password") as caught:
        Database.connect(uri)
    assert "secret" not in str(caught.value)
    assert "secret" not in caught.value.uri
    assert masked.rpartition("@")[2] in str(caught.value)
