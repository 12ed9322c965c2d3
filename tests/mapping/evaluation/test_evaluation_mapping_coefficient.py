"""Mean congestion, dilation by pair and by message, and the mapping coefficient, pair by pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.distances.distance_tables import DistanceTable
from mapping.distances.distances import distances
from mapping.evaluation.metrics import evaluate
from mapping.routing import shortest_paths
from mapping.selfcheck.oracles import shortest_path_route
from registry.errors import InvalidValue
from registry.model import Allocation, Fabric, Placement, Profile
from tests.support.small_fabrics import adapter_fabrics, allocations, cabled, plain_fabrics

DISTANCES = ("links", "switches", "equivalent", "equivalent+2")


@st.composite
def talking(draw: st.DrawFn) -> Profile:
    """Ranks with bytes and messages, some of either without the other."""
    ranks = draw(st.integers(1, 4))
    ends, size = st.integers(0, ranks - 1), st.integers(0, 20)
    edges = draw(st.lists(st.tuples(ends, ends, size, st.integers(0, 5)), max_size=12))
    columns = [[edge[k] for edge in edges] for k in range(4)]
    return Profile.from_edges(*columns[:3], ranks=ranks, messages=columns[3])


@st.composite
def placements(draw: st.DrawFn) -> tuple[Fabric, Profile, Placement]:
    """A connected placement, several ranks a host, unequal cables, any directions."""
    fabric, profile = draw(st.one_of(adapter_fabrics(), plain_fabrics())), draw(talking())
    allocation = draw(allocations(fabric, profile.ranks))
    hosts = np.array(draw(st.permutations(allocation.host_of_slot.tolist()))[: profile.ranks])
    return fabric, profile, Placement(host_of_rank=hosts, allocation=allocation, strategy="given")


@settings(max_examples=200)
@given(case=placements(), name=st.sampled_from(DISTANCES), packet_bytes=st.sampled_from([None, 8.0]))
def test_dilation_congestion_and_the_mapping_coefficient_are_those_of_a_slow_count(
    case: tuple[Fabric, Profile, Placement], name: str, packet_bytes: float | None
) -> None:
    fabric, profile, placement = case
    ends = placement.host_of_rank[profile.sender], placement.host_of_rank[profile.partner]
    pairs = [(int(a), int(b)) for a, b in zip(*ends, strict=True)]
    routes = [[] if a == b else shortest_path_route(fabric, a, b) for a, b in pairs]
    hops = [sum(part for _, part in route) for route in routes if route is not None]
    if len(hops) < len(routes):
        return
    found = evaluate(fabric, profile, placement, costs=CostModel(distance=name, packet_bytes=packet_bytes))
    assert found.total_dilation == pytest.approx(sum(hops))
    known = all(m > 0 or b == 0 for m, b in zip(profile.messages, profile.bytes, strict=True))
    if known and profile.messages.sum() > 0:
        wanted = sum(m * h for m, h in zip(profile.messages, hops, strict=True)) / profile.messages.sum()
        assert found.message_dilation == pytest.approx(wanted)
    else:
        assert found.message_dilation is None
    seconds = found.link_bytes / fabric.links.capacity
    loaded = [value for value in seconds.tolist() if value > 0]
    assert found.mean_congestion_seconds == pytest.approx(sum(loaded) / len(loaded) if loaded else 0.0)

    used = np.unique(placement.host_of_rank)
    far = distances(name, shortest_paths.build(fabric, used)).matrix()
    place, total = {int(vertex): at for at, vertex in enumerate(used)}, 0.0
    for (a, b), size, messages in zip(pairs, profile.bytes, profile.messages, strict=True):
        weight = size if packet_bytes is None else max(math.ceil(size / packet_bytes), messages)
        total += weight * (far[place[a], place[b]] if weight else 0.0)
    assert found.mapping_coefficient == pytest.approx(total)
    assert found.distance == name
    assert found.counted == ("bytes" if packet_bytes is None else "packets of 8 bytes")


def star() -> tuple[Fabric, Profile, Placement]:
    """Three hosts on a switch, one rank each."""
    fabric = cabled("0-3 1-3 2-3", 3, 2.0)
    profile = Profile.from_edges([0, 1], [1, 2], [8.0, 20.0], messages=[4, 1])
    allocation = Allocation.of(fabric, [0, 1, 2])
    return fabric, profile, Placement(host_of_rank=allocation.hosts, allocation=allocation, strategy="given")


def test_by_hand_on_a_star() -> None:
    found = evaluate(*star(), costs=CostModel(distance="switches", packet_bytes=10.0))
    assert found.hop_bytes == 56.0
    assert found.total_dilation == 4.0
    assert found.message_dilation == 2.0
    assert found.mean_congestion_seconds == (4 + 4 + 10 + 10) / 4
    assert found.mapping_coefficient == 4 + 2
    assert found.routing == "shortest-paths"


def test_a_table_of_distances_counts_as_given() -> None:
    table = DistanceTable(names=("v2", "v1", "v0"), values=np.array([[0, 7, 1], [5, 0, 1], [1, 3, 0]]))
    one_way = CostModel(distance="table", table=table, one_way=True)
    assert evaluate(*star(), costs=one_way).mapping_coefficient == 8 * 3 + 20 * 5
    with pytest.raises(InvalidValue, match="other direction"):
        evaluate(*star(), costs=CostModel(distance="table", table=table))
