"""Both simulations against slow ones, message by message, on small trees."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from mapping.simulation.channels import build_channel_routes
from mapping.simulation.flit_level import FlitLevel
from mapping.simulation.level import Level, Senders, new_senders
from mapping.simulation.messages import check_messages
from mapping.simulation.options import Options
from mapping.simulation.packet_level import PacketLevel
from registry.model import Floats
from tests.support.slow_simulation import Case, cases, slow_flits, slow_packets


def delivered_at(case: Case, options: Options, *, flits: bool) -> Floats:
    """When each message arrives, in the order of the case."""
    ways = build_channel_routes("shortest-paths", case.fabric, np.unique(case.placement.host_of_rank))
    checked, generator = check_messages(case.messages, case.placement.ranks), np.random.default_rng(0)
    senders: Senders = new_senders(
        ways, case.placement, checked, packet_bytes=case.packet_bytes, every=1, generator=generator
    )
    level: Level
    if flits:
        level = FlitLevel(case.fabric, senders, options, generator, exclusive=False)
    else:
        level = PacketLevel(case.fabric, senders, options, generator)
    while level.advance():
        pass
    assert bool(senders.delivered.all())
    order = np.argsort(case.messages.rank, kind="stable")
    found = np.empty(len(order))
    found[order] = checked.ready + senders.ranks.latency
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
