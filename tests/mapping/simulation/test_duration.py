"""The expected time of a simulation: hops by hand, and those that a simulation counts."""

from __future__ import annotations

import numpy as np
import pytest

from ingest.generate.tori import torus
from mapping.simulation.duration import HOPS_A_SECOND, expected_seconds
from mapping.simulation.messages import from_profile
from mapping.simulation.options import Options
from mapping.simulation.simulate import simulate
from registry import Profile
from registry.model import Placement

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
