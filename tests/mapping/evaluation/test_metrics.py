"""What a placement costs, against published values and an evaluation pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate
from mapping.selfcheck.oracles import cost
from registry.errors import DisconnectedAllocation, InvalidPlacement, UnknownName, UnreachablePair
from registry.model import Allocation, Fabric, Placement, Profile
from tests.support.infiniband_data import DATA
from tests.support.small_fabrics import adapter_fabrics, allocations, plain_fabrics, profiles, table_fabrics


def placed(allocation: Allocation, slots: list[int]) -> Placement:
    """The placement of rank r on slot ``slots[r]``."""
    return Placement(host_of_rank=allocation.host_of_slot[slots], allocation=allocation, strategy="given")


@pytest.mark.parametrize("routing", ["shortest-paths", "tables"])
@given(data=st.data(), profile=profiles(), rails=st.sampled_from(["all-connected", "same-rail"]))
def test_metrics_are_those_of_a_slow_evaluation(
    routing: str, rails: str, profile: Profile, data: st.DataObject
) -> None:
    if routing == "tables":
        fabric = data.draw(table_fabrics(broken=data.draw(st.booleans())))
    else:
        fabric = data.draw(st.one_of(adapter_fabrics(), plain_fabrics()))
    allocation = data.draw(allocations(fabric, profile.ranks))
    slots = data.draw(st.permutations(range(int(allocation.slots.sum()))))
    placement, costs = placed(allocation, slots[: profile.ranks]), CostModel(routing=routing, rails=rails)
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
    assert found.congestion_seconds == 2.0
    assert found.total_bytes == 17.0
    assert found.average_dilation == pytest.approx(8 / 17)
    assert found.max_dilation == 1.0
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


def test_the_package_hands_out_its_functions_on_first_use() -> None:
    assert mapping.evaluate is evaluate
    with pytest.raises(AttributeError, match="no attribute 'evaluations'"):
        mapping.evaluations  # noqa: B018
