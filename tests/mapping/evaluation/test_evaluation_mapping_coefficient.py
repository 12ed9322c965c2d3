"""Mean congestion, dilation by pair and by message, and the mapping coefficient, pair by pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.distances.distances import distances
from mapping.evaluation.metrics import evaluate
from mapping.routing import shortest_paths
from mapping.routing.host_traffic import packets
from mapping.routing.routes import Routes
from mapping.selfcheck.oracles import Route, shortest_path_route
from registry.errors import InvalidValue
from registry.model import Allocation, Fabric, Placement, Profile
from tests.support.small_fabrics import adapter_fabrics, allocations, plain_fabrics


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
    slots = draw(st.permutations(allocation.host_of_slot.tolist()))
    placement = Placement(
        host_of_rank=np.array(slots[: profile.ranks]), allocation=allocation, strategy="given"
    )
    return fabric, profile, placement


def routed(fabric: Fabric, profile: Profile, placement: Placement) -> list[Route] | None:
    """The route of every pair of ranks; None where one has none."""
    found = []
    for rank, partner in zip(profile.sender, profile.partner, strict=True):
        source, target = int(placement.host_of_rank[rank]), int(placement.host_of_rank[partner])
        route: Route | None = [] if source == target else shortest_path_route(fabric, source, target)
        if route is None:
            return None
        found.append(route)
    return found


@given(case=placements())
def test_dilation_and_mean_congestion_are_those_of_a_slow_count(
    case: tuple[Fabric, Profile, Placement],
) -> None:
    fabric, profile, placement = case
    routes = routed(*case)
    if routes is None:
        return
    found = evaluate(fabric, profile, placement)
    hops = [sum(part for _, part in route) for route in routes]
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


@pytest.mark.parametrize("name", ["links", "switches", "equivalent", "equivalent+2"])
@pytest.mark.parametrize("packet_bytes", [None, 8.0])
@given(case=placements())
def test_the_mapping_coefficient_is_the_sum_over_pairs_of_ranks(
    name: str, packet_bytes: float | None, case: tuple[Fabric, Profile, Placement]
) -> None:
    fabric, profile, placement = case
    if routed(*case) is None:
        return
    found = evaluate(fabric, profile, placement, costs=CostModel(distance=name, packet_bytes=packet_bytes))
    used = np.unique(placement.host_of_rank)
    far = distances(name, shortest_paths.build(fabric, used)).matrix()
    place = {int(vertex): at for at, vertex in enumerate(used)}
    total = 0.0
    columns = (profile.sender, profile.partner, profile.bytes, profile.messages)
    for rank, partner, size, messages in zip(*columns, strict=True):
        weight = size if packet_bytes is None else max(math.ceil(size / packet_bytes), messages)
        i, j = place[int(placement.host_of_rank[rank])], place[int(placement.host_of_rank[partner])]
        total += weight * (far[i, j] if weight else 0.0)
    assert found.mapping_coefficient == pytest.approx(total)
    assert found.distance == name
    assert found.counted == ("bytes" if packet_bytes is None else "packets of 8 bytes")


def star() -> tuple[Fabric, Profile, Placement]:
    """Three hosts on a switch, one rank each."""
    fabric = Fabric.from_arcs(
        list("abcs"), [0, 1, 2, 3, 3, 3], [3, 3, 3, 0, 1, 2], 2.0, slots=[1, 1, 1, 0], forwards=False
    )
    profile = Profile.from_edges([0, 1], [1, 2], [8.0, 20.0], messages=[4, 1])
    allocation = Allocation.of(fabric, [0, 1, 2])
    return fabric, profile, Placement(host_of_rank=[0, 1, 2], allocation=allocation, strategy="given")  # type: ignore[arg-type]


def test_by_hand_on_a_star() -> None:
    found = evaluate(*star(), costs=CostModel(distance="switches", packet_bytes=10.0))
    assert found.hop_bytes == 56.0
    assert found.total_dilation == 4.0
    assert found.message_dilation == 2.0
    assert found.mean_congestion_seconds == (4 + 4 + 10 + 10) / 4
    assert found.mapping_coefficient == 4 + 2


def test_a_table_of_distances_counts_as_given() -> None:
    from mapping.distances.distance_tables import DistanceTable

    table = DistanceTable(names=("c", "b", "a"), values=np.array([[0, 7, 1], [5, 0, 1], [1, 3, 0]]))
    one_way = CostModel(distance="table", table=table, one_way=True)
    assert evaluate(*star(), costs=one_way).mapping_coefficient == 8 * 3 + 20 * 5
    with pytest.raises(InvalidValue, match="other direction"):
        evaluate(*star(), costs=CostModel(distance="table", table=table))


@pytest.mark.parametrize("size", [0.0, -1.0, float("nan"), float("inf")])
def test_packets_of_no_size_are_refused(size: float) -> None:
    with pytest.raises(InvalidValue, match="above zero"):
        packets(star()[1], size)


def test_routes_are_named_with_their_options() -> None:
    fabric, profile, placement = star()
    routes: Routes = shortest_paths.build(fabric, placement.host_of_rank)
    assert (
        evaluate(fabric, profile, placement, costs=CostModel(routing="shortest-paths")).routing == routes.name
    )
