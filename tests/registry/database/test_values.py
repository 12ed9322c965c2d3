"""Values of statements: what the driver returns becomes plain Python, and what it is given it accepts."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from neo4j.graph import Graph, Node, Path, Relationship
from neo4j.spatial import CartesianPoint
from neo4j.time import Date, DateTime, Duration, Time

from registry.database.values import incoming, outgoing

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def node(name: str) -> Node:
    return Node(Graph(), name, 1, ["Device"], {"name": name, "at": DateTime.from_native(NOON)})


def link() -> Relationship:
    return Relationship(Graph(), "l", 2, {"capacity": 1.5})


def path() -> Path:
    return Path(node("a"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ([1, "a", b"b"], [1, "a", b"b"]),
        (DateTime.from_native(NOON), NOON),
        ([DateTime.from_native(NOON), 1], [NOON, 1]),
        (Date(2026, 11, 23), date(2026, 11, 23)),
        (Time(12, 30), time(12, 30)),
        (bytearray(b"ab"), b"ab"),
        ({"a": [bytearray(b"x")]}, {"a": [b"x"]}),
        (node("n"), {"name": "n", "at": NOON}),
        (link(), {"capacity": 1.5}),
        (path(), [{"name": "a", "at": NOON}]),
        (Duration(seconds=3), Duration(seconds=3)),
        (CartesianPoint((1.0, 2.0)), CartesianPoint((1.0, 2.0))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_the_driver_become_plain_python(value: object, expected: object) -> None:
    found = incoming(value)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.float64(1.5), 1.5),
        (datetime(2026, 11, 23, 14, tzinfo=timezone(timedelta(hours=2))), NOON),
        ({"a": np.arange(2), "b": (1, "x")}, {"a": [0, 1], "b": (1, "x")}),
        ([np.int64(1), None], [1, None]),
        (b"ab", b"ab"),
    ],
)
def test_values_are_given_to_the_driver_as_it_accepts_them(value: object, expected: Any) -> None:
    found = outgoing(value)
    assert (found, type(found)) == (expected, type(expected))
    if isinstance(found, datetime):
        assert found.utcoffset() == timedelta(0)
