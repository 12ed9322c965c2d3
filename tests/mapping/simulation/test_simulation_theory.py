"""Simulated times against pencil and paper, and bytes of links against the exact loads of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.direct import torus
from ingest.generate.trees import k_ary_n_tree
from mapping.cost.metrics import evaluate
from mapping.distances.cost_model import CostModel
from mapping.routing.catalog import build_routes
from mapping.routing.network import host_traffic
from mapping.simulation.messages import Messages, Options, from_profile
from mapping.simulation.simulate import simulate
from registry.errors import DisconnectedAllocation
from registry.model import Fabric, Placement, Profile, Simulation
from tests.support.infiniband_data import infiniband
from tests.support.slow_simulation import Case, cases, placed, send
from tests.support.small_fabrics import adapter_fabrics, cabled, plain_fabrics

MODES = ("packets", "flits")
RATE = 1e9
LATENCY = 1e-7


def star(hosts: int, *, capacity: list[float] | float = RATE) -> Fabric:
    """Hosts on one switch, with these capacities of their cables."""
    return cabled(" ".join(f"{host}-{hosts}" for host in range(hosts)), hosts, capacity, slots=8)


def run(
    fabric: Fabric, sent: Messages, routing: str | None = None, mode: str = "packets", **options: Any
) -> Simulation:
    costs = None if routing is None else CostModel(routing=routing)
    placement = placed(fabric, fabric.hosts.tolist())
    return simulate(fabric, placement, sent, costs, mode=mode, options=Options(**options))


def shift(hops: int, size: int) -> Messages:
    return send(*((rank, (rank + hops) % 9, size, 0.0) for rank in range(9)))


def all_to_all(ranks: int, size: int) -> Profile:
    pair = np.argwhere(~np.eye(ranks, dtype=bool))
    return Profile.from_edges(pair[:, 0], pair[:, 1], np.full(len(pair), size), ranks=ranks)


@pytest.mark.parametrize("size", [0, 1, 2048, 2049, 1_000_000])
def test_a_message_alone_takes_its_bytes_once_and_every_links_latency(size: int) -> None:
    found = run(star(2), send((0, 1, size, 0.5)))
    assert found.completion_seconds == pytest.approx(0.5 + size / RATE + 2 * LATENCY, rel=1e-12)
    assert found.latency(50) == pytest.approx(size / RATE + 2 * LATENCY)
    assert found.packet_hops == 2 * max(-(-size // 2048), 1)


@pytest.mark.parametrize(("up", "down"), [(RATE, RATE / 4), (RATE / 4, RATE)])
def test_the_slower_link_decides_and_a_header_takes_time_but_is_no_load(up: float, down: float) -> None:
    size = 64 * 2048
    sent = send((0, 1, size, 0.0))
    found = run(star(2, capacity=[up, down]), sent)
    assert found.completion_seconds == pytest.approx(size / min(up, down) + 2 * LATENCY, rel=1e-9)
    headed = run(star(2), sent, header_bytes=48)
    assert headed.completion_seconds == pytest.approx((size + 64 * 48) / RATE + 2 * LATENCY, rel=1e-9)
    assert headed.link_bytes.sum() == 2 * size


CYCLES = [(3, 3), (12.5, 12.5), (3 + 1 / 3, 3 + 1 / 3), (5.75, 5.75), (12.3, 12 + 1 / 3), (156.25, 156.0)]


@pytest.mark.parametrize(("cycles", "taken"), [*CYCLES, (1.4, 4 / 3), (0.4, 1.0)])
def test_flits_of_a_message_alone_take_parts_of_a_cycle_if_needed(cycles: float, taken: float) -> None:
    """Head: every link's cycles; the rest of the flits a cycle each. Cycles are exact to a hundredth.

    100 ns are 12.5 cycles of 8 bytes at 1 GB/s. 1.4 cycles are closest to four thirds.
    """
    options: dict[str, Any] = {"latency_seconds": cycles * 8e-9, "packet_bytes": 1 << 20}
    found = run(star(2), send((0, 1, 800, 0.0)), mode="flits", flit_bytes=8, **options)
    assert found.completion_seconds == pytest.approx((2 * taken + 100 - 1) * 8e-9, rel=1e-9)
    assert found.packet_hops == 200


def test_links_whose_flits_take_one_and_a_half_cycles_are_exact_too() -> None:
    """Hosts send at 1 and 1.5 bytes per second: a flit of 3 bytes takes 3 and 2 seconds, the cycle is 2."""
    fabric = star(2, capacity=[1.0, 1.5])
    options: dict[str, Any] = {"flit_bytes": 3, "latency_seconds": 0.0, "packet_bytes": 1 << 20}
    found = run(fabric, send((0, 1, 30, 0.0)), mode="flits", **options)
    assert found.completion_seconds == pytest.approx(10 * 3 + 2)


@pytest.mark.parametrize("mode", ["packets", "flits"])
def test_two_senders_to_one_host_share_its_cable_evenly(mode: str) -> None:
    size = 200 * 2048
    found = run(star(3), send((0, 2, size, 0.0), (1, 2, size, 0.0)), "up-down", mode, every=1)
    assert found.completion_seconds == pytest.approx(2 * size / RATE, rel=0.01)
    first, last = found.delivered_at.tolist()
    assert last - first <= 2 * 2048 / RATE


@pytest.mark.parametrize("mode", ["packets", "flits"])
def test_a_ring_where_each_sends_to_the_next_is_busy_throughout(mode: str) -> None:
    size = 100 * 2048
    found = run(torus([9], capacity=RATE), shift(1, size), "dimension-order", mode)
    assert found.completion_seconds == pytest.approx(size / RATE + LATENCY, rel=0.01)
    assert found.link_utilisation.max() == pytest.approx(1.0, rel=0.01)
    assert np.count_nonzero(found.link_bytes) == 9


@pytest.mark.parametrize("hops", [2, 3, 4])
@pytest.mark.parametrize("routing", ["dimension-order", "minimal-adaptive"])
def test_a_saturated_ring_with_room_for_all_that_waits_keeps_every_link_busy(hops: int, routing: str) -> None:
    """With less room injection fills the ring, and links wait for room: slower, but never beyond the load."""
    ring, size = torus([9], capacity=RATE), 100 * 2048
    roomy, tight = (run(ring, shift(hops, size), routing, buffer_bytes=room * 2048) for room in (128, 2))
    least = hops * size / RATE
    assert roomy.completion_seconds == pytest.approx(least, rel=0.01)
    assert least <= tight.completion_seconds <= 3 * least
    np.testing.assert_array_equal(roomy.link_bytes, tight.link_bytes)


def test_all_to_all_keeps_the_cables_of_hosts_busy_on_one_switch_and_nearly_so_on_a_fat_tree() -> None:
    found = run(star(8), from_profile(all_to_all(8, 32 * 2048)))
    assert found.completion_seconds == pytest.approx(7 * 32 * 2048 / RATE + 2 * LATENCY, rel=0.01)
    found = run(k_ary_n_tree(4, 2, capacity=RATE), from_profile(all_to_all(16, 16 * 2048)), "up-down")
    least = 15 * 16 * 2048 / RATE
    assert least <= found.completion_seconds <= 1.6 * least


@pytest.mark.parametrize("routing", ["dimension-order", "minimal-adaptive"])
def test_uniform_traffic_on_a_torus_keeps_to_its_bisection_and_to_its_worst_link(routing: str) -> None:
    fabric = torus([8, 8], capacity=RATE)
    source = np.repeat(np.arange(64), 8)  # every rank sends to eight others, drawn anew for each
    target = (source + np.random.default_rng(0).integers(1, 64, 512)) % 64
    profile = Profile.from_edges(source, target, np.full(512, 16 * 2048), ranks=64)
    messages = from_profile(profile, 16, barrier=False)
    found = run(fabric, messages, routing, lanes=2, buffer_bytes=16 * 2048)
    half = np.arange(64) // 32
    crossing = profile.bytes[half[profile.sender] < half[profile.partner]].sum()
    least = crossing / (16 * RATE)  # two cuts of eight links in that direction
    worst = float(found.link_bytes.max()) / RATE
    assert least <= worst <= found.completion_seconds <= 1.25 * worst
    total = profile.bytes.sum()
    np.testing.assert_allclose(found.link_bytes.sum() / total, hops_of(fabric, profile), rtol=1e-12)


def hops_of(fabric: Fabric, profile: Profile) -> float:
    """Mean links of a byte on shortest ways around the 8 x 8 torus, rank r on node r."""
    at, to = np.array(np.unravel_index(profile.sender, (8, 8))), np.unravel_index(profile.partner, (8, 8))
    ahead = np.abs(at - np.array(to))
    return float((np.minimum(ahead, 8 - ahead).sum(axis=0) * profile.bytes).sum() / profile.bytes.sum())


def test_rounds_begin_when_the_round_before_is_delivered() -> None:
    size = 8 * 2048
    profile = Profile.from_edges([0, 1, 2], [1, 2, 3], [4 * size, 4 * size, 0], ranks=4)
    found = run(star(4), from_profile(profile, 4))
    assert found.completion_seconds == pytest.approx(4 * (size / RATE + 2 * LATENCY), rel=1e-9)
    free = run(star(4), from_profile(profile, 4, barrier=False))
    assert free.completion_seconds == pytest.approx(4 * size / RATE + 2 * LATENCY, rel=1e-9)


def test_small_buffers_and_long_links_cost_throughput_as_credits_come_back_late() -> None:
    """One packet of room: each waits for the room of the one before, a link's latency there and back."""
    found = run(star(2), send((0, 1, 100 * 2048, 0.0)), buffer_bytes=2048, latency_seconds=1e-5)
    assert found.completion_seconds == pytest.approx(100 * (2048 / RATE + 2e-5), rel=0.02)


