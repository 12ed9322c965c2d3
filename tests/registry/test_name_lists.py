"""The closest names in errors."""

from __future__ import annotations

import pytest

from registry.name_lists import close_names

NODES = [f"node{number:04d}" for number in range(1, 65)]


@pytest.mark.parametrize(
    ("name", "known", "close"),
    [
        ("node001", NODES, ("node0001", "node0002", "node0003")),
        ("node008", NODES, ("node0008", "node0007", "node0009")),
        ("NODE0065", NODES, ("node0064", "node0063", "node0062")),
        ("node1", [*NODES, "node1.cluster.example"], ("node1.cluster.example", "node0001", "node0002")),
        ("node1.x", ["node1.y", "node1.z", "node1"], ("node1.y", "node1.z", "node1")),
        ("node002527", ["node2528.x", "node2527.x"], ("node2527.x", "node2528.x")),
        ("10.0.0.1", ["10.1.2.3", "10.0.0.2"], ("10.0.0.2", "10.1.2.3")),
        ("r1n10", ["r1n9", "r10n1", "r2n10", "r01n010"], ("r01n010", "r1n9", "r2n10")),
        ("nod0003", NODES[:4], ("node0003", "node0004", "node0002")),
        ("leaf", ["leafs", "spine"], ("leafs",)),
        ("7", ["11", "x"], ("11",)),
        ("711", ["71", "72", "8", "9", "810"], ("71", "810", "72")),
        ("node1", [], ()),
    ],
)
def test_names_with_the_same_numbers_come_first_whatever_the_zeros(
    name: str, known: list[str], close: tuple[str, ...]
) -> None:
    assert close_names(name, known) == close
