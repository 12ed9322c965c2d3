"""Runs of a simulation, their messages and memory; times against slow simulators and beside SimGrid."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simgrid import cases as simgrid
from bench.simgrid.__main__ import SCRIPT, VARIANTS, summary
from ingest.generate.direct import irregular, torus
from ingest.generate.trees import k_ary_n_tree
from mapping.distances.cost_model import CostModel
from mapping.simulation import network, replay
from mapping.simulation.kernels import event_queue
from mapping.simulation.kernels.event_queue import LINES, EventLines, EventQueue
from mapping.simulation.messages import (
    Messages,
    Options,
    check_messages,
    from_profile,
    from_trace,
    saturating_scale,
)
from mapping.simulation.network import build_channel_routes
from mapping.simulation.replay import Level, new_level
from mapping.simulation.simulate import HOPS_A_SECOND, default_routing, expected_seconds, simulate
from registry.errors import DeadlockFound, DisconnectedAllocation, InvalidPlacement, InvalidValue, UnknownName
from registry.model import Fabric, Floats, Placement, Profile, Simulation
from registry.model.profile import Trace
from tests.support import slow_simulation
from tests.support.infiniband_data import infiniband
from tests.support.kernels import from_python
from tests.support.slow_simulation import Case, cases, placed, send
from tests.support.small_fabrics import cabled, profiles
from tests.support.sure import sure

MODES = ["packets", "flits"]


def fabric_and_traffic() -> tuple[Fabric, Placement, Messages]:
    fabric = k_ary_n_tree(4, 2, capacity=1e9)
    generator = np.random.default_rng(7)
    ranks = len(fabric.hosts)
    source, target = generator.integers(ranks, size=(2, 400))
    profile = Profile.from_edges(source, target, generator.integers(1, 9000, 400), ranks=ranks)
    return fabric, placed(fabric, fabric.hosts.tolist()), from_profile(profile, 3)


def fields(found: Simulation) -> list[Any]:
    values = [getattr(found, name) for name in found.__slots__]
    return [value.tobytes() if isinstance(value, np.ndarray) else value for value in values]


@pytest.mark.parametrize("mode", MODES)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(mode: str) -> None:
    fabric, placement, messages = fabric_and_traffic()
    costs = CostModel(routing="up-down")
    one, again, other = (
        simulate(fabric, placement, messages, costs, mode=mode, seed=seed, options=Options(every=100))
        for seed in (1, 1, 2)
    )
    assert fields(one) == fields(again)
    assert one.link_bytes.tobytes() != other.link_bytes.tobytes()


@pytest.mark.parametrize("mode", MODES)
def test_how_a_run_is_cut_into_slices_changes_nothing(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fabric, placement, messages = fabric_and_traffic()
    whole = simulate(fabric, placement, messages, mode=mode)
    monkeypatch.setattr(replay, "EVENTS", 7)
    monkeypatch.setattr(replay, "CYCLES", 3)
    assert fields(simulate(fabric, placement, messages, mode=mode)) == fields(whole)


@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_keeps_what_was_delivered(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fabric, placement, messages = fabric_and_traffic()
    monkeypatch.setattr(replay, "EVENTS", 100)
    monkeypatch.setattr(replay, "CYCLES", 20)
    seen: list[float] = []

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        assert (phase, total) == ("simulating", len(messages.rank))
        seen.append(done)
        if done > 50:
            raise KeyboardInterrupt

    found = simulate(fabric, placement, messages, mode=mode, progress=progress)
    assert not found.complete
    assert 50 < found.messages == seen[-1] < len(messages.rank)
    assert seen == sorted(seen)
    assert float(found.link_utilisation.max()) <= 1 + 1e-9
    assert found.delivered[-1] == found.delivered_bytes


@pytest.mark.parametrize("mode", MODES)
def test_traffic_over_time_has_a_point_for_so_many_messages_and_ends_with_all(mode: str) -> None:
    fabric, placement, messages = fabric_and_traffic()
    found = simulate(fabric, placement, messages, mode=mode, options=Options(every=100))
    assert len(found.delivered) == -(-len(messages.rank) // 100)
    assert found.delivered[-1] == found.delivered_bytes == messages.bytes.sum()
    assert found.delivered_at[-1] == found.completion_seconds
    counts = np.diff(np.r_[np.arange(0, len(messages.rank), 100), len(messages.rank)])
    mean = float((found.latency_over_time * counts).sum() / counts.sum())
    assert mean == pytest.approx(found.mean_latency_seconds)
    assert (np.diff(found.latency_seconds) >= 0).all()


@pytest.mark.parametrize("mode", MODES)
def test_no_messages_and_ranks_of_one_host_take_no_time(mode: str) -> None:
    fabric = torus([3], slots=4)
    none = from_profile(Profile.from_edges([], [], [], ranks=1))
    found = simulate(fabric, placed(fabric, [2]), none, mode=mode)
    assert (found.completion_seconds, found.messages, found.packet_hops) == (0.0, 0, 0)
    assert (found.complete, len(found.delivered)) == (True, 0)
    local = from_profile(Profile.from_edges([0, 1], [1, 0], [500, 700], ranks=2), 2)
    found = simulate(fabric, placed(fabric, [1, 1]), local, mode=mode)
    assert (found.completion_seconds, found.messages, found.delivered_bytes) == (0.0, 4, 1200.0)
    assert not found.link_bytes.any()


def test_more_lanes_let_packets_past_one_that_waits() -> None:
    """Head-of-line blocking: with one lane the packet for a free host stands behind those for a busy one."""
    fabric = cabled("0-4 1-4 4-5 5-2 5-3", 4, [100.0, 100.0, 100.0, 1.0, 100.0])
    sent, placement = send((0, 2, 100, 0.0), (1, 3, 100, 20.0)), placed(fabric, [0, 1, 2, 3])
    costs = CostModel(routing="shortest-paths")
    times = []
    for lanes in (1, 2):
        options = Options(packet_bytes=100, buffer_bytes=100, lanes=lanes, latency_seconds=0.0, every=1)
        times.append(simulate(fabric, placement, sent, costs, options=options).delivered_at.tolist())
    assert times == [[100.0, 101.0], [21.0, 100.0]]


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("packets", {"packet_bytes": 0}),
        ("packets", {"packet_bytes": 1 << 30}),
        ("packets", {"flit_bytes": 1 << 30}),
        ("packets", {"lanes": 0}),
        ("packets", {"lanes": 1_000_000}),
        ("packets", {"latency_seconds": -1.0}),
        ("packets", {"latency_seconds": np.zeros(2)}),
        ("packets", {"buffer_bytes": 100}),
        ("packets", {"buffer_bytes": 10**30}),
        ("packets", {"buffer_bytes": np.zeros(2)}),
        ("packets", {"every": 0}),
        ("packets", {"every": 10**20}),
        ("flits", {"buffer_bytes": 7}),  # no room for one flit
        ("flits", {"latency_seconds": 1.0}),  # too many cycles
    ],
)
def test_options_out_of_range_are_refused(mode: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match=f"simulate.{next(iter(options))}"):
        simulate(*fabric_and_traffic(), mode=mode, options=Options(**options))


def test_names_that_there_are_not_are_refused_and_by_default_complete_tables_are_followed() -> None:
    assert default_routing(infiniband("fattree2-64-traffic")) == "tables"
    assert default_routing(torus([3])) == "minimal-adaptive"
    fabric, placement, messages = fabric_and_traffic()
    for routing in ("valiant", "ecmp", "no-such-thing", "minimal-adaptive:escape=valiant"):
        with pytest.raises(UnknownName):
            simulate(fabric, placement, messages, CostModel(routing=routing))
    with pytest.raises(UnknownName, match="mode"):
        simulate(fabric, placement, messages, mode="bytes")
    with pytest.raises(UnknownName, match="selection"):
        simulate(fabric, placement, messages, options=Options(selection="best"))
    with pytest.raises(InvalidValue, match="selection"):
        build_channel_routes("minimal-adaptive", fabric, fabric.hosts, selection="fixed")


def test_hosts_that_are_not_joined_or_outside_the_fabric_are_refused() -> None:
    fabric = Fabric.from_arcs(["a", "b", "c"], [0, 1], [1, 0], 1.0)
    with pytest.raises(DisconnectedAllocation):
        simulate(fabric, placed(fabric, [0, 1, 2]), send((0, 2, 1, 0.0)))
    with pytest.raises(InvalidPlacement, match="vertex 3"):
        simulate(torus([3]), placed(torus([4]), [0, 3]), send((0, 1, 1, 0.0)))


TIGHT = {
    "packets": Options(packet_bytes=64, buffer_bytes=64),
    "flits": Options(packet_bytes=64, buffer_bytes=16, flit_bytes=8),
}
"""A buffer holds one packet, or two flits of eight."""


def run_tight(fabric: Fabric, messages: Messages, routing: str, mode: str) -> Simulation:
    placement = placed(fabric, fabric.hosts.tolist())
    return simulate(fabric, placement, messages, CostModel(routing=routing), mode=mode, options=TIGHT[mode])


SHIFTED = send(*((rank, (rank + 2) % 5, 1000, 0.0) for rank in range(5)))
"""Every rank sends to the second after it."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("routing", ["shortest-paths", "minimal-adaptive:escape=none"])
def test_a_ring_without_escape_locks_and_the_links_are_named(mode: str, routing: str) -> None:
    with pytest.raises(DeadlockFound, match="wait for each other") as caught:
        run_tight(torus([5]), SHIFTED, routing, mode)
    assert caught.value.links == ("n0 -> n1", "n1 -> n2", "n2 -> n3", "n3 -> n4", "n4 -> n0")
    assert (caught.value.messages, caught.value.delivered) == (5, 0)


