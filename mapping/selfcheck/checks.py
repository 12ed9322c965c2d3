"""The checks of the program itself: one line each, with a function of the subject.

Placements and lower bounds of small cases beside all placements, tried one by one.

Conservation of bytes: what enters a device and is not for it also leaves it.

Load of every link: the routing kernels beside an enumeration of paths, pair of hosts by pair of hosts.

Equivalent distances beside the resistance distances of networkx (Orduña et al. 2004, section 3).

Waiting times of an M/D/1 queue: the packet simulator beside Lindley's recursion.

Packets of one size arrive at random at a switch and leave over one cable. Packet k leaves at
``max(arrival[k], departure[k - 1]) + service`` (Lindley 1952), in whatever order packets of different senders
are served, as all take the same time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from mapping.cost.metrics import evaluate
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import EQUIVALENT_2, distances
from mapping.placement.place import place
from mapping.placement.search import SearchOptions
from mapping.routing.catalog import build_routes, choose_routing
from mapping.selfcheck import oracles
from mapping.selfcheck.oracles import TOLERANCE, Comparison, Subject, one_rank_per_host
from mapping.simulation.messages import Messages, Options
from mapping.simulation.simulate import simulate
from registry.catalog import Catalog, Entry
from registry.model import Fabric, Longs, Profile
from registry.progress import Progress, silent

OPTIMA_HOSTS = 5
STEPS = 200_000
CASES = 8
"""Most cases; each tries 120 placements."""
METRICS = {"congestion": "congestion_seconds", "hop-bytes": "hop_bytes"}
"""Objective of the search and the metric it minimises."""


def compare_small_optima(subject: Subject) -> Comparison:
    """Compare the results of searches with the least of all placements, which no bound may exceed."""
    fabric, comparison = subject.fabric, Comparison("searches and bounds")
    routing, _ = choose_routing(fabric)
    costs = CostModel(routing=routing)
    for case in range(CASES):
        hosts = subject.draw_hosts(OPTIMA_HOSTS)
        if not comparison.goes_on(subject) or len(hosts) < 2:
            break
        bytes = subject.generator.integers(1, 1000, (len(hosts),) * 2) * ~np.eye(len(hosts), dtype=bool)
        sender, receiver = np.nonzero(bytes)
        profile = Profile.from_edges(sender, receiver, bytes[sender, receiver], ranks=len(hosts))
        try:
            least = _least(fabric, routing, hosts, bytes)
        except (oracles.TooManyPaths, LookupError):
            comparison.skipped += 1
            continue
        for objective, metric in METRICS.items():
            options = SearchOptions(objective=objective, steps=STEPS, workers=1, seed=case)
            allocation = one_rank_per_host(fabric, hosts).allocation
            placement = place(fabric, profile, allocation, options, costs)
            evaluation = evaluate(fabric, profile, placement, costs=costs, bounds=True)
            comparison.add(f"{objective} of case {case}", float(getattr(evaluation, metric)), least[metric])
            bound = evaluation.bounds[metric].value
            comparison.add(
                f"lower bound of {objective} of case {case}",
                min(bound, least[metric] * (1 + TOLERANCE)),
                bound,
            )
    return comparison


def _least(fabric: Fabric, routing: str, hosts: list[int], bytes: Longs) -> dict[str, float]:
    """Return the least of each metric over all placements, by enumeration of placements and paths."""
    share = np.zeros((len(hosts), len(hosts), len(fabric.links)))
    for i, j in itertools.permutations(range(len(hosts)), 2):
        route = oracles.route(fabric, hosts[i], hosts[j], routing)
        if route is None:
            raise LookupError
        for row, part in route:
            share[i, j, row] += part
    least = dict.fromkeys(METRICS.values(), np.inf)
    for order in itertools.permutations(range(len(hosts))):
        load = np.tensordot(bytes, share[np.ix_(order, order)], 2)
        least["congestion_seconds"] = min(
            least["congestion_seconds"], float((load / fabric.links.capacity).max())
        )
        least["hop_bytes"] = min(least["hop_bytes"], float(load.sum()))
    return least


BYTES_HOSTS = 2_000
"""Most hosts that send."""
PARTNERS = 4
"""Hosts to which each host sends."""


def compare_bytes(subject: Subject) -> Comparison:
    """Compare the bytes that enter every device with those that leave it."""
    fabric, comparison = subject.fabric, Comparison("devices")
    hosts = subject.draw_hosts(BYTES_HOSTS)
    if len(hosts) < 2:
        return comparison
    sender = np.repeat(np.arange(len(hosts)), PARTNERS)
    receiver = (sender + subject.generator.integers(1, len(hosts), len(sender))) % len(hosts)
    bytes = subject.generator.integers(1, 1 << 20, len(sender)).astype(float)
    profile = Profile.from_edges(sender, receiver, bytes, ranks=len(hosts))
    load = evaluate(fabric, profile, one_rank_per_host(fabric, hosts)).link_bytes
    vertex = np.array(hosts)
    enters = np.bincount(fabric.links.target, load, len(fabric))
    leaves = np.bincount(fabric.links.source, load, len(fabric))
    enters += np.bincount(vertex[sender], bytes, len(fabric))
    leaves += np.bincount(vertex[receiver], bytes, len(fabric))
    for device in np.flatnonzero((enters > 0) | (leaves > 0)).tolist():
        comparison.add(f"{fabric.names[device]}, bytes", float(leaves[device]), float(enters[device]))
    return comparison


SELF_CHECKS = Catalog(
    "self-check",
    (
        Entry(
            name="paths",
            target="mapping.selfcheck.checks:compare_paths",
            about="loads of links, by the forwarding tables or all shortest paths, against enumerated paths",
        ),
        Entry(
            name="bytes",
            target="mapping.selfcheck.checks:compare_bytes",
            about="bytes that enter every device against those that leave it",
        ),
        Entry(
            name="resistances",
            target="mapping.selfcheck.checks:compare_resistances",
            about="equivalent distances against the resistance distances of networkx",
        ),
        Entry(
            name="small-optima",
            target="mapping.selfcheck.checks:compare_small_optima",
            about="searches and lower bounds of small cases against all placements",
        ),
        Entry(
            name="waiting-times",
            target="mapping.selfcheck.checks:compare_waiting_times",
            about="the simulator's M/D/1 queue against Lindley's recursion",
        ),
    ),
)
"""All checks."""


def run(
    fabric: Fabric,
    names: Sequence[str] = (),
    *,
    seconds: float = 40.0,
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[tuple[Entry, Comparison]]:
    """Run checks, each with an equal part of the time, and yield each with its result.

    Args:
        names: Checks to run; default: all.
        seconds: Time after which no comparison is started, without the first compilation of kernels.
        seed: Seed by which hosts and traffic are drawn.

    Raises:
        UnknownName: There is no such check.
    """
    chosen = [SELF_CHECKS.find(name) for name in names] or list(SELF_CHECKS)
    for done, entry in enumerate(chosen):
        progress(f"checking {entry.name}", done, len(chosen))
        generator = np.random.default_rng(seed)
        subject = Subject(fabric=fabric, seconds=seconds / len(chosen), generator=generator)
        yield entry, entry.load()(subject)
    progress("checking", len(chosen), len(chosen))


PATHS_HOSTS = 12
"""Most hosts between which pairs are drawn."""


def compare_paths(subject: Subject) -> Comparison:
    """Compare the load that one pair of hosts puts on each link, for one pair after the other."""
    fabric, comparison = subject.fabric, Comparison("loads of links")
    routing, _ = choose_routing(fabric)
    hosts = subject.draw_hosts(PATHS_HOSTS)
    pairs = subject.generator.permutation(list(itertools.permutations(hosts, 2))).tolist()
    for source, target, route in comparison.routes(subject, pairs, routing):
        if route is None:
            comparison.skipped += 1
            continue
        expected = np.zeros(len(fabric.links))
        for row, part in route:
            expected[row] += part
        ranks = hosts.index(source), hosts.index(target)
        profile = Profile.from_edges([ranks[0]], [ranks[1]], [1.0], ranks=len(hosts))
        found = evaluate(fabric, profile, one_rank_per_host(fabric, hosts), costs=CostModel(routing=routing))
        for row in np.flatnonzero((expected > 0) | (found.link_bytes > 0)).tolist():
            name = f"{fabric.names[source]} to {fabric.names[target]}, link {row}"
            comparison.add(name, float(found.link_bytes[row]), float(expected[row]))
    return comparison


RESISTANCE_HOSTS = 8
"""Most hosts between which distances are compared."""


def compare_resistances(subject: Subject) -> Comparison:
    """Compare the distances between a few hosts."""
    fabric, comparison = subject.fabric, Comparison("distances")
    routing, _ = choose_routing(fabric)
    hosts = subject.draw_hosts(RESISTANCE_HOSTS)
    routes = build_routes(routing, fabric, np.array(hosts, np.int32))
    matrix = distances(EQUIVALENT_2, routes).matrix()
    row_of = {host: row for row, host in enumerate(hosts)}
    pairs = itertools.permutations(hosts, 2)
    for source, target, route in comparison.routes(subject, pairs, routing):
        expected = np.inf
        if route is not None:
            rows = sorted({row for row, part in route if part > 0})
            expected = oracles.resistance(fabric, rows, source, target, own_cables=True)
        name = f"{fabric.names[source]} to {fabric.names[target]}"
        comparison.add(name, float(matrix[row_of[source], row_of[target]]), expected)
    return comparison


SENDERS = 4
PACKETS = 5_000
LOAD = 0.8
"""Time that the shared cable is busy, relative to all time."""
BYTES = 2048
"""Size of a packet."""
RATE = 1e9
"""Bytes/s of the shared cable; the cables of the senders are a million times as fast."""
LATENCY = 1e-7
"""Seconds from one end of a link to the other."""


def compare_waiting_times(subject: Subject) -> Comparison:
    """Compare when each packet arrives."""
    service = BYTES / RATE
    ready = np.cumsum(subject.generator.exponential(service / LOAD, PACKETS))
    sender = subject.generator.integers(SENDERS, size=PACKETS)
    order = np.argsort(sender, kind="stable")
    messages = Messages(
        rank=sender[order].astype(np.int32),
        receiver=np.full(PACKETS, SENDERS, np.int32),
        bytes=np.full(PACKETS, BYTES, np.int64),
        ready=ready[order],
        round=np.zeros(PACKETS, np.int32),
    )
    fabric = _star()
    placement = one_rank_per_host(fabric, fabric.hosts.tolist())
    options = Options(packet_bytes=BYTES, latency_seconds=LATENCY, buffer_bytes=PACKETS * BYTES, every=1)
    simulation = simulate(fabric, placement, messages, options=options)
    comparison = Comparison("packets")
    free = 0.0
    for packet, time in enumerate(ready.tolist()):
        free = max(time + LATENCY, free) + service
        comparison.add(f"packet {packet}, seconds", float(simulation.delivered_at[packet]), free + LATENCY)
    return comparison


def _star() -> Fabric:
    """Return senders and one receiver on a switch; only the cable to the receiver is slow."""
    hosts, switch = list(range(SENDERS + 1)), SENDERS + 1
    to_switch = [RATE * 1e6] * (SENDERS + 1)
    from_switch = [RATE * 1e6] * SENDERS + [RATE]
    return Fabric.from_arcs(
        [*(f"host {host}" for host in hosts), "switch"],
        hosts + [switch] * len(hosts),
        [switch] * len(hosts) + hosts,
        to_switch + from_switch,
        slots=[1] * len(hosts) + [0],
        forwards=[False] * len(hosts) + [True],
    )
