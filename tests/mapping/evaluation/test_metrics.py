"""What a placement costs: published values, evaluations pair by pair, and the mapping coefficient."""

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
from mapping.selfcheck.oracles import cost, shortest_path_route
from registry import errors
from registry.errors import DisconnectedAllocation, InvalidPlacement, UnknownName, UnreachablePair
from registry.model import Allocation, Fabric, Placement, Profile
from tests.support import small_fabrics
from tests.support.infiniband_data import DATA
from tests.support.small_fabrics import any_fabrics, cabled, given_placement, placements, profiles


def placed(allocation: Allocation, slots: list[int]) -> Placement:
    """The placement of rank r on slot ``slots[r]``."""
    return given_placement(allocation, allocation.host_of_slot[slots])


@pytest.mark.parametrize("routing", ["shortest-paths", "tables"])
@given(data=st.data(), profile=profiles(), rails=st.sampled_from(["all-connected", "same-rail"]))
def test_metrics_are_those_of_loops(routing: str, rails: str, profile: Profile, data: st.DataObject) -> None:
    if routing == "tables":
        fabric = data.draw(small_fabrics.table_fabrics(broken=data.draw(st.booleans())))
    else:
        fabric = data.draw(any_fabrics())
    placement, costs = data.draw(placements(fabric, profile)), CostModel(routing=routing, rails=rails)
    try:
        expected = cost(fabric, profile, placement, routing=routing, rails=rails)
    except LookupError:
        with pytest.raises((DisconnectedAllocation, UnreachablePair)):
            evaluate(fabric, profile, placement, costs=costs)
        return
    found = evaluate(fabric, profile, placement, costs=costs)
    np.testing.assert_allclose(found.link_bytes, expected.link_bytes, atol=1e-12)
    assert found.congestion_seconds == pytest.approx(expected.congestion)
    assert found.network_congestion_seconds == pytest.approx(expected.network_congestion)
    assert found.hop_bytes == pytest.approx(expected.hop_bytes)
    assert found.max_dilation == pytest.approx(expected.max_dilation)
    assert found.total_bytes == profile.bytes.sum()
    assert (found.routing, found.rails) == (routing, rails)


def test_an_independent_evaluator_agrees_on_a_torus() -> None:
    """Values of tests/data/bench/README.md."""
    host, guest = np.load(DATA / "bench/host_torus8.npz"), np.load(DATA / "bench/guest_fem_512.npz")
    source = np.repeat(np.arange(512), np.diff(host["h_indptr"]))
    fabric = Fabric.from_arcs(map(str, range(512)), source, host["h_indices"], host["h_cap"])
    sender = np.repeat(np.arange(512), np.diff(guest["g_indptr"]))
    profile = Profile.from_edges(sender, guest["g_indices"], guest["g_w"])
    allocation = Allocation.of(fabric, host["hosts"].tolist())
    found = evaluate(fabric, profile, placed(allocation, list(range(512))))
    assert found.routing == "shortest-paths"
    assert round(found.congestion_seconds, 3) == 1977.793
    assert round(found.network_congestion_seconds, 3) == 1977.793
    assert found.hop_bytes == pytest.approx(1759434.0)


def pair_of_hosts() -> Fabric:
    return Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], [2.0, 4.0])


def test_ranks_on_one_host_load_nothing_and_those_of_one_pair_of_hosts_are_summed() -> None:
    fabric = pair_of_hosts()
    profile = Profile.from_edges([0, 1, 2], [1, 0, 0], [6.0, 3.0, 8.0])
    found = evaluate(fabric, profile, placed(Allocation.of(fabric, ["a", "b"], 2), [0, 1, 2]))
    assert found.link_bytes.tolist() == [0.0, 8.0]
    assert (found.congestion_seconds, found.total_bytes, found.max_dilation) == (2.0, 17.0, 1.0)
    assert found.average_dilation == pytest.approx(8 / 17)
    profile = Profile.from_edges([0, 1, 1], [2, 2, 3], [6.0, 3.0, 8.0])
    found = evaluate(fabric, profile, placed(Allocation.of(fabric, ["a", "b"], 2), [0, 1, 2, 3]))
    assert found.link_bytes.tolist() == [17.0, 0.0]


