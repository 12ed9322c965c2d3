"""Bytes that simulated links carry against the exact loads of the congestion model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.fat_trees import k_ary_n_tree
from ingest.generate.tori import torus
from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate
from mapping.routing.catalog import build_routes
from mapping.routing.host_traffic import host_traffic
from mapping.simulation.messages import from_profile
from mapping.simulation.options import Options
from mapping.simulation.simulate import simulate
from registry.errors import DisconnectedAllocation
from registry.model import Fabric, Placement, Profile
from tests.support.infiniband_data import infiniband
from tests.support.slow_simulation import placed
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics

MODES = ("packets", "flits")


@st.composite
def profiles(draw: st.DrawFn, ranks: int) -> Profile:
    """Any pairs, whole bytes."""
    ends = st.integers(0, ranks - 1)
    edges = draw(st.lists(st.tuples(ends, ends, st.integers(0, 300)), max_size=30))
    source, target, size = zip(*edges, strict=True) if edges else ((), (), ())
    return Profile.from_edges(source, target, size, ranks=ranks)


def check(fabric: Fabric, profile: Profile, placement: Placement, routing: str, mode: str) -> None:
    """Compare the bytes of every link with the loads of the model."""
    options = Options(packet_bytes=64, flit_bytes=8)
    exact = evaluate(fabric, profile, placement, costs=CostModel(routing=routing))
    found = simulate(
        fabric, placement, from_profile(profile, 2), CostModel(routing=routing), mode=mode, options=options
    )
    np.testing.assert_array_equal(found.link_bytes, exact.link_bytes)
    assert found.delivered_bytes == profile.bytes.sum()
    assert found.completion_seconds >= exact.congestion_seconds * (1 - 1e-9)
    assert not found.link_busy_seconds[found.link_bytes == 0].any() or mode == "flits"
    assert float(found.link_utilisation.max(initial=0.0)) <= 1 + 1e-9


@given(profile=profiles(12), mode=st.sampled_from(MODES), hosts_of_ranks=st.permutations(range(12)))
def test_dimension_order_on_a_torus(profile: Profile, mode: str, hosts_of_ranks: list[int]) -> None:
    fabric = torus([4, 3], capacity=1e9)
    check(fabric, profile, placed(fabric, hosts_of_ranks), "dimension-order", mode)


@given(profile=profiles(10), mode=st.sampled_from(MODES), seed=st.integers(0, 99))
def test_shortest_paths_on_a_tree_with_several_ranks_a_host(profile: Profile, mode: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    hosts, switches = 6, 4
    ends = [(hosts + s, hosts + int(generator.integers(s))) for s in range(1, switches)]
    ends += [(host, hosts + int(generator.integers(switches))) for host in range(hosts)]
    fabric = Fabric.from_arcs(
        [f"v{v}" for v in range(hosts + switches)],
        [a for a, _ in ends] + [b for _, b in ends],
        [b for _, b in ends] + [a for a, _ in ends],
        1e9,
        slots=[10] * hosts + [0] * switches,
        forwards=[False] * hosts + [True] * switches,
    )
    hosts_of_ranks = generator.integers(hosts, size=10).tolist()
    check(fabric, profile, placed(fabric, hosts_of_ranks), "shortest-paths", mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["fattree2-64-traffic", "irregular-16sw-updown"])
def test_forwarding_tables_of_real_scans(name: str, mode: str) -> None:
    fabric = infiniband(name)
    hosts, generator = fabric.hosts, np.random.default_rng(3)
    source, target = generator.integers(len(hosts), size=(2, 300))
    profile = Profile.from_edges(source, target, generator.integers(0, 5000, 300), ranks=len(hosts))
    check(fabric, profile, placed(fabric, generator.permutation(hosts).tolist()), "tables", mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("routing", "selection"),
    [
        ("up-down", "adaptive"),
        ("up-down", "random"),
        ("up-down", "fixed"),
        ("minimal-adaptive", "adaptive"),
        ("shortest-paths", "random"),
    ],
)
def test_where_paths_are_chosen_all_together_carry_the_bytes_times_the_links(
    routing: str, selection: str, mode: str
) -> None:
    """On a fat tree all legal ways are shortest ones: whatever is chosen, the sum over links is fixed."""
    fabric = k_ary_n_tree(3, 2, capacity=1e9)
    ranks = len(fabric.hosts)
    profile = Profile.from_edges(
        np.arange(ranks), (np.arange(ranks) * 5 + 4) % ranks, np.full(ranks, 5000), ranks=ranks
    )
    placement = placed(fabric, fabric.hosts.tolist())
    options = Options(selection=selection, packet_bytes=512)
    found = simulate(
        fabric, placement, from_profile(profile), CostModel(routing=routing), mode=mode, options=options
    )
    exact = evaluate(fabric, profile, placement, costs=CostModel(routing="shortest-paths"))
    assert found.link_bytes.sum() == pytest.approx(exact.hop_bytes)
    hosts_own = ~fabric.network_link
    np.testing.assert_array_equal(found.link_bytes[hosts_own], exact.link_bytes[hosts_own])


def test_random_choices_spread_like_the_shortest_paths_of_the_model() -> None:
    fabric = k_ary_n_tree(3, 2, capacity=1e9)
    ranks = len(fabric.hosts)
    profile = Profile.from_edges([0], [ranks - 1], [3_000_000], ranks=ranks)
    placement = placed(fabric, fabric.hosts.tolist())
    options = Options(selection="random", packet_bytes=100)
    found = simulate(fabric, placement, from_profile(profile), CostModel(routing="up-down"), options=options)
    exact = evaluate(fabric, profile, placement, costs=CostModel(routing="shortest-paths"))
    np.testing.assert_allclose(found.link_bytes, exact.link_bytes, rtol=0.05)


def test_fixed_choices_send_a_pair_one_way() -> None:
    fabric = k_ary_n_tree(3, 2, capacity=1e9)
    ranks = len(fabric.hosts)
    profile = Profile.from_edges([0], [ranks - 1], [300_000], ranks=ranks)
    options = Options(selection="fixed")
    placement = placed(fabric, fabric.hosts.tolist())
    found = simulate(fabric, placement, from_profile(profile), CostModel(routing="up-down"), options=options)
    assert sorted(found.link_bytes[found.link_bytes > 0].tolist()) == [300_000.0] * 4


@given(data=st.data(), mode=st.sampled_from(MODES))
def test_hosts_of_several_adapters_send_and_receive_all_their_bytes(data: st.DataObject, mode: str) -> None:
    fabric = data.draw(adapter_fabrics())
    hosts = fabric.hosts.tolist()
    profile = data.draw(profiles(len(hosts)))
    found = simulate(
        fabric, placed(fabric, hosts), from_profile(profile), CostModel(routing="up-down"), mode=mode
    )
    links = fabric.links
    sent = np.bincount(profile.sender, profile.bytes, len(hosts))
    received = np.bincount(profile.partner, profile.bytes, len(hosts))
    for number, host in enumerate(hosts):
        assert found.link_bytes[links.source == host].sum() == sent[number]
        assert found.link_bytes[links.target == host].sum() == received[number]


@given(data=st.data(), mode=st.sampled_from(MODES))
def test_any_directed_graph_delivers_or_says_what_the_model_says(data: st.DataObject, mode: str) -> None:
    fabric = data.draw(plain_fabrics())
    hosts = fabric.hosts.tolist()
    profile, placement = data.draw(profiles(len(hosts))), placed(fabric, hosts)
    options = Options(packet_bytes=64, latency_seconds=0.5)
    traffic = host_traffic(profile, placement)
    routes = build_routes("up-down", fabric, traffic.hosts)
    if not np.isfinite(routes.distances[traffic.source, traffic.target]).all():
        with pytest.raises(DisconnectedAllocation):
            simulate(
                fabric,
                placement,
                from_profile(profile),
                CostModel(routing="up-down"),
                mode=mode,
                options=options,
            )
        return
    exact = evaluate(fabric, profile, placement, costs=CostModel(routing="up-down"))
    found = simulate(
        fabric, placement, from_profile(profile), CostModel(routing="up-down"), mode=mode, options=options
    )
    assert found.delivered_bytes == profile.bytes.sum()
    assert found.link_bytes.sum() == pytest.approx(exact.hop_bytes)