def test_a_packet_that_waited_takes_the_lane_with_most_room() -> None:
    """By hand, with two lanes and 10 ns a link; a packet takes 2.048 us.

    The first packet loads the cable to host 2. The second stops behind it, in the buffer of a lane between
    the switches. The third waits until the second has left that link; then it takes the other, empty lane,
    is not stopped, and arrives two packets and three links after the start.
    """
    fabric = cabled("0-5 1-5 2-6 3-6 4-6 5-6", 5, RATE)
    sent = send((0, 2, 2048, 0.0), (1, 3, 2048, 0.0), (4, 2, 2048, 0.0))
    found = run(fabric, sent, lanes=2, latency_seconds=1e-8, every=1)
    wanted = [2.048e-6 + 2e-8, 2 * 2.048e-6 + 3e-8, 2 * 2.048e-6 + 2e-8]
    assert sorted(found.delivered_at.tolist()) == pytest.approx(sorted(wanted), rel=1e-9)


@st.composite
def profiles(draw: st.DrawFn, ranks: int) -> Profile:
    ends = st.integers(0, ranks - 1)
    edges = draw(st.lists(st.tuples(ends, ends, st.integers(0, 300)), max_size=30))
    source, target, size = zip(*edges, strict=True) if edges else ((), (), ())
    return Profile.from_edges(source, target, size, ranks=ranks)


