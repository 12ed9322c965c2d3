"""Define flows on fabrics with one route per pair, for our simulator and for SimGrid.

One rank a host; each sends its messages in their order, the next when the one before has left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench.support.paths import DATA
from ingest.generate.direct import torus
from ingest.options import Options as Reading
from ingest.pipeline import plan
from mapping.distances.cost_model import CostModel
from mapping.routing.catalog import build_routes
from mapping.simulation.messages import Messages, Options, from_profile
from mapping.simulation.simulate import simulate
from registry.model import Allocation, Fabric, Ints, Placement, Profile, Simulation

RECORDS = DATA / "simgrid"
"""A file a case: what it is and what SimGrid said."""
RATE = 1e9
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """Messages of ranks on a fabric."""

    fabric: Fabric
    host_of_rank: Ints
    """int32[ranks]; Vertices, without repeats."""
    messages: Messages
    routing: str
    options: Options


def one_link() -> Case:
    """Return single messages between two hosts through a switch: a byte, a packet, a megabyte."""
    sent = ((0, 1, 1, 0.0), (0, 1, 2048, 1e-3), (0, 1, 1_000_000, 2e-3))
    return _case(_star(2), [0, 1], _messages(*sent), "up-down")


def two_flows() -> Case:
    """Return two hosts that send to a third over its one cable; one sends twice as much."""
    sent = ((0, 2, 4 * MIB, 0.0), (1, 2, 8 * MIB, 0.0))
    return _case(_star(3), [0, 1, 2], _messages(*sent), "up-down")


def ring() -> Case:
    """Return nine hosts on a ring that send to the next, the second or the third one."""
    fabric = torus([9], capacity=RATE)
    sent = [(rank, (rank + 1 + rank % 3) % 9, MIB, 0.0) for rank in range(9)]
    return _case(fabric, range(9), _messages(*sent), "dimension-order")


def fat_tree() -> Case:
    """Return all-to-all of 16 hosts below four leaves of a real fat tree, by its forwarding tables."""
    folder = DATA / "infiniband" / "fattree2-64-traffic"
    paths = [folder / "ibnetdiscover.txt", folder / "opensm-lfts.dump"]
    intake = plan(paths, Reading(cluster="tree"))
    assert intake.fabric is not None
    fabric = replace(intake.fabric, tables=intake.tables)
    hosts = fabric.vertices(tuple(f"node{8 * leaf + place:04}" for leaf in range(4) for place in range(1, 5)))
    pair = np.argwhere(~np.eye(16, dtype=bool))
    profile = Profile.from_edges(pair[:, 0], pair[:, 1], np.full(len(pair), MIB), ranks=16)
    return _case(fabric, hosts, from_profile(profile), "tables")


def uniform() -> Case:
    """Return 64 hosts of an 8 x 8 torus that each send to eight others, drawn at random."""
    fabric = torus([8, 8], capacity=RATE)
    generator = np.random.default_rng(0)
    source = np.repeat(np.arange(64), 8)
    target = (source + generator.integers(1, 64, len(source))) % 64
    profile = Profile.from_edges(source, target, np.full(len(source), MIB / 8), ranks=64)
    options = Options(lanes=2, buffer_bytes=16 * 2048)
    return _case(fabric, range(64), from_profile(profile), "dimension-order", options)


def parking_lot() -> Case:
    """Return four hosts of one switch and one of the next, which all send to a sixth host there."""
    host, switch = list(range(6)), [6, 6, 6, 6, 7, 7]
    fabric = Fabric.from_arcs(
        [f"h{number}" for number in host] + ["first", "second"],
        [*host, *switch, 6, 7],
        [*switch, *host, 7, 6],
        RATE,
        slots=[1] * 6 + [0] * 2,
        forwards=[False] * 6 + [True] * 2,
    )
    return _case(fabric, host, _messages(*((rank, 5, MIB, 0.0) for rank in range(5))), "up-down")


CASES: dict[str, Callable[[], Case]] = {
    "one-link": one_link,
    "two-flows": two_flows,
    "ring": ring,
    "fat-tree": fat_tree,
    "uniform-torus": uniform,
    "parking-lot": parking_lot,
}


def ours(case: Case) -> Simulation:
    """Run our simulator, with a point of traffic for every message."""
    placement = Placement(
        host_of_rank=case.host_of_rank,
        allocation=Allocation.of(case.fabric, case.host_of_rank.tolist(), 1),
        strategy="given",
    )
    return simulate(
        case.fabric,
        placement,
        case.messages,
        CostModel(routing=case.routing),
        options=replace(case.options, every=1),
    )


def case_json(case: Case) -> dict[str, Any]:
    """Return a case as ``with_simgrid`` reads it: hosts, links, the route of each pair, messages."""
    fabric, messages = case.fabric, case.messages
    latency = case.options.latency(len(fabric.links))
    pairs = sorted(set(zip(messages.rank.tolist(), messages.receiver.tolist(), strict=True)))
    return {
        "hosts": [fabric.names[vertex] for vertex in case.host_of_rank.tolist()],
        "links": [list(one) for one in zip(fabric.links.capacity.tolist(), latency.tolist(), strict=True)],
        "routes": [[source, target, way] for (source, target), way in _ways(case, pairs)],
        "messages": [
            list(one)
            for one in zip(
                messages.rank.tolist(),
                messages.receiver.tolist(),
                messages.bytes.tolist(),
                messages.ready.tolist(),
                strict=True,
            )
        ],
    }


def _ways(case: Case, pairs: list[tuple[int, int]]) -> list[tuple[tuple[int, int], list[int]]]:
    """Return the rows of the links between the hosts of each pair of ranks."""
    routes = build_routes(case.routing, case.fabric, case.host_of_rank)
    found = []
    for source, target in pairs:
        carried = routes.link_bytes([source], [target], [1.0])
        way = np.flatnonzero(carried)
        assert bool((carried[way] == 1.0).all()), f"ranks {source} and {target} have several ways"
        found.append(((source, target), way.tolist()))
    return found


def _star(hosts: int) -> Fabric:
    """Return hosts on one switch."""
    host = list(range(hosts))
    return Fabric.from_arcs(
        [f"h{number}" for number in host] + ["switch"],
        host + [hosts] * hosts,
        [hosts] * hosts + host,
        RATE,
        slots=[1] * hosts + [0],
        forwards=[False] * hosts + [True],
    )


def _messages(*sent: tuple[int, int, int, float]) -> Messages:
    rank, receiver, size, ready = zip(*sent, strict=True)
    return Messages(
        rank=np.array(rank, np.int32),
        receiver=np.array(receiver, np.int32),
        bytes=np.array(size, np.int64),
        ready=np.array(ready, np.float64),
        round=np.zeros(len(sent), np.int32),
    )


def _case(
    fabric: Fabric, hosts: Any, messages: Messages, routing: str, options: Options | None = None
) -> Case:
    return Case(
        fabric=fabric,
        host_of_rank=np.array(list(hosts), np.int32),
        messages=messages,
        routing=routing,
        options=options or Options(),
    )