@pytest.mark.parametrize("mode", ["packets", "flits"])
@pytest.mark.parametrize("routing", ["dimension-order", "minimal-adaptive", "up-down"])
def test_the_same_ring_is_free_with_two_classes_or_escapes_or_a_tree(mode: str, routing: str) -> None:
    assert run_tight(torus([5]), SHIFTED, routing, mode).messages == 5


@st.composite
def traffic(draw: st.DrawFn, ranks: int) -> Messages:
    ends = st.integers(0, ranks - 1)
    sent = draw(st.lists(st.tuples(ends, ends, st.integers(0, 600)), min_size=1, max_size=60))
    profile = Profile.from_edges(*zip(*sent, strict=True), ranks=ranks)
    return from_profile(profile)


@pytest.mark.parametrize("deterministic", ["dimension-order", "up-down"])
@given(data=st.data(), mode=st.sampled_from(["packets", "flits"]), adaptive=st.booleans())
def test_tori_and_irregular_networks_deliver_everything_whatever_is_sent(
    deterministic: str, data: st.DataObject, mode: str, adaptive: bool
) -> None:
    if deterministic == "dimension-order":
        fabric = torus([4, 3])
    else:
        fabric = irregular(8, hosts=2, seed=data.draw(st.integers(0, 9)))
    messages = data.draw(traffic(len(fabric.hosts)))
    found = run_tight(fabric, messages, "minimal-adaptive" if adaptive else deterministic, mode)
    assert found.messages == len(messages.rank)


