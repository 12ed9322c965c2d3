"""Simulated times against what can be said with pencil and paper."""

from __future__ import annotations

import numpy as np
import pytest

from ingest.generate.fat_trees import k_ary_n_tree
from ingest.generate.tori import torus
from mapping.distances.cost_model import CostModel
from mapping.simulation.messages import Messages, from_profile
from mapping.simulation.options import Options
from mapping.simulation.simulate import simulate
from registry.model import Fabric, Placement, Profile, Simulation
from tests.support.slow_simulation import placed

RATE = 1e9
LATENCY = 1e-7


def star(hosts: int, *, capacity: list[float] | float = RATE) -> Fabric:
    """Hosts on one switch, the last vertex; capacities to the switch, then from it."""
    host = list(range(hosts))
    return Fabric.from_arcs(
        [f"h{h}" for h in host] + ["s"],
        host + [hosts] * hosts,
        [hosts] * hosts + host,
        capacity,
        slots=[8] * hosts + [0],
        forwards=[False] * hosts + [True],
    )


def send(*sent: tuple[int, int, int, float]) -> Messages:
    """Messages of (rank, receiver, bytes, ready)."""
    rank, receiver, size, ready = zip(*sent, strict=True)
    return Messages(
        np.array(rank, np.int32),
        np.array(receiver, np.int32),
        np.array(size, np.int64),
        np.array(ready, np.float64),
        np.zeros(len(sent), np.int32),
    )


def on_each(fabric: Fabric) -> Placement:
    """A rank on every host."""
    return placed(fabric, fabric.hosts.tolist())


def uniform(ranks: int, size: int, *, seed: int = 0, partners: int = 8) -> Profile:
    """Every rank sends `size` bytes to each of so many others, drawn anew for each."""
    generator = np.random.default_rng(seed)
    source = np.repeat(np.arange(ranks), partners)
    target = (source + generator.integers(1, ranks, len(source))) % ranks
    return Profile.from_edges(source, target, np.full(len(source), size), ranks=ranks)


def all_to_all(ranks: int, size: int) -> Profile:
    """Every rank sends `size` bytes to every other."""
    pair = np.argwhere(~np.eye(ranks, dtype=bool))
    return Profile.from_edges(pair[:, 0], pair[:, 1], np.full(len(pair), size), ranks=ranks)


