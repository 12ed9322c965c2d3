"""Deadlock: found and named where a routing allows it, and never where it does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.irregular import irregular
from ingest.generate.tori import torus
from mapping.distances.cost_model import CostModel
from mapping.simulation.messages import Messages, from_profile
from mapping.simulation.options import Options
from mapping.simulation.simulate import simulate
from registry.errors import DeadlockFound
from registry.model import Profile
from tests.support.infiniband_data import infiniband
from tests.support.slow_simulation import placed

TIGHT = {
    "packets": Options(packet_bytes=64, buffer_bytes=64),
    "flits": Options(packet_bytes=64, buffer_bytes=16, flit_bytes=8),
}
"""A buffer holds one packet, or two flits of eight."""


def shifted(ranks: int, by: int, size: int) -> Messages:
    """Every rank sends to the one so many further on."""
    rank = np.arange(ranks, dtype=np.int32)
    receiver = ((rank + by) % ranks).astype(np.int32)
    return Messages(rank, receiver, np.full(ranks, size), np.zeros(ranks), np.zeros(ranks, np.int32))


@pytest.mark.parametrize("mode", ["packets", "flits"])
@pytest.mark.parametrize("routing", ["shortest-paths", "minimal-adaptive:escape=none"])
def test_a_ring_without_escape_locks_and_the_links_are_named(mode: str, routing: str) -> None:
    ring = torus([5])
    messages = shifted(5, 2, 1000)
    with pytest.raises(DeadlockFound, match="wait for each other") as caught:
        simulate(
            ring,
            placed(ring, list(range(5))),
            messages,
            CostModel(routing=routing),
            mode=mode,
            options=TIGHT[mode],
        )
    assert caught.value.links == ("n0 -> n1", "n1 -> n2", "n2 -> n3", "n3 -> n4", "n4 -> n0")
    assert caught.value.messages == 5
    assert caught.value.delivered == 0


@pytest.mark.parametrize("mode", ["packets", "flits"])
@pytest.mark.parametrize("routing", ["dimension-order", "minimal-adaptive", "up-down"])
def test_the_same_ring_is_free_with_two_classes_or_escapes_or_a_tree(mode: str, routing: str) -> None:
    ring = torus([5])
    messages = shifted(5, 2, 1000)
    found = simulate(
        ring,
        placed(ring, list(range(5))),
        messages,
        CostModel(routing=routing),
        mode=mode,
        options=TIGHT[mode],
    )
    assert found.messages == 5


@st.composite
def traffic(draw: st.DrawFn, ranks: int) -> Messages:
    """Random messages, all at once."""
    ends = st.integers(0, ranks - 1)
    sent = draw(st.lists(st.tuples(ends, ends, st.integers(0, 600)), min_size=1, max_size=60))
    profile = Profile.from_edges(*zip(*sent, strict=True), ranks=ranks)
    return from_profile(profile)


@given(messages=traffic(12), mode=st.sampled_from(["packets", "flits"]), adaptive=st.booleans())
def test_tori_deliver_everything_whatever_is_sent(messages: Messages, mode: str, adaptive: bool) -> None:
    fabric = torus([4, 3])
    routing = "minimal-adaptive" if adaptive else "dimension-order"
    found = simulate(
        fabric,
        placed(fabric, list(range(12))),
        messages,
        CostModel(routing=routing),
        mode=mode,
        options=TIGHT[mode],
    )
    assert found.messages == len(messages.rank)


@given(
    messages=traffic(16),
    mode=st.sampled_from(["packets", "flits"]),
    adaptive=st.booleans(),
    seed=st.integers(0, 9),
)
def test_irregular_networks_deliver_everything_whatever_is_sent(
    messages: Messages, mode: str, adaptive: bool, seed: int
) -> None:
    fabric = irregular(8, hosts=2, seed=seed)
    routing = "minimal-adaptive" if adaptive else "up-down"
    found = simulate(
        fabric,
        placed(fabric, fabric.hosts.tolist()),
        messages,
        CostModel(routing=routing),
        mode=mode,
        options=TIGHT[mode],
    )
    assert found.messages == len(messages.rank)


@pytest.mark.parametrize("mode", ["packets", "flits"])
def test_the_tables_of_a_torus_lock_without_virtual_lanes_as_the_wiring_check_warns(mode: str) -> None:
    """Dimension order in plain tables: what `mapping.checks.forwarding_tables` finds can happen."""
    fabric = infiniband("torus-4x4x4-dor")
    hosts, generator = fabric.hosts, np.random.default_rng(3)
    source, target = generator.integers(len(hosts), size=(2, 300))
    profile = Profile.from_edges(source, target, generator.integers(0, 5000, 300), ranks=len(hosts))
    placement = placed(fabric, generator.permutation(hosts).tolist())
    with pytest.raises(DeadlockFound) as caught:
        simulate(
            fabric,
            placement,
            from_profile(profile),
            CostModel(routing="tables"),
            mode=mode,
            options=Options(packet_bytes=64),
        )
    assert len(caught.value.links) == 4
    ends = [link.split(" -> ") for link in caught.value.links]
    assert all(one[1] == after[0] for one, after in zip(ends, ends[1:] + ends[:1], strict=True))
