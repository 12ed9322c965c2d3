"""Memory of simulations, and the number of links crossed."""

from __future__ import annotations

import numpy as np
import pytest

from ingest.generate.tori import torus
from mapping.simulation.channels import build_channel_routes
from mapping.simulation.levels import Level, new_level
from mapping.simulation.messages import Messages, from_profile
from mapping.simulation.options import Options
from registry.model import Profile
from tests.support.slow_simulation import placed


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
    n = 5000
    none = np.zeros(n, np.int32)
    sent = Messages(none, none + 1, np.zeros(n, np.int64), np.zeros(n), none)
    level = level_of(sent, "packets", Options(latency_seconds=1.0))
    assert level.room >= n
    assert level.hops == n