@pytest.mark.parametrize("mode", ["packets", "flits"])
def test_the_tables_of_a_torus_lock_without_virtual_lanes_as_the_wiring_check_warns(mode: str) -> None:
    """Dimension order in plain tables: what `mapping.checks.checks` finds can happen."""
    fabric = infiniband("torus-4x4x4-dor")
    hosts, generator = fabric.hosts, np.random.default_rng(3)
    source, target = generator.integers(len(hosts), size=(2, 300))
    profile = Profile.from_edges(source, target, generator.integers(0, 5000, 300), ranks=len(hosts))
    placement = placed(fabric, generator.permutation(hosts).tolist())
    messages, costs = from_profile(profile), CostModel(routing="tables")
    with pytest.raises(DeadlockFound) as caught:
        simulate(fabric, placement, messages, costs, mode=mode, options=Options(packet_bytes=64))
    assert len(caught.value.links) == 4
    ends = [link.split(" -> ") for link in caught.value.links]
    assert all(one[1] == after[0] for one, after in zip(ends, ends[1:] + ends[:1], strict=True))


WEIGHTED, EQUAL = VARIANTS
"""With latencies, by which SimGrid weighs flows; and without, where all weigh the same."""
SHARES = {
    "one-link": (1e-6, 2e-4), "two-flows": (1e-3, 1e-3), "ring": (1e-3, 1e-3), "fat-tree": (0.01, 2e-3),
    "uniform-torus": (0.08, 0.05), "parking-lot": (1e-3, 0.121),
}  # fmt: skip
"""How far the last message may be from SimGrid's, as a share of it, and the mean over all.

The mean where SimGrid weighs flows the same: a latency here counts too.
"""