@pytest.mark.parametrize("size", [0, 1, 2048, 2049, 1_000_000])
def test_a_message_alone_takes_its_bytes_once_and_every_links_latency(size: int) -> None:
    found = simulate(star(2), placed(star(2), [0, 1]), send((0, 1, size, 0.5)), options=Options())
    assert found.completion_seconds == pytest.approx(0.5 + size / RATE + 2 * LATENCY, rel=1e-12)
    assert found.latency(50) == pytest.approx(size / RATE + 2 * LATENCY)
    assert found.packet_hops == 2 * max(-(-size // 2048), 1)


@pytest.mark.parametrize(("up", "down"), [(RATE, RATE / 4), (RATE / 4, RATE)])
def test_the_slower_of_two_links_decides(up: float, down: float) -> None:
    fabric = star(2, capacity=[up, up, down, down])
    size = 64 * 2048
    found = simulate(fabric, on_each(fabric), send((0, 1, size, 0.0)))
    assert found.completion_seconds == pytest.approx(size / min(up, down) + 2 * LATENCY, rel=1e-9)


def test_a_header_takes_time_but_is_no_part_of_the_load() -> None:
    fabric, size = star(2), 10 * 2048
    found = simulate(fabric, on_each(fabric), send((0, 1, size, 0.0)), options=Options(header_bytes=48))
    assert found.completion_seconds == pytest.approx((size + 480) / RATE + 2 * LATENCY, rel=1e-9)
    assert found.link_bytes.sum() == 2 * size


def test_flits_of_a_message_alone_follow_each_other() -> None:
    """Head: every link's cycles; the rest of the flits a cycle each."""
    fabric = star(2)
    options = Options(flit_bytes=8, latency_seconds=3 * 8e-9, packet_bytes=1 << 20)
    found = simulate(fabric, on_each(fabric), send((0, 1, 800, 0.0)), mode="flits", options=options)
    assert found.completion_seconds == pytest.approx((2 * 3 + 100 - 1) * 8e-9, rel=1e-9)
    assert found.packet_hops == 200


@pytest.mark.parametrize(
    ("cycles", "taken"),
    [
        (12.5, 12.5),
        (3 + 1 / 3, 3 + 1 / 3),
        (5.75, 5.75),
        (12.3, 12 + 1 / 3),
        (156.25, 156.0),
        (1.4, 4 / 3),
        (0.4, 1.0),
    ],
)
def test_flits_take_parts_of_a_cycle_if_whole_cycles_would_be_wrong_by_over_a_hundredth(
    cycles: float, taken: float
) -> None:
    """100 ns are 12.5 cycles of 8 bytes at 1 GB/s. 1.4 cycles are closest to four thirds."""
    fabric = star(2)
    options = Options(flit_bytes=8, latency_seconds=cycles * 8e-9, packet_bytes=1 << 20)
    found = simulate(fabric, on_each(fabric), send((0, 1, 800, 0.0)), mode="flits", options=options)
    assert found.completion_seconds == pytest.approx((2 * taken + 100 - 1) * 8e-9, rel=1e-9)


def test_links_whose_flits_take_one_and_a_half_cycles_are_exact_too() -> None:
    """Hosts send at 1 and 1.5 bytes per second: a flit of 3 bytes takes 3 and 2 seconds, the cycle is 2."""
    fabric = Fabric.from_arcs(
        ["a", "b", "s"],
        [0, 2, 1, 2],
        [2, 0, 2, 1],
        [1.0, 1.0, 1.5, 1.5],
        slots=[1, 1, 0],
        forwards=[False, False, True],
    )
    options = Options(flit_bytes=3, latency_seconds=0.0, packet_bytes=1 << 20)
    found = simulate(fabric, on_each(fabric), send((0, 1, 30, 0.0)), mode="flits", options=options)
    assert found.completion_seconds == pytest.approx(10 * 3 + 2)


@pytest.mark.parametrize("mode", ["packets", "flits"])
def test_two_senders_to_one_host_share_its_cable_evenly(mode: str) -> None:
    fabric, size = star(3), 200 * 2048
    sent = send((0, 2, size, 0.0), (1, 2, size, 0.0))
    found = simulate(
        fabric, on_each(fabric), sent, CostModel(routing="up-down"), mode=mode, options=Options(every=1)
    )
    assert found.completion_seconds == pytest.approx(2 * size / RATE, rel=0.01)
    first, last = found.delivered_at.tolist()
    assert last - first <= 2 * 2048 / RATE


@pytest.mark.parametrize("mode", ["packets", "flits"])
def test_ranks_of_one_host_share_its_cable_a_message_each_in_turn(mode: str) -> None:
    fabric, size, many = star(2), 2048, 50
    sent = send(*((0, 2, size, 0.0) for _ in range(many)), (1, 2, 512, 0.0))
    placement = placed(fabric, [0, 0, 1])
    found = simulate(
        fabric, placement, sent, CostModel(routing="up-down"), mode=mode, options=Options(every=1)
    )
    assert found.completion_seconds == pytest.approx((many * size + 512) / RATE, rel=0.02)
    assert np.diff(found.delivered, prepend=0.0)[:3].tolist() == [size, 512, size]


@pytest.mark.parametrize("mode", ["packets", "flits"])
def test_a_ring_where_each_sends_to_the_next_is_busy_throughout(mode: str) -> None:
    ring = torus([9], capacity=RATE)
    size = 100 * 2048
    shift = send(*((rank, (rank + 1) % 9, size, 0.0) for rank in range(9)))
    found = simulate(ring, on_each(ring), shift, CostModel(routing="dimension-order"), mode=mode)
    assert found.completion_seconds == pytest.approx(size / RATE + LATENCY, rel=0.01)
    assert found.link_utilisation.max() == pytest.approx(1.0, rel=0.01)
    assert np.count_nonzero(found.link_bytes) == 9


@pytest.mark.parametrize("hops", [2, 3, 4])
@pytest.mark.parametrize("routing", ["dimension-order", "minimal-adaptive"])
def test_a_saturated_ring_with_room_for_all_that_waits_keeps_every_link_busy(hops: int, routing: str) -> None:
    """With less room injection fills the ring, and links wait for room: slower, but never beyond the load."""
    ring = torus([9], capacity=RATE)
    size = 100 * 2048
    shift = send(*((rank, (rank + hops) % 9, size, 0.0) for rank in range(9)))
    roomy, tight = (
        simulate(
            ring, on_each(ring), shift, CostModel(routing=routing), options=Options(buffer_bytes=room * 2048)
        )
        for room in (128, 2)
    )
    least = hops * size / RATE
    assert roomy.completion_seconds == pytest.approx(least, rel=0.01)
    assert least <= tight.completion_seconds <= 3 * least
    np.testing.assert_array_equal(roomy.link_bytes, tight.link_bytes)


def test_all_to_all_on_one_switch_keeps_all_cables_busy() -> None:
    fabric, size = star(8), 32 * 2048
    found = simulate(fabric, on_each(fabric), from_profile(all_to_all(8, size)))
    assert found.completion_seconds == pytest.approx(7 * size / RATE + 2 * LATENCY, rel=0.01)


def test_all_to_all_on_a_non_blocking_fat_tree_comes_near_the_cables_of_the_hosts() -> None:
    fabric = k_ary_n_tree(4, 2, capacity=RATE)
    ranks, size = len(fabric.hosts), 16 * 2048
    messages = from_profile(all_to_all(ranks, size))
    found = simulate(fabric, on_each(fabric), messages, CostModel(routing="up-down"))
    least = (ranks - 1) * size / RATE
    assert least <= found.completion_seconds <= 1.6 * least


@pytest.mark.parametrize("routing", ["dimension-order", "minimal-adaptive"])
def test_uniform_traffic_on_a_torus_keeps_to_its_bisection_and_to_its_worst_link(routing: str) -> None:
    fabric = torus([8, 8], capacity=RATE)
    profile = uniform(64, 16 * 2048)
    messages = from_profile(profile, 16, barrier=False)
    options = Options(lanes=2, buffer_bytes=16 * 2048)
    found = simulate(fabric, on_each(fabric), messages, CostModel(routing=routing), options=options)
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
    fabric, size = star(4), 8 * 2048
    profile = Profile.from_edges([0, 1, 2], [1, 2, 3], [4 * size, 4 * size, 0], ranks=4)
    found = simulate(fabric, on_each(fabric), from_profile(profile, 4))
    assert found.completion_seconds == pytest.approx(4 * (size / RATE + 2 * LATENCY), rel=1e-9)
    free: Simulation = simulate(fabric, on_each(fabric), from_profile(profile, 4, barrier=False))
    assert free.completion_seconds == pytest.approx(4 * size / RATE + 2 * LATENCY, rel=1e-9)


def test_small_buffers_and_long_links_cost_throughput_as_credits_come_back_late() -> None:
    """One packet of room: each waits for the room of the one before, a link's latency there and back."""
    fabric, many = star(2), 100
    options = Options(buffer_bytes=2048, latency_seconds=1e-5)
    found = simulate(fabric, on_each(fabric), send((0, 1, many * 2048, 0.0)), options=options)
    assert found.completion_seconds == pytest.approx(many * (2048 / RATE + 2e-5), rel=0.02)


def test_a_packet_that_waited_takes_the_lane_with_most_room() -> None:
    """By hand, with two lanes and 10 ns a link; a packet takes 2.048 us.

    The first packet loads the cable to host 2. The second stops behind it, in the buffer of a lane between
    the switches. The third waits until the second has left that link; then it takes the other, empty lane,
    is not stopped, and arrives two packets and three links after the start.
    """
    switch_of_host = [5, 5, 6, 6, 6]
    tail, head = [*range(5), 5], [*switch_of_host, 6]
    fabric = Fabric.from_arcs(
        [f"v{vertex}" for vertex in range(7)],
        tail + head,
        head + tail,
        RATE,
        slots=[1] * 5 + [0] * 2,
        forwards=[False] * 5 + [True] * 2,
    )
    sent = send((0, 2, 2048, 0.0), (1, 3, 2048, 0.0), (4, 2, 2048, 0.0))
    options = Options(lanes=2, latency_seconds=1e-8, every=1)
    found = simulate(fabric, on_each(fabric), sent, options=options)
    wanted = [2.048e-6 + 2e-8, 2 * 2.048e-6 + 3e-8, 2 * 2.048e-6 + 2e-8]
    assert sorted(found.delivered_at.tolist()) == pytest.approx(sorted(wanted), rel=1e-9)
