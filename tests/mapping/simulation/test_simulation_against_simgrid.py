"""Simulated times beside those of SimGrid's flow model, recorded by ``python -m bench.simgrid``.

Where they differ and why: docs/explanation/simulation.md.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from bench.simgrid.__main__ import SCRIPT, VARIANTS, summary
from bench.simgrid.cases import CASES, RECORDS, Case, case_json, ours
from mapping.simulation.options import Options
from registry.model import Simulation
from tests.support.max_min_flows import finished_seconds

WEIGHTED, EQUAL = VARIANTS
"""With latencies, by which SimGrid weighs flows; and without, where all weigh the same."""
LAST = {
    "one-link": 1e-6,
    "two-flows": 1e-3,
    "ring": 1e-3,
    "fat-tree": 0.01,
    "uniform-torus": 0.08,
    "parking-lot": 1e-3,
}
"""How far the last message may be from SimGrid's, as a share of it."""
MEAN = {
    "one-link": 2e-4,
    "two-flows": 1e-3,
    "ring": 1e-3,
    "fat-tree": 2e-3,
    "uniform-torus": 0.05,
    "parking-lot": 0.121,
}
"""The same of the mean over all, where SimGrid weighs them the same: a latency here counts too."""
BUFFERS = (2, 16, 512)
"""Packets that a channel holds."""


@cache
def record(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDS / f"{name}.json").read_text("utf-8"))
    return found


@cache
def case(name: str) -> Case:
    return CASES[name]()


@cache
def run(name: str) -> Simulation:
    return ours(case(name))


@cache
def theirs(name: str, variant: str) -> dict[str, float]:
    return summary(record(name)[variant])


def mean(simulation: Simulation) -> float:
    return float(simulation.delivered_at.mean())


@pytest.mark.parametrize("name", CASES)
def test_the_record_is_of_this_case_and_script(name: str) -> None:
    found = record(name)
    assert found["case"] == case_json(case(name))
    version = re.search(r"^VERSION = (\d+)$", SCRIPT.read_text("utf-8"), re.MULTILINE)
    assert version is not None
    for variant in VARIANTS:
        assert found[variant]["script"] == int(version[1])
        assert len(found[variant]["finished_seconds"]) == len(found["case"]["messages"])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", CASES)
def test_simgrid_shares_links_by_weighted_max_min_fairness(name: str, variant: str) -> None:
    """A slow reckoning of that model says what SimGrid says: what differs from ours is the model."""
    found = record(name)
    mine = finished_seconds(found["case"], latency=variant == WEIGHTED)
    np.testing.assert_allclose(mine, found[variant]["finished_seconds"], rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_last_message_comes_when_simgrid_says(name: str) -> None:
    assert run(name).completion_seconds == pytest.approx(theirs(name, WEIGHTED)["last"], rel=LAST[name])


@pytest.mark.parametrize("name", CASES)
def test_messages_come_when_simgrid_says_on_average(name: str) -> None:
    assert mean(run(name)) == pytest.approx(theirs(name, EQUAL)["mean"], rel=MEAN[name])


@pytest.mark.parametrize("name", ["one-link", "two-flows"])
def test_each_message_comes_when_simgrid_says(name: str) -> None:
    finished = np.sort(record(name)[WEIGHTED]["finished_seconds"])
    np.testing.assert_allclose(run(name).delivered_at, finished, rtol=1e-3)


@pytest.mark.parametrize("name", CASES)
def test_nobody_delivers_sooner_than_the_worst_link_takes(name: str) -> None:
    links = case(name).fabric.links
    least = float((run(name).link_bytes / links.capacity).max())
    for last in (run(name).completion_seconds, *(theirs(name, variant)["last"] for variant in VARIANTS)):
        assert last >= least * (1 - 1e-9)


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


def test_small_buffers_cost_time_and_large_ones_let_messages_overlap() -> None:
    """Flows have neither: on the torus two packets a channel are slower than SimGrid, 512 are faster."""
    torus = case("uniform-torus")
    options = [Options(lanes=2, buffer_bytes=2048 * packets) for packets in BUFFERS]
    means = [mean(ours(replace(torus, options=one))) for one in options]
    tight, some, roomy = (value / theirs("uniform-torus", EQUAL)["mean"] for value in means)
    assert tight == pytest.approx(1.125, abs=0.03)
    assert some == pytest.approx(0.959, abs=0.03)
    assert roomy == pytest.approx(0.817, abs=0.03)


def test_packets_behind_others_that_wait_cost_time_with_one_lane() -> None:
    torus = case("uniform-torus")
    alone = ours(replace(torus, options=Options(lanes=1, buffer_bytes=16 * 2048)))
    assert mean(alone) == pytest.approx(1.33 * theirs("uniform-torus", EQUAL)["mean"], rel=0.05)