@cache
def record(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((simgrid.RECORDS / f"{name}.json").read_text("utf-8"))
    return found


@cache
def case(name: str) -> simgrid.Case:
    return simgrid.CASES[name]()


@cache
def run(name: str) -> Simulation:
    return simgrid.ours(case(name))


@cache
def theirs(name: str, variant: str) -> dict[str, float]:
    return summary(record(name)[variant])


def mean_of(simulation: Simulation) -> float:
    return float(simulation.delivered_at.mean())


@pytest.mark.parametrize("name", simgrid.CASES)
def test_the_record_is_of_this_case_and_script_and_of_weighted_max_min_fairness(name: str) -> None:
    """A slow reckoning of that model says what SimGrid says: what differs from ours is the model."""
    found = record(name)
    assert found["case"] == simgrid.case_json(case(name))
    version = sure(re.search(r"^VERSION = (\d+)$", SCRIPT.read_text("utf-8"), re.MULTILINE))
    for variant in VARIANTS:
        assert found[variant]["script"] == int(version[1])
        finished = found[variant]["finished_seconds"]
        assert len(finished) == len(found["case"]["messages"])
        mine = slow_simulation.finished_seconds(found["case"], latency=variant == WEIGHTED)
        np.testing.assert_allclose(mine, finished, rtol=1e-9)


@pytest.mark.parametrize("name", simgrid.CASES)
def test_messages_come_when_simgrid_says_and_not_before_the_worst_link_has_carried_all(name: str) -> None:
    last = run(name).completion_seconds
    assert last == pytest.approx(theirs(name, WEIGHTED)["last"], rel=SHARES[name][0])
    assert mean_of(run(name)) == pytest.approx(theirs(name, EQUAL)["mean"], rel=SHARES[name][1])
    if name in ("one-link", "two-flows"):
        finished = np.sort(record(name)[WEIGHTED]["finished_seconds"])
        np.testing.assert_allclose(run(name).delivered_at, finished, rtol=1e-3)
    least = float((run(name).link_bytes / case(name).fabric.links.capacity).max())
    for end in (last, *(theirs(name, variant)["last"] for variant in VARIANTS)):
        assert end >= least * (1 - 1e-9)


def test_a_port_with_one_flow_gets_as_much_as_one_with_four() -> None:
    """Five MiB over a cable: equal flows all end after 5 MiB, here the host alone at its port after two."""
    alone, *others = np.sort(run("parking-lot").delivered_at) * 1e9 / (1 << 20)
    assert alone == pytest.approx(2.0, rel=2e-3)
    np.testing.assert_allclose(others, 5.0, rtol=2e-3)
    assert theirs("parking-lot", EQUAL)["mean"] * 1e9 / (1 << 20) == pytest.approx(5.0)
    ratio = mean_of(run("parking-lot")) / theirs("parking-lot", EQUAL)["mean"]
    assert ratio == pytest.approx(4.4 / 5, rel=1e-3)


def test_small_buffers_and_one_lane_cost_time_and_large_buffers_let_messages_overlap() -> None:
    """Flows have neither: on the torus two packets a channel are slower than SimGrid, 512 are faster."""

    def relative(lanes: int, packets: int) -> float:
        options = Options(lanes=lanes, buffer_bytes=2048 * packets)
        ended = mean_of(simgrid.ours(replace(case("uniform-torus"), options=options)))
        return ended / theirs("uniform-torus", EQUAL)["mean"]

    assert relative(2, 2) == pytest.approx(1.125, abs=0.03)
    assert relative(2, 16) == pytest.approx(0.959, abs=0.03)
    assert relative(2, 512) == pytest.approx(0.817, abs=0.03)
    assert relative(1, 16) == pytest.approx(1.33, rel=0.05)  # packets wait behind others


def delivered_at(case: Case, *, flits: bool) -> Floats:
    options = Options(
        packet_bytes=case.packet_bytes,
        latency_seconds=np.array(case.latency),
        buffer_bytes=np.array(case.room),
        flit_bytes=1,
    )
    ways = build_channel_routes("shortest-paths", case.fabric, np.unique(case.placement.host_of_rank))
    checked = check_messages(case.messages, case.placement.ranks)
    mode = "flits" if flits else "packets"
    level = new_level(case.fabric, case.placement, checked, ways, options, mode=mode, seed=0)
    while level.advance():
        pass
    assert bool(level.senders.delivered.all())
    order = np.argsort(case.messages.rank, kind="stable")
    found = np.empty(len(order))
    found[order] = checked.ready + level.senders.ranks.latency
    return found


@pytest.mark.parametrize("flits", [False, True], ids=["packets", "flits"])
@given(data=st.data())
def test_messages_arrive_when_the_slow_simulator_says(flits: bool, data: st.DataObject) -> None:
    case = data.draw(cases(whole=flits))
    slow = slow_simulation.slow_flits(case) if flits else slow_simulation.slow_packets(case)
    np.testing.assert_allclose(delivered_at(case, flits=flits), slow, rtol=1e-9)


def trace(*rows: tuple[float, int, int, int]) -> Trace:
    """A trace of (seconds, sender, receiver, bytes) of four ranks."""
    at, sender, receiver, bytes = (np.array(column) for column in zip(*rows, strict=True))
    return Trace(ranks=4, at=at, sender=sender, receiver=receiver, bytes=bytes, tag=np.zeros(len(at), int))


SHORT = ((0.0, 2, 1, 10), (0.5, 0, 1, 20), (0.5, 2, 0, 30), (2.0, 0, 3, 40))


def test_a_trace_keeps_each_ranks_order_and_its_times_are_divided() -> None:
    found = from_trace(trace(*SHORT), 2.0)
    assert found.rank.tolist() == [0, 0, 2, 2]
    assert found.bytes.tolist() == [20, 40, 10, 30]
    assert found.ready.tolist() == [0.25, 1.0, 0.0, 0.25]
    assert not found.round.any()
    at_once = from_trace(trace(*SHORT), math.inf)
    assert not at_once.ready.any()
    assert at_once.bytes.tolist() == [20, 40, 10, 30]
    for scale in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidValue, match="scale"):
            from_trace(trace(*SHORT), scale)


