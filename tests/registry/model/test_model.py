"""The data types: what they accept, what they refuse, what they derive."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import (
    AlmanacError,
    InfeasibleAllocation,
    InvalidPlacement,
    InvalidValue,
    UnknownName,
)
from registry.model import (
    Adapters,
    Allocation,
    Fabric,
    ForwardingTables,
    HostOrder,
    Links,
    Placement,
    Profile,
    format_guid,
)
from registry.name_lists import close_names, list_names

edges = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 1000), st.integers(0, 9)), max_size=40
)


def ring(n: int) -> Fabric:
    ids = np.arange(n)
    return Fabric.from_arcs(
        [f"n{i}" for i in ids], np.r_[ids, ids], np.r_[(ids + 1) % n, (ids - 1) % n], 10.0
    )


def star(**changes: object) -> Fabric:
    # a -- s -- b, with two cables between s and b
    arguments: dict[str, object] = {
        "names": ["a", "b", "s"],
        "source": [0, 2, 1, 2, 1, 2],
        "target": [2, 0, 2, 1, 2, 1],
        "capacity": 4.0,
        "slots": [1, 2, 0],
        "forwards": [False, False, True],
    }
    arguments.update(changes)
    return Fabric.from_arcs(**arguments)  # type: ignore[arg-type]


def test_parallel_cables_are_bundled_into_one_arc() -> None:
    fabric = star()
    assert fabric.cable_count == 3
    assert fabric.indptr.tolist() == [0, 1, 2, 4]
    assert fabric.neighbour.tolist() == [2, 2, 0, 1]
    assert fabric.capacity.tolist() == [4.0, 8.0, 4.0, 8.0]
    assert fabric.cables.tolist() == [1, 2, 1, 2]
    assert fabric.arc_of_link.tolist() == [0, 1, 1, 2, 3, 3]


def test_a_vertex_without_slots_is_a_switch() -> None:
    fabric = star()
    assert [fabric.names[v] for v in fabric.hosts] == ["a", "b"]
    assert [fabric.names[v] for v in fabric.switches] == ["s"]


def test_network_links_join_vertices_that_forward() -> None:
    assert not star().network_link.any()
    assert ring(4).network_link.all()


def test_from_arcs_keeps_the_order_of_names() -> None:
    assert ring(12).names[10] == "n10"


def test_links_come_in_canonical_order_whatever_order_was_given() -> None:
    fabric = ring(5)
    shuffled = np.random.default_rng(0).permutation(10)
    again = Fabric.from_arcs(fabric.names, fabric.links.source[shuffled], fabric.links.target[shuffled], 10.0)
    assert np.array_equal(again.links.source, fabric.links.source)
    assert np.array_equal(again.links.target, fabric.links.target)


def test_arrays_are_read_only_copies() -> None:
    capacity = np.ones(6)
    fabric = star(capacity=capacity)
    capacity[:] = 5
    assert fabric.links.capacity.max() == 1
    with pytest.raises(ValueError, match="read-only"):
        fabric.capacity[0] = 2


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"capacity": 0.0}, "Links.capacity"),
        ({"capacity": float("nan")}, "Links.capacity"),
        ({"target": [2, 0, 2, 1, 2, 9]}, "Links.target"),
        ({"target": [2, 2, 2, 1, 2, 1]}, "Links.target"),
        ({"names": ["a", "a", "s"]}, "Fabric.names"),
        ({"slots": [1, -1, 0]}, "Fabric.slots"),
    ],
)
def test_a_wrong_fabric_is_refused_by_field(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        star(**changes)
    assert caught.value.field == field


def test_a_time_without_zone_is_refused() -> None:
    fabric = star()
    fields = {name: getattr(fabric, name) for name in ("names", "kind", "slots", "forwards", "guid", "lid")}
    with pytest.raises(InvalidValue, match="time zone"):
        Fabric(**fields, links=fabric.links, observed_at=datetime(2026, 1, 1))


def test_an_adapter_of_no_host_is_refused() -> None:
    fabric = star()
    fields = {name: getattr(fabric, name) for name in ("names", "kind", "slots", "forwards", "guid", "lid")}
    adapters = Adapters(
        names=("x",), guid=np.array([1], np.uint64), system_guid=np.zeros(1, np.uint64), host=np.array([7])
    )
    with pytest.raises(InvalidValue, match="host"):
        Fabric(**fields, links=fabric.links, adapters=adapters)


def test_unknown_hosts_are_errors_with_the_closest() -> None:
    fabric = Fabric.from_arcs(["node01", "node02", "spine"], [0, 1], [1, 0], 1.0, slots=[1, 1, 0])
    with pytest.raises(UnknownName) as caught:
        Allocation.of(fabric, ["node03"])
    assert caught.value.close == ("node02", "node01") or set(caught.value.close) == {"node01", "node02"}
    with pytest.raises(UnknownName):
        Allocation.of(fabric, ["spine"])


@given(edges)
def test_a_profile_keeps_every_byte_but_those_a_rank_sends_itself(
    rows: list[tuple[int, int, int, int]],
) -> None:
    source, target, size, count = (np.array([row[i] for row in rows], np.int64) for i in range(4))
    profile = Profile.from_edges(source, target, size, messages=count, ranks=7)
    dense = np.zeros((7, 7))
    messages = np.zeros((7, 7), np.int64)
    np.add.at(dense, (source, target), size)
    np.add.at(messages, (source, target), count)
    assert profile.self_bytes == np.trace(dense)
    assert profile.self_edges == int((source == target).sum())
    np.fill_diagonal(dense, 0)
    np.fill_diagonal(messages, 0)
    again = np.zeros((7, 7))
    again[profile.sender, profile.partner] = profile.bytes
    assert np.array_equal(again, dense)
    assert profile.messages.sum() == messages.sum()
    assert profile.pairs == len({(s, t) for s, t, _, _ in rows if s != t})


@pytest.mark.parametrize("size", [-1.0, float("nan"), float("inf")])
def test_bytes_that_are_no_amount_are_refused(size: float) -> None:
    with pytest.raises(InvalidValue, match="bytes"):
        Profile.from_edges([0], [1], [size])


@pytest.mark.parametrize(
    ("source", "target", "ranks"), [([0], [4], 4), ([-1], [1], None), ([0.5], [1], None)]
)
def test_ranks_outside_the_profile_are_refused(
    source: list[float], target: list[int], ranks: int | None
) -> None:
    with pytest.raises(InvalidValue):
        Profile.from_edges(source, target, [1.0], ranks=ranks)


def test_more_ranks_than_slots_is_infeasible() -> None:
    allocation = Allocation.of(star(), ["a", "b"], [1, 2])
    allocation.require(3)
    with pytest.raises(InfeasibleAllocation) as caught:
        allocation.require(4)
    assert (caught.value.ranks, caught.value.slots) == (4, 3)


def test_slots_are_numbered_by_ascending_rank_within_a_host() -> None:
    fabric = star()
    allocation = Allocation.of(fabric, ["b", "a"], [2, 1])
    placement = Placement(host_of_rank=np.array([1, 0, 1]), allocation=allocation, strategy="given")
    assert placement.slot_of_rank.tolist() == [0, 0, 1]
    with pytest.raises(InvalidPlacement):
        Placement(host_of_rank=np.array([0, 0, 1]), allocation=allocation, strategy="given")


def test_a_host_order_becomes_a_placement_on_the_hosts_in_order_of_first_use() -> None:
    placement = HostOrder(hosts=("b", "a", "b")).on(star())
    assert placement.host_of_rank.tolist() == [1, 0, 1]
    assert placement.allocation.hosts.tolist() == [1, 0]
    assert placement.allocation.slots.tolist() == [2, 1]


def test_forwarding_tables_must_fit_their_switches_and_lids() -> None:
    with pytest.raises(InvalidValue, match="shape"):
        ForwardingTables(
            switch_guid=np.array([1], np.uint64),
            ports=np.zeros((2, 3), np.uint8),
            lid_guid=np.zeros(3, np.uint64),
        )
    with pytest.raises(InvalidValue, match="ascend"):
        ForwardingTables(
            switch_guid=np.array([2, 1], np.uint64),
            ports=np.zeros((2, 3), np.uint8),
            lid_guid=np.zeros(3, np.uint64),
        )


def test_link_rows_can_be_chosen() -> None:
    links = Links.of([0, 1], [1, 0], [1.0, 2.0], source_port=[3, 4])
    assert links.take(np.array([1])).source_port.tolist() == [4]
    assert links.take(np.array([1])).target_port.tolist() == [-1]


def test_guids_are_written_with_sixteen_digits() -> None:
    assert format_guid(0x2C90000F00100) == "0x0002c90000f00100"
    assert format_guid(0) == ""


def test_errors_are_one_line_with_place_and_text() -> None:
    error = AlmanacError("no number", path="f.csv", line=3, text="a,b\tc")
    assert str(error) == "f.csv:3: no number in 'a,b\\tc'"
    assert close_names("Nod1", ["node1", "spine"]) == ("node1",)
    assert list_names(["a", "b"]) == "a, b"
    assert list_names([*"abcdefghijklm", "n"]) == "a, b, c, d, e, f, g, h, i, j, k, l and 2 more"
