"""The data types: what they accept, refuse and derive; names of hosts and of clusters."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.options import Options
from registry import model
from registry.errors import (
    AlmanacError,
    InfeasibleAllocation,
    InvalidPlacement,
    InvalidValue,
    UnknownName,
    close_names,
    list_names,
)
from registry.model import Allocation, Fabric, HostOrder, Links, Placement, Profile, format_guid
from registry.model.host_names import same_hosts, without_domain
from registry.model.hosts import HOST_LABEL, LONGEST_NAME, label_lines, node_name
from registry.model.intake import MAX_NAME, Intake, check_cluster_name

EDGES = st.lists(st.tuples(*(st.integers(0, most) for most in (6, 6, 1000, 9))), max_size=40)


def ring(n: int) -> Fabric:
    ids = np.arange(n)
    targets = np.r_[(ids + 1) % n, (ids - 1) % n]
    return Fabric.from_arcs([f"n{i}" for i in ids], np.r_[ids, ids], targets, 10.0)


def star(**changes: object) -> Fabric:
    # a -- s -- b, with two cables between s and b
    given = {"names": ["a", "b", "s"], "source": [0, 2, 1, 2, 1, 2], "target": [2, 0, 2, 1, 2, 1]}
    given |= {"capacity": 4.0, "slots": [1, 2, 0], "forwards": [False, False, True]}
    return Fabric.from_arcs(**given | changes)  # type: ignore[arg-type]


def test_parallel_cables_are_bundled_into_one_arc() -> None:
    fabric = star()
    assert (fabric.cable_count, fabric.capacity.tolist()) == (3, [4.0, 8.0, 4.0, 8.0])
    assert (fabric.indptr.tolist(), fabric.neighbour.tolist()) == ([0, 1, 2, 4], [2, 2, 0, 1])
    assert (fabric.cables.tolist(), fabric.arc_of_link.tolist()) == ([1, 2, 1, 2], [0, 1, 1, 2, 3, 3])


def test_a_vertex_without_slots_is_a_switch_and_network_links_join_those_that_forward() -> None:
    fabric = star()
    assert (fabric.hosts.tolist(), fabric.switches.tolist()) == ([0, 1], [2])
    assert not fabric.network_link.any()
    assert ring(4).network_link.all()
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
        *(({"capacity": 0.0}, "Links.capacity"), ({"capacity": float("nan")}, "Links.capacity")),
        *(({"target": [2, 0, 2, 1, 2, 9]}, "Links.target"), ({"target": [2, 2, 2, 1, 2, 1]}, "Links.target")),
        *(({"names": ["a", "a", "s"]}, "Fabric.names"), ({"slots": [1, -1, 0]}, "Fabric.slots")),
    ],
)
def test_a_wrong_fabric_is_refused_by_field(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        star(**changes)
    assert caught.value.field == field


def test_a_time_without_zone_or_an_adapter_of_no_host_is_refused() -> None:
    with pytest.raises(InvalidValue, match="time zone"):
        replace(star(), observed_at=datetime(2026, 1, 1))
    one, zero = np.array([1], np.uint64), np.zeros(1, np.uint64)
    with pytest.raises(InvalidValue, match="host"):
        replace(star(), adapters=model.Adapters(names=("x",), guid=one, system_guid=zero, host=np.array([7])))


def test_unknown_hosts_are_errors_with_the_closest() -> None:
    fabric = Fabric.from_arcs(["node01", "node02", "spine"], [0, 1], [1, 0], 1.0, slots=[1, 1, 0])
    with pytest.raises(UnknownName) as caught:
        Allocation.of(fabric, ["node03"])
    assert caught.value.close == ("node02", "node01") or set(caught.value.close) == {"node01", "node02"}
    with pytest.raises(UnknownName):
        Allocation.of(fabric, ["spine"])


@given(EDGES)
def test_a_profile_keeps_every_byte_but_those_a_rank_sends_itself(rows: list[tuple[int, ...]]) -> None:
    source, target, size, count = np.array(rows, np.int64).reshape(-1, 4).T
    profile = Profile.from_edges(source, target, size, messages=count, ranks=7)
    dense, messages = np.zeros((7, 7)), np.zeros((7, 7), np.int64)
    np.add.at(dense, (source, target), size)
    np.add.at(messages, (source, target), count)
    assert (profile.self_bytes, profile.self_edges) == (np.trace(dense), (source == target).sum())
    np.fill_diagonal(dense, 0)
    np.fill_diagonal(messages, 0)
    again = np.zeros((7, 7))
    again[profile.sender, profile.partner] = profile.bytes
    assert np.array_equal(again, dense)
    assert profile.messages.sum() == messages.sum()
    assert profile.pairs == len({(s, t) for s, t, _, _ in rows if s != t})


def test_a_profile_of_no_amounts_or_of_other_ranks_is_refused() -> None:
    wrong: list[tuple[Any, ...]] = [(0, 1, size, None) for size in (-1.0, float("nan"), float("inf"))]
    for source, target, size, ranks in (*wrong, (0, 4, 1.0, 4), (-1, 1, 1.0, None), (0.5, 1, 1.0, None)):
        with pytest.raises(InvalidValue, match=r"Profile\.(bytes|source|target)"):
            Profile.from_edges([source], [target], [size], ranks=ranks)


def test_ranks_take_slots_by_ascending_rank_within_a_host() -> None:
    fabric = star()
    allocation = Allocation.of(fabric, ["b", "a"], [2, 1])
    allocation.require(3)
    with pytest.raises(InfeasibleAllocation) as caught:
        allocation.require(4)
    assert (caught.value.ranks, caught.value.slots) == (4, 3)
    placement = Placement(host_of_rank=np.array([1, 0, 1]), allocation=allocation, strategy="given")
    assert placement.slot_of_rank.tolist() == [0, 0, 1]
    for full in ([0, 0, 1], [1, 2]):  # vertex 2 is not allocated
        with pytest.raises(InvalidPlacement):
            Placement(host_of_rank=np.array(full), allocation=allocation, strategy="given")
    ordered = HostOrder(hosts=("b", "a", "b")).on(fabric)
    assert ordered.host_of_rank.tolist() == [1, 0, 1]
    assert (ordered.allocation.hosts.tolist(), ordered.allocation.slots.tolist()) == ([1, 0], [2, 1])


@pytest.mark.parametrize(("switches", "reason"), [([1], "shape"), ([2, 1], "ascend")])
def test_forwarding_tables_must_fit_their_switches_and_lids(switches: list[int], reason: str) -> None:
    columns: dict[str, Any] = {"ports": np.zeros((2, 3), np.uint8), "lid_guid": np.zeros(3, np.uint64)}
    with pytest.raises(InvalidValue, match=reason):
        model.ForwardingTables(switch_guid=np.array(switches, np.uint64), **columns)


def test_link_rows_can_be_chosen() -> None:
    links = Links.of([0, 1], [1, 0], [1.0, 2.0], source_port=[3, 4])
    chosen = links.take(np.array([1]))
    assert (chosen.source_port.tolist(), chosen.target_port.tolist()) == ([4], [-1])


def test_texts_of_guids_errors_and_lists() -> None:
    assert (format_guid(0x2C90000F00100), format_guid(0)) == ("0x0002c90000f00100", "")
    error = AlmanacError("no number", path="f.csv", line=3, text="a,b\tc")
    assert str(error) == "f.csv:3: no number in 'a,b\\tc'"
    assert close_names("Nod1", ["node1", "spine"]) == ("node1",)
    assert list_names(["a", "b"]) == "a, b"
    assert list_names([*"abcdefghijklm", "n"]) == "a, b, c, d, e, f, g, h, i, j, k, l and 2 more"


@pytest.mark.parametrize("host", ["Node01", "a.b-c.example", "7", "x" * LONGEST_NAME])
def test_a_node_has_the_name_of_its_host_in_lower_case(host: str) -> None:
    assert node_name(host) == host.lower()


@pytest.mark.parametrize("host", ["", "node_1", "-a", "a.", "a..b", "a;rm", "ä", "x" * (LONGEST_NAME + 1)])
def test_what_is_no_name_is_refused(host: str) -> None:
    with pytest.raises(InvalidValue, match="RFC 1123"):
        node_name(host)


def test_each_node_has_one_command() -> None:
    lines = label_lines([("a", {HOST_LABEL: "a", "x": "1"}), ("b", {"x": "2"})])
    assert lines.splitlines() == [
        "kubectl label node a kubernetes.io/hostname=a x=1 --overwrite",
        "kubectl label node b x=2 --overwrite",
    ]


@pytest.mark.parametrize(
    ("name", "short"),
    [("node1.a.example", "node1"), ("node1", "node1"), ("10.0.0.1", "10.0.0.1"), (".a", ".a"), ("n1.", "n1")],
)
def test_a_domain_is_what_follows_the_first_dot_after_a_letter(name: str, short: str) -> None:
    assert without_domain(name) == short


@pytest.mark.parametrize(
    ("names", "known", "same"),
    [
        (["n1", "n2"], ["n1.x", "n2.x"], {"n1": "n1.x", "n2": "n2.x"}),
        (["n1.x", "n2.x"], ["n2", "n1"], {"n1.x": "n1", "n2.x": "n2"}),
        *((["n1.x"], ["n1.y"], {"n1.x": "n1.y"}), (["n1"], ["n1", "n1.x"], {"n1": "n1"})),
        *((["n1"], ["n1.x", "n1.y"], {}), (["n1.x", "n1.y"], ["n1"], {})),
        *((["n1", "n1.x"], ["n1"], {"n1": "n1"}), (["n1", "n1.z"], ["n1", "n1.x"], {"n1": "n1"})),
        *((["10.0.0.1"], ["10.0.0.2"], {}), (["N1"], ["n1.x"], {}), ([], ["n1"], {})),
    ],
)
def test_names_are_the_same_up_to_the_first_dot_unless_that_is_ambiguous(
    names: list[str], known: list[str], same: dict[str, str]
) -> None:
    assert same_hosts(names, known) == same


PLAIN = ("hpc1", "HPC 1", "a.b_c-d+e", "9", "Zürich", "超算", "x" * MAX_NAME)
OTHERS = (
    *("", " ", ".", "..", "../x", "a/b", "/etc", "a\\b", "C:\\x", "C:x", "~", "-x", "--yes", "_", ".hidden"),
    *(" x", "x ", "a\nb", "a\tb", "a\x1b[31mb", "a\x00", "a\x7f", "a\u202eb", "a\u200bb", "a\u00a0b"),
    *("*", "$(id)", "a;b", "a'b", 'a"b', "a|b", "a&b", "<b>", "a?b", "a#b", "x" * (MAX_NAME + 1)),
)


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_name_is_accepted(name: str) -> None:
    check_cluster_name(name)
    assert Options(cluster=name).cluster == name


@pytest.mark.parametrize("name", OTHERS)
def test_another_name_is_refused_with_the_rule(name: str) -> None:
    with pytest.raises(InvalidValue, match="begins with a letter or a digit") as caught:
        check_cluster_name(name)
    assert str(caught.value).isprintable()
    if name:
        with pytest.raises(InvalidValue, match=r"^Options.cluster: "):
            Options(cluster=name)
        with pytest.raises(InvalidValue, match=r"^Intake.cluster: "):
            Intake(cluster=name)