@given(profile=profiles(), rounds=st.integers(1, 5), barrier=st.booleans())
def test_rounds_send_the_bytes_of_the_profile(profile: Profile, rounds: int, barrier: bool) -> None:
    found = check_messages(from_profile(profile, rounds, barrier=barrier), profile.ranks)
    again = Profile.from_edges(found.rank, found.receiver, found.bytes, ranks=profile.ranks)
    np.testing.assert_array_equal(again.indptr, profile.indptr)
    np.testing.assert_array_equal(again.partner, profile.partner)
    np.testing.assert_array_equal(again.bytes, profile.bytes)
    for sender, partner in zip(profile.sender, profile.partner, strict=True):
        sizes = found.bytes[(found.rank == sender) & (found.receiver == partner)]
        assert len(sizes) <= rounds
        assert len(sizes) < rounds or int(sizes.max() - sizes.min()) <= 1


def test_a_rank_begins_with_the_next_one_and_goes_around_and_gaps_space_free_rounds() -> None:
    found = from_profile(Profile.from_edges([1, 1, 1], [0, 2, 3], [4, 4, 4], ranks=4), 2)
    assert (found.receiver.tolist(), found.round.tolist()) == ([2, 3, 0] * 2, [0, 0, 0, 1, 1, 1])
    pair = Profile.from_edges([0], [1], [30], ranks=2)
    free = from_profile(pair, 3, barrier=False, gap_seconds=0.5)
    assert free.ready.tolist() == [0.0, 0.5, 1.0]
    assert not free.round.any()
    for rounds, gap in ((0, 0.0), (-1, 0.0), (1, -1.0), (1, math.inf)):
        with pytest.raises(InvalidValue, match="from_profile"):
            from_profile(pair, rounds, gap_seconds=gap)


