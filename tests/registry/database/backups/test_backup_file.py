"""The file format of backups, without a database."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from registry.database.backups.backup_file import Header, encode, records, verify, writing

HEADER = Header(schema=5, counts={"Cluster": 1, "Content": 1})
NODE = {"id": "x", "at": datetime(2026, 1, 2, 3, tzinfo=UTC), "blob": b"\x00\xff", "name": "\xfc"}


@pytest.fixture
def dumped(tmp_path: Path) -> Path:
    """A dump of two nodes."""
    with writing(tmp_path / "dump", HEADER) as writer:
        writer.section("Cluster")
        writer.record(encode({"id": "c"}))
        writer.section("Content")
        writer.record(encode(NODE))
    return tmp_path / "dump"


def test_a_dump_is_read_as_it_was_written(dumped: Path) -> None:
    assert verify(dumped) == HEADER
    assert [(name, line, value) for name, line, _, value in records(dumped)] == [
        ("Cluster", 3, {"id": "c"}),
        ("Content", 5, NODE),
    ]
    assert len(gzip.decompress(dumped.read_bytes()).splitlines()) == 6


def test_values_have_one_text() -> None:
    there = datetime(2026, 1, 2, 5, tzinfo=timezone(timedelta(hours=2)))
    assert encode({"b": there, "a": b"\x00"}) == (
        '{"a":{"$bytes":"AA=="},"b":{"$time":"2026-01-02T03:00:00+00:00"}}'
    )
    with pytest.raises(TypeError, match="cannot hold a set"):
        encode({1})


def test_an_interrupted_dump_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), writing(tmp_path / "dump", HEADER):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
