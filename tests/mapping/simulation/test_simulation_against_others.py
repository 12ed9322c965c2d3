"""Simulated times, message by message: against slow simulators, and beside those of SimGrid's flow model.

The latter are recorded by ``python -m bench.simgrid``; where they differ and why:
docs/explanation/simulation.md.
"""

from __future__ import annotations

import json
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
from mapping.simulation.channels import build_channel_routes
from mapping.simulation.levels import new_level
from mapping.simulation.messages import check_messages
from mapping.simulation.options import Options
from registry.model import Floats, Simulation
from tests.support.max_min_flows import finished_seconds
from tests.support.slow_simulation import Case, cases, slow_flits, slow_packets

WEIGHTED, EQUAL = VARIANTS
"""With latencies, by which SimGrid weighs flows; and without, where all weigh the same."""
SHARES = {
    "one-link": (1e-6, 2e-4),
    "two-flows": (1e-3, 1e-3),
    "ring": (1e-3, 1e-3),
    "fat-tree": (0.01, 2e-3),
    "uniform-torus": (0.08, 0.05),
    "parking-lot": (1e-3, 0.121),
}
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


def mean(simulation: Simulation) -> float:
    return float(simulation.delivered_at.mean())


@pytest.mark.parametrize("name", simgrid.CASES)
def test_the_record_is_of_this_case_and_script_and_of_weighted_max_min_fairness(name: str) -> None:
    """A slow reckoning of that model says what SimGrid says: what differs from ours is the model."""
    found = record(name)
    assert found["case"] == simgrid.case_json(case(name))
    version = re.search(r"^VERSION = (\d+)$", SCRIPT.read_text("utf-8"), re.MULTILINE)
    assert version is not None
    for variant in VARIANTS:
        assert found[variant]["script"] == int(version[1])
        finished = found[variant]["finished_seconds"]
        assert len(finished) == len(found["case"]["messages"])
        mine = finished_seconds(found["case"], latency=variant == WEIGHTED)
        np.testing.assert_allclose(mine, finished, rtol=1e-9)


@pytest.mark.parametrize("name", simgrid.CASES)
def test_messages_come_when_simgrid_says_and_not_before_the_worst_link_has_carried_all(name: str) -> None:
    last = run(name).completion_seconds
    assert last == pytest.approx(theirs(name, WEIGHTED)["last"], rel=SHARES[name][0])
    assert mean(run(name)) == pytest.approx(theirs(name, EQUAL)["mean"], rel=SHARES[name][1])
    if name in ("one-link", "two-flows"):
        finished = np.sort(record(name)[WEIGHTED]["finished_seconds"])
        np.testing.assert_allclose(run(name).delivered_at, finished, rtol=1e-3)
    least = float((run(name).link_bytes / case(name).fabric.links.capacity).max())
    for end in (last, *(theirs(name, variant)["last"] for variant in VARIANTS)):
        assert end >= least * (1 - 1e-9)


def test_short_ways_get_more_in_simgrid_where_latencies_weigh() -> None:
    """Ours gives each flow at a port its turn, as long as its way may be."""
    weighted, equal = theirs("ring", WEIGHTED)["mean"], theirs("ring", EQUAL)["mean"]
    assert weighted == pytest.approx(0.778 * equal, rel=1e-3)
    assert mean(run("ring")) == pytest.approx(equal, rel=1e-3)


def test_a_port_with_one_flow_gets_as_much_as_one_with_four() -> None:
    """Five MiB over a cable: equal flows all end after 5 MiB, here the host alone at its port after two."""
    alone, *others = np.sort(run("parking-lot").delivered_at) * 1e9 / (1 << 20)
    assert alone == pytest.approx(2.0, rel=2e-3)
    np.testing.assert_allclose(others, 5.0, rtol=2e-3)
    assert theirs("parking-lot", EQUAL)["mean"] * 1e9 / (1 << 20) == pytest.approx(5.0)
    assert mean(run("parking-lot")) / theirs("parking-lot", EQUAL)["mean"] == pytest.approx(4.4 / 5, rel=1e-3)


def test_small_buffers_and_one_lane_cost_time_and_large_buffers_let_messages_overlap() -> None:
    """Flows have neither: on the torus two packets a channel are slower than SimGrid, 512 are faster."""

    def relative(lanes: int, packets: int) -> float:
        options = Options(lanes=lanes, buffer_bytes=2048 * packets)
        ended = mean(simgrid.ours(replace(case("uniform-torus"), options=options)))
        return ended / theirs("uniform-torus", EQUAL)["mean"]

    assert relative(2, 2) == pytest.approx(1.125, abs=0.03)
    assert relative(2, 16) == pytest.approx(0.959, abs=0.03)
    assert relative(2, 512) == pytest.approx(0.817, abs=0.03)
    assert relative(1, 16) == pytest.approx(1.33, rel=0.05)  # packets wait behind others


def delivered_at(case: Case, *, flits: bool) -> Floats:
    """When each message arrives, in the order of the case."""
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
    slow = slow_flits(case) if flits else slow_packets(case)
    np.testing.assert_allclose(delivered_at(case, flits=flits), slow, rtol=1e-9)