GOOD: dict[str, list[float]] = {"rank": [0, 1], "receiver": [1, 0], "bytes": [5, 5]}
GOOD |= {"ready": [0.0, 0.0], "round": [0, 0]}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rank": [0, 2]}, "Messages.rank"),
        ({"receiver": [-1, 0]}, "Messages.receiver"),
        ({"bytes": [5, -5]}, "Messages.bytes"),
        ({"ready": [0.0, math.nan]}, "Messages.ready"),
        ({"ready": [-1.0, 0.0]}, "Messages.ready"),
        ({"round": [0, -1]}, "Messages.round"),
        ({"bytes": [5]}, "Messages.bytes"),
        ({"rank": [0, 0], "round": [1, 0]}, "descends within rank 0"),
        ({"rank": [0, 0], "round": [0, 2]}, "has no messages"),
    ],
)
def test_bad_messages_are_refused_with_the_field(changed: dict[str, list[float]], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        check_messages(Messages(**{name: np.array(given) for name, given in (GOOD | changed).items()}), 2)


def test_at_the_saturating_scale_a_trace_is_offered_in_the_time_that_it_needs() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1e6, slots=2)
    recorded = trace(*((at / 10, 0, 1, 1000) for at in range(101)))

    def run(messages: Messages) -> Simulation:
        return simulate(fabric, placed(fabric, [0, 1, 0, 1]), messages, CostModel(routing="shortest-paths"))

    scale = saturating_scale(recorded, run)
    assert scale == pytest.approx(10.0 / 0.101, rel=1e-3)
    slack = run(from_trace(recorded, scale / 10))
    assert slack.latency(100) == pytest.approx(1e-3, rel=0.01)
    full = run(from_trace(recorded, scale * 10))
    assert full.latency(100) > 50e-3
    with pytest.raises(InvalidValue, match="saturating_scale"):  # a trace of no time
        saturating_scale(trace((0.0, 0, 1, 10)), run)


@pytest.mark.parametrize("mode", MODES)
def test_a_host_that_forwards_nothing_takes_what_a_direct_cable_brings(mode: str) -> None:
    fabric = cabled("0-2 1-2 0-1", 2)
    found = simulate(fabric, placed(fabric, [0, 1]), send((0, 1, 1, 0.0)), mode=mode)
    assert (found.packet_hops, found.link_bytes.sum()) == (1, 1)


def level_of(messages: Messages, mode: str, options: Options) -> Level:
    """Return a simulation over a ring of three that has run to its end."""
    fabric = torus([3], capacity=1e9)
    routes = build_channel_routes("dimension-order", fabric, np.array([0, 1], np.int32))
    level = new_level(fabric, placed(fabric, [0, 1]), messages, routes, options, mode=mode, seed=0)
    while level.advance():
        pass
    assert bool(level.senders.delivered.all())
    return level


@pytest.mark.parametrize("mode", ["packets", "flits"])
def test_memory_is_that_of_packets_in_flight_however_much_is_sent(mode: str) -> None:
    short, long = (
        level_of(from_profile(Profile.from_edges([0], [1], [size], ranks=2)), mode, Options())
        for size in (2048, 3_000_000)
    )
    assert short.room == long.room < 200
    assert long.hops == -(-3_000_000 // (2048 if mode == "packets" else 8))


def test_memory_grows_where_many_small_packets_are_on_their_way() -> None:
    level = level_of(send(*[(0, 1, 0, 0.0)] * 5000), "packets", Options(latency_seconds=1.0))
    assert level.room >= level.hops == 5000


segments = st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), max_size=20)


@pytest.mark.parametrize("alike", [False, True])
@given(found=segments)
def test_segments_keep_channels_and_equal_ones_are_one_set(alike: bool, found: list[tuple[int, ...]]) -> None:
    """Also where the sums of all are equal by chance: these merge nothing."""
    first = np.r_[0, np.cumsum([len(one) for one in found], dtype=np.int64)].astype(np.int64)
    choice = np.array([channel for one in found for channel in one], np.int32)
    with pytest.MonkeyPatch.context() as patch:
        if alike:
            patch.setattr(network, "_mixed", np.ones_like)
        set_of, ptr, kept = network._sets(first, choice)
    assert int(ptr[-1]) == len(kept)
    assert [tuple(kept[ptr[number] : ptr[number + 1]].tolist()) for number in set_of.tolist()] == found
    if not alike:
        assert len(ptr) - 1 == len(set(found))