def check(fabric: Fabric, profile: Profile, placement: Placement, routing: str, mode: str) -> None:
    options, costs = Options(packet_bytes=64, flit_bytes=8), CostModel(routing=routing)
    exact = evaluate(fabric, profile, placement, costs=costs)
    found = simulate(fabric, placement, from_profile(profile, 2), costs, mode=mode, options=options)
    np.testing.assert_array_equal(found.link_bytes, exact.link_bytes)
    assert found.delivered_bytes == profile.bytes.sum()
    assert found.completion_seconds >= exact.congestion_seconds * (1 - 1e-9)
    assert not found.link_busy_seconds[found.link_bytes == 0].any() or mode == "flits"
    assert float(found.link_utilisation.max(initial=0.0)) <= 1 + 1e-9


@given(profile=profiles(12), mode=st.sampled_from(MODES), hosts_of_ranks=st.permutations(range(12)))
def test_dimension_order_on_a_torus(profile: Profile, mode: str, hosts_of_ranks: list[int]) -> None:
    fabric = torus([4, 3], capacity=1e9)
    check(fabric, profile, placed(fabric, hosts_of_ranks), "dimension-order", mode)


@given(case=cases(whole=True), data=st.data(), mode=st.sampled_from(MODES))
def test_shortest_paths_on_trees_with_some_ranks_a_host(case: Case, data: st.DataObject, mode: str) -> None:
    check(case.fabric, data.draw(profiles(case.placement.ranks)), case.placement, "shortest-paths", mode)


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
        *(("up-down", selection) for selection in ("adaptive", "random", "fixed")),
        *(("minimal-adaptive", "adaptive"), ("shortest-paths", "random")),
    ],
)
def test_chosen_paths_carry_the_bytes_times_the_links(routing: str, selection: str, mode: str) -> None:
    """On a fat tree all legal ways are shortest ones: whatever is chosen, the sum over links is fixed."""
    fabric = k_ary_n_tree(3, 2, capacity=1e9)
    at = np.arange(len(fabric.hosts))
    profile = Profile.from_edges(at, (at * 5 + 4) % len(at), np.full(len(at), 5000), ranks=len(at))
    placement, costs = placed(fabric, fabric.hosts.tolist()), CostModel(routing=routing)
    options = Options(selection=selection, packet_bytes=512)
    found = simulate(fabric, placement, from_profile(profile), costs, mode=mode, options=options)
    exact = evaluate(fabric, profile, placement, costs=CostModel(routing="shortest-paths"))
    assert found.link_bytes.sum() == pytest.approx(exact.hop_bytes)
    hosts_own = ~fabric.network_link
    np.testing.assert_array_equal(found.link_bytes[hosts_own], exact.link_bytes[hosts_own])