def test_a_profile_without_traffic_costs_nothing() -> None:
    fabric = pair_of_hosts()
    profile = Profile.from_edges([], [], [], ranks=2)
    found = evaluate(fabric, profile, placed(Allocation.of(fabric, ["a", "b"]), [0, 1]), bounds=True)
    assert found.congestion_seconds == found.hop_bytes == found.average_dilation == 0.0
    assert {bound.value for bound in found.bounds.values()} == {0.0}


def test_bounds_are_computed_only_with_the_option() -> None:
    fabric = pair_of_hosts()
    profile = Profile.from_edges([0, 1], [1, 0], [6.0, 3.0])
    placement = placed(Allocation.of(fabric, ["b", "a"]), [0, 1])
    assert not evaluate(fabric, profile, placement).bounds
    bounds = evaluate(fabric, profile, placement, bounds=True).bounds
    assert bounds["congestion_seconds"].value == pytest.approx(1.5)
    assert bounds["hop_bytes"].value == pytest.approx(9.0)


def test_another_number_of_ranks_another_fabric_and_an_unknown_routing_are_refused() -> None:
    fabric, large = pair_of_hosts(), Fabric.from_arcs(list("abc"), [0, 1, 2], [1, 2, 0], 1.0)
    two, three = Profile.from_edges([0], [1], [6.0]), Profile.from_edges([0, 1], [1, 2], [6.0, 3.0])
    placement = placed(Allocation.of(fabric, ["a", "b"]), [0, 1])
    with pytest.raises(InvalidPlacement, match="2 ranks are placed, the profile has 3"):
        evaluate(fabric, three, placement)
    with pytest.raises(InvalidPlacement, match="vertex 2"):
        evaluate(fabric, two, placed(Allocation.of(large, [0, 2]), [0, 1]))
    with pytest.raises(UnknownName, match="shortest-paths"):
        evaluate(fabric, two, placement, costs=CostModel(routing="shortest"))


DISTANCES = ("links", "switches", "equivalent", "equivalent+2")


@st.composite
def talking(draw: st.DrawFn) -> Profile:
    """Ranks with bytes and messages, some of either without the other."""
    ranks = draw(st.integers(1, 4))
    ends, size = st.integers(0, ranks - 1), st.integers(0, 20)
    edges = draw(st.lists(st.tuples(ends, ends, size, st.integers(0, 5)), max_size=12))
    columns = [[edge[k] for edge in edges] for k in range(4)]
    return Profile.from_edges(*columns[:3], ranks=ranks, messages=columns[3])


@settings(max_examples=200)
@given(data=st.data(), name=st.sampled_from(DISTANCES), packet_bytes=st.sampled_from([None, 8.0]))
def test_dilation_congestion_and_the_mapping_coefficient_are_those_of_a_slow_count(
    data: st.DataObject, name: str, packet_bytes: float | None
) -> None:
    fabric, profile = data.draw(any_fabrics()), data.draw(talking())
    placement = data.draw(placements(fabric, profile))
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
    fabric = cabled("0-3 1-3 2-3", 3, 2.0)
    profile = Profile.from_edges([0, 1], [1, 2], [8.0, 20.0], messages=[4, 1])
    return fabric, profile, given_placement(Allocation.of(fabric, [0, 1, 2]), [0, 1, 2])


def test_by_hand_on_a_star() -> None:
    found = evaluate(*star(), costs=CostModel(distance="switches", packet_bytes=10.0))
    assert (found.hop_bytes, found.total_dilation, found.message_dilation) == (56.0, 4.0, 2.0)
    assert found.mean_congestion_seconds == (4 + 4 + 10 + 10) / 4
    assert (found.mapping_coefficient, found.routing) == (4 + 2, "shortest-paths")


def test_a_table_of_distances_counts_as_given() -> None:
    table = DistanceTable(names=("v2", "v1", "v0"), values=np.array([[0, 7, 1], [5, 0, 1], [1, 3, 0]]))
    one_way = CostModel(distance="table", table=table, one_way=True)
    assert evaluate(*star(), costs=one_way).mapping_coefficient == 8 * 3 + 20 * 5
    with pytest.raises(errors.InvalidValue, match="other direction"):
        evaluate(*star(), costs=CostModel(distance="table", table=table))