put_in, put_behind = from_python(event_queue.put_in), from_python(event_queue.put_behind)
soonest, take = from_python(event_queue.soonest), from_python(event_queue.take)
ROOM = 64
HEAP = LINES
"""Where an event of these tests goes: a line's number, or this."""


def put(queue: EventQueue, lines: EventLines, line: int, at: float, what: int) -> None:
    if line == HEAP:
        put_in(queue, at, what)
    else:
        put_behind(queue, lines, line, at, what)


def taken(queue: EventQueue, lines: EventLines) -> tuple[float, int] | None:
    where = soonest(queue, lines)
    return None if where == event_queue.NOTHING else take(queue, lines, where)


steps = st.lists(st.one_of(st.none(), st.tuples(st.integers(0, LINES), st.integers(0, 4))), max_size=ROOM)
"""What is done in turn: an event is taken, or put in so much later than the last that was taken."""


@given(steps=steps, room=st.integers(1, 5))
def test_events_come_out_by_time_and_as_put_in(steps: list[tuple[int, int] | None], room: int) -> None:
    queue, lines = event_queue.new_queue(ROOM), event_queue.new_lines(room)
    waiting: list[tuple[float, int]] = []
    now = 0.0
    for what, step in enumerate([*steps, *[None] * len(steps)]):
        if step is None:
            expected = min(waiting) if waiting else None
            assert taken(queue, lines) == expected
            if expected is not None:
                waiting.remove(expected)
                now = expected[0]
        else:
            line, later = step
            put(queue, lines, line, now + later, what)
            waiting.append((now + later, what))
    assert taken(queue, lines) is None


@given(before=st.integers(0, 3), steps=st.lists(st.integers(0, 2), min_size=1, max_size=4))
def test_wider_ones_hold_the_same_events(before: int, steps: list[int]) -> None:
    queue, lines = event_queue.new_queue(ROOM), event_queue.new_lines(4)
    for what in range(before):  # so that the ring begins elsewhere
        put(queue, lines, 1, 0.0, what)
        assert taken(queue, lines) == (0.0, what)
    for what, later in enumerate(steps):
        put(queue, lines, 1, float(later), what)
    queue, lines = event_queue.wider_queue(queue, 2 * ROOM), event_queue.wider_lines(lines, 8)
    found = [taken(queue, lines) for _ in steps]
    assert found == sorted((float(later), what) for what, later in enumerate(steps))
    assert taken(queue, lines) is None


RING = torus((8,))


def straight(ranks: int, slots: int = 1) -> Placement:
    return Placement.given(RING, np.repeat(RING.hosts, slots)[:ranks].tolist())


def test_parts_of_messages_times_links() -> None:
    profile = Profile.from_edges([0, 0], [1, 3], [5000.0, 2048.0], ranks=8)
    messages = from_profile(profile)
    packets = expected_seconds(RING, straight(8), messages, "packets", Options())
    assert packets * HOPS_A_SECOND["packets"] == pytest.approx(3 * 1 + 1 * 3)
    flits = expected_seconds(RING, straight(8), messages, "flits", Options())
    assert flits * HOPS_A_SECOND["flits"] == pytest.approx(625 + 256 * 3)


def test_ranks_of_one_host_and_no_messages_take_no_time() -> None:
    inside = Profile.from_edges([0], [1], [5000.0], ranks=2)
    assert expected_seconds(RING, straight(2, 2), from_profile(inside), "packets", Options()) == 0.0


def test_hops_are_those_that_a_simulation_counts() -> None:
    fabric = torus((8, 8))
    generator = np.random.default_rng(1)
    ends = generator.integers(0, 64, (300, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    profile = Profile.from_edges(ends[:, 0], ends[:, 1], generator.integers(1, 20_000, len(ends)), ranks=64)
    placement = Placement.given(fabric, fabric.hosts)
    messages = from_profile(profile)
    counted = simulate(fabric, placement, messages).packet_hops
    expected = expected_seconds(fabric, placement, messages, "packets", Options()) * HOPS_A_SECOND["packets"]
    assert expected == pytest.approx(counted, rel=0.1)
