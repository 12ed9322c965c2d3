"""How scattered jobs are: against a search over all ways to choose groups, and by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.traffic.fragmentation import Neighbours
from registry.errors import InvalidValue
from registry.model import Fabric
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics
from tests.support.traffic_jobs import two_leaves


@given(st.one_of(plain_fabrics(), adapter_fabrics()), st.data())
def test_groups_touched_and_the_fewest_that_hold_as_many_hosts(fabric: Fabric, data: st.DataObject) -> None:
    hosts = data.draw(st.lists(st.sampled_from(fabric.hosts.tolist()), min_size=1, unique=True))
    links = fabric.links
    leaves = {
        host: frozenset(
            int(far)
            for near, far in zip(links.source, links.target, strict=True)
            if near == host and fabric.forwards[far] and not fabric.forwards[host]
        )
        or frozenset({-1 - host})
        for host in fabric.hosts.tolist()
    }
    groups = set(leaves.values())
    sizes = {group: sum(one == group for one in leaves.values()) for group in groups}
    fewest = next(
        count
        for count in range(1, len(groups) + 1)
        if any(
            sum(sizes[group] for group in some) >= len(hosts)
            for some in itertools.combinations(groups, count)
        )
    )
    found = Neighbours.of(fabric).fragmentation(hosts)
    assert (found.groups, found.fewest) == (len({leaves[host] for host in hosts}), fewest)
    assert found.times >= 1.0


def test_two_hosts_under_one_switch_are_whole_and_under_two_are_scattered() -> None:
    fabric = two_leaves()
    neighbours = Neighbours.of(fabric)
    whole = neighbours.fragmentation(fabric.vertices(["a0", "a1"]))
    assert (whole.groups, whole.fewest, whole.times) == (1, 1, 1.0)
    scattered = neighbours.fragmentation(fabric.vertices(["a0", "b0", "a0"]))
    assert (scattered.groups, scattered.fewest, scattered.times) == (2, 1, 2.0)


def test_nodes_of_a_direct_network_are_a_group_each() -> None:
    ring = Fabric.from_arcs(list("abc"), [0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2], 1.0)
    assert Neighbours.of(ring).fragmentation([0, 2]).times == 1.0


def test_no_hosts_switches_and_unknown_vertices_are_refused() -> None:
    neighbours = Neighbours.of(two_leaves())
    for hosts, fault in (
        ([], "at least one"),
        ([4], "must not contain a switch"),
        ([0, 6], "must be from 0 to"),
        ([-1], "must be from 0 to"),
    ):
        with pytest.raises(InvalidValue, match=fault):
            neighbours.fragmentation(np.array(hosts, int))