def test_random_choices_spread_like_the_model_and_fixed_ones_send_a_pair_one_way() -> None:
    fabric = k_ary_n_tree(3, 2, capacity=1e9)
    profile = Profile.from_edges([0], [8], [300_000], ranks=9)
    placement, costs = placed(fabric, fabric.hosts.tolist()), CostModel(routing="up-down")
    spread, fixed = (
        simulate(fabric, placement, from_profile(profile), costs, options=options)
        for options in (Options(selection="random", packet_bytes=10), Options(selection="fixed"))
    )
    exact = evaluate(fabric, profile, placement, costs=CostModel(routing="shortest-paths"))
    np.testing.assert_allclose(spread.link_bytes, exact.link_bytes, rtol=0.05)
    assert sorted(fixed.link_bytes[fixed.link_bytes > 0].tolist()) == [300_000.0] * 4


@given(data=st.data(), mode=st.sampled_from(MODES))
def test_hosts_of_several_adapters_send_and_receive_all_their_bytes(data: st.DataObject, mode: str) -> None:
    fabric = data.draw(adapter_fabrics())
    hosts = fabric.hosts.tolist()
    profile, costs, links = data.draw(profiles(len(hosts))), CostModel(routing="up-down"), fabric.links
    found = simulate(fabric, placed(fabric, hosts), from_profile(profile), costs, mode=mode)
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
    costs, messages = CostModel(routing="up-down"), from_profile(profile)
    if not np.isfinite(routes.distances[traffic.source, traffic.target]).all():
        with pytest.raises(DisconnectedAllocation):
            simulate(fabric, placement, messages, costs, mode=mode, options=options)
        return
    exact = evaluate(fabric, profile, placement, costs=costs)
    found = simulate(fabric, placement, messages, costs, mode=mode, options=options)
    assert found.delivered_bytes == profile.bytes.sum()
    assert found.link_bytes.sum() == pytest.approx(exact.hop_bytes)
