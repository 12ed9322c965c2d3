"""Runs of a simulation as a whole: repeatable, cut anywhere, interrupted, empty, refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ingest.generate.fat_trees import k_ary_n_tree
from ingest.generate.tori import torus
from mapping.distances.cost_model import CostModel
from mapping.simulation import levels
from mapping.simulation.channels import build_channel_routes
from mapping.simulation.messages import Messages, from_profile
from mapping.simulation.options import Options
from mapping.simulation.simulate import default_routing, simulate
from registry.errors import (
    DisconnectedAllocation,
    InvalidPlacement,
    InvalidValue,
    UnknownName,
)
from registry.model import Fabric, Placement, Profile, Simulation
from tests.support.infiniband_data import infiniband
from tests.support.slow_simulation import placed

MODES = ["packets", "flits"]


def fabric_and_traffic() -> tuple[Fabric, Placement, Messages]:
    fabric = k_ary_n_tree(4, 2, capacity=1e9)
    generator = np.random.default_rng(7)
    ranks = len(fabric.hosts)
    source, target = generator.integers(ranks, size=(2, 400))
    profile = Profile.from_edges(source, target, generator.integers(1, 9000, 400), ranks=ranks)
    return fabric, placed(fabric, fabric.hosts.tolist()), from_profile(profile, 3)


def fields(found: Simulation) -> list[Any]:
    """All fields, arrays as bytes."""
    values = [getattr(found, name) for name in found.__slots__]
    return [value.tobytes() if isinstance(value, np.ndarray) else value for value in values]


@pytest.mark.parametrize("mode", MODES)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(mode: str) -> None:
    fabric, placement, messages = fabric_and_traffic()
    one, again, other = (
        simulate(
            fabric,
            placement,
            messages,
            CostModel(routing="up-down"),
            mode=mode,
            seed=seed,
            options=Options(every=100),
        )
        for seed in (1, 1, 2)
    )
    assert fields(one) == fields(again)
    assert one.link_bytes.tobytes() != other.link_bytes.tobytes()


@pytest.mark.parametrize("mode", MODES)
def test_how_a_run_is_cut_into_slices_changes_nothing(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fabric, placement, messages = fabric_and_traffic()
    whole = simulate(fabric, placement, messages, mode=mode)
    monkeypatch.setattr(levels, "EVENTS", 7)
    monkeypatch.setattr(levels, "CYCLES", 3)
    assert fields(simulate(fabric, placement, messages, mode=mode)) == fields(whole)


@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_keeps_what_was_delivered(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fabric, placement, messages = fabric_and_traffic()
    monkeypatch.setattr(levels, "EVENTS", 100)
    monkeypatch.setattr(levels, "CYCLES", 20)
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
    assert float((found.latency_over_time * counts).sum() / counts.sum()) == pytest.approx(
        found.mean_latency_seconds
    )
    assert (np.diff(found.latency_seconds) >= 0).all()


@pytest.mark.parametrize("mode", MODES)
def test_no_messages_and_one_rank_take_no_time(mode: str) -> None:
    fabric = torus([3])
    none = from_profile(Profile.from_edges([], [], [], ranks=1))
    found = simulate(fabric, placed(fabric, [2]), none, mode=mode)
    assert (found.completion_seconds, found.messages, found.packet_hops) == (0.0, 0, 0)
    assert found.complete
    assert len(found.delivered) == 0


@pytest.mark.parametrize("mode", MODES)
def test_ranks_of_one_host_need_no_network(mode: str) -> None:
    fabric = torus([3], slots=4)
    sent = from_profile(Profile.from_edges([0, 1], [1, 0], [500, 700], ranks=2), 2)
    found = simulate(fabric, placed(fabric, [1, 1]), sent, mode=mode)
    assert (found.completion_seconds, found.messages, found.delivered_bytes) == (0.0, 4, 1200.0)
    assert not found.link_bytes.any()


def test_a_rank_waits_for_its_message_before_and_what_is_local_waits_too() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1000.0, slots=4)
    sent = Messages(
        np.zeros(2, np.int32),
        np.array([2, 1], np.int32),
        np.array([500, 8]),
        np.zeros(2),
        np.zeros(2, np.int32),
    )
    options = Options(latency_seconds=0.25)
    found = simulate(
        fabric,
        placed(fabric, [0, 0, 1]),
        sent,
        CostModel(routing="shortest-paths"),
        options=replace(options, every=1),
    )
    assert found.delivered_at.tolist() == [0.5, 0.75]  # the local one as soon as the other has left
    assert found.delivered.tolist() == [8.0, 508.0]


def test_by_default_complete_tables_are_followed() -> None:
    assert default_routing(infiniband("fattree2-64-traffic")) == "tables"
    assert default_routing(torus([3])) == "minimal-adaptive"


def test_more_lanes_let_packets_past_one_that_waits() -> None:
    """Head-of-line blocking: with one lane the packet for a free host stands behind those for a busy one."""
    fabric = Fabric.from_arcs(
        ["a", "b", "c", "d", "s", "t"],
        [0, 1, 4, 5, 5, 4, 4, 5, 2, 3],
        [4, 4, 5, 2, 3, 0, 1, 4, 5, 5],
        [100.0, 100.0, 100.0, 1.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0],
        slots=[1] * 4 + [0] * 2,
        forwards=[False] * 4 + [True] * 2,
    )
    ends, none = np.arange(2, dtype=np.int32), np.zeros(2, np.int32)
    sent = Messages(ends, ends + 2, np.full(2, 100), np.array([0.0, 20.0]), none)
    placement = placed(fabric, [0, 1, 2, 3])
    times = []
    for lanes in (1, 2):
        options = Options(packet_bytes=100, buffer_bytes=100, lanes=lanes, latency_seconds=0.0)
        found = simulate(
            fabric, placement, sent, CostModel(routing="shortest-paths"), options=replace(options, every=1)
        )
        times.append(found.delivered_at.tolist())
    assert times == [[100.0, 101.0], [21.0, 100.0]]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"packet_bytes": 0}, "packet_bytes"),
        ({"packet_bytes": 1 << 30}, "packet_bytes"),
        ({"flit_bytes": 1 << 30}, "flit_bytes"),
        ({"lanes": 0}, "lanes"),
        ({"lanes": 1_000_000}, "lanes"),
        ({"latency_seconds": -1.0}, "latency_seconds"),
        ({"latency_seconds": np.zeros(2)}, "latency_seconds"),
        ({"buffer_bytes": 100}, "buffer_bytes"),
        ({"buffer_bytes": 10**30}, "buffer_bytes"),
        ({"buffer_bytes": np.zeros(2)}, "buffer_bytes"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], field: str) -> None:
    fabric, placement, messages = fabric_and_traffic()
    with pytest.raises(InvalidValue, match=f"simulate.{field}"):
        simulate(fabric, placement, messages, options=Options(**options))


@pytest.mark.parametrize("options", [{"buffer_bytes": 7}, {"latency_seconds": 1.0}])
def test_flits_need_room_for_one_and_latencies_of_not_too_many_cycles(options: dict[str, Any]) -> None:
    fabric, placement, messages = fabric_and_traffic()
    with pytest.raises(InvalidValue, match=f"simulate.{next(iter(options))}"):
        simulate(fabric, placement, messages, mode="flits", options=Options(**options))


@pytest.mark.parametrize("routing", ["valiant", "ecmp", "no-such-thing", "minimal-adaptive:escape=valiant"])
def test_a_routing_that_is_not_simulated_is_refused(routing: str) -> None:
    fabric, placement, messages = fabric_and_traffic()
    with pytest.raises(UnknownName):
        simulate(fabric, placement, messages, CostModel(routing=routing))


def test_other_names_that_there_are_not_are_refused() -> None:
    fabric, placement, messages = fabric_and_traffic()
    with pytest.raises(UnknownName, match="mode"):
        simulate(fabric, placement, messages, mode="bytes")
    with pytest.raises(UnknownName, match="selection"):
        simulate(fabric, placement, messages, options=Options(selection="best"))
    with pytest.raises(InvalidValue, match="selection"):
        build_channel_routes("minimal-adaptive", fabric, fabric.hosts, selection="fixed")
    for every in (0, 10**20):
        with pytest.raises(InvalidValue, match="every"):
            simulate(fabric, placement, messages, options=Options(every=every))


def test_hosts_that_are_not_joined_are_refused() -> None:
    fabric = Fabric.from_arcs(["a", "b", "c"], [0, 1], [1, 0], 1.0)
    sent = from_profile(Profile.from_edges([0], [2], [1], ranks=3))
    with pytest.raises(DisconnectedAllocation):
        simulate(fabric, placed(fabric, [0, 1, 2]), sent)


def test_a_vertex_outside_the_fabric_is_refused() -> None:
    large, small = torus([4]), torus([3])
    sent = from_profile(Profile.from_edges([0], [1], [1]))
    with pytest.raises(InvalidPlacement, match="vertex 3"):
        simulate(small, placed(large, [0, 3]), sent)
