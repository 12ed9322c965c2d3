"""Both simulations against slow ones, message by message, on small trees."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from mapping.simulation.channels import build_channel_routes
from mapping.simulation.levels import new_level
from mapping.simulation.messages import check_messages
from mapping.simulation.options import Options
from registry.model import Floats
from tests.support.slow_simulation import Case, cases, slow_flits, slow_packets


def delivered_at(case: Case, options: Options, *, flits: bool) -> Floats:
    """When each message arrives, in the order of the case."""
    ways = build_channel_routes("shortest-paths", case.fabric, np.unique(case.placement.host_of_rank))
    checked = check_messages(case.messages, case.placement.ranks)
    level = new_level(
        case.fabric, case.placement, checked, ways, options, mode="flits" if flits else "packets", seed=0
    )
    while level.advance():
        pass
    assert bool(level.senders.delivered.all())
    order = np.argsort(case.messages.rank, kind="stable")
    found = np.empty(len(order))
    found[order] = checked.ready + level.senders.ranks.latency
    return found


@given(case=cases())
def test_packets_arrive_when_the_slow_simulator_says(case: Case) -> None:
    options = Options(
        packet_bytes=case.packet_bytes,
        latency_seconds=np.array(case.latency),
        buffer_bytes=np.array(case.room),
    )
    np.testing.assert_allclose(delivered_at(case, options, flits=False), slow_packets(case), rtol=1e-9)


@given(case=cases(whole=True))
def test_flits_arrive_when_the_slow_simulator_says(case: Case) -> None:
    options = Options(
        packet_bytes=case.packet_bytes,
        flit_bytes=1,
        latency_seconds=np.array(case.latency),
        buffer_bytes=np.array(case.room),
    )
    np.testing.assert_allclose(delivered_at(case, options, flits=True), slow_flits(case), rtol=1e-9)
