"""Slow simulators for trees of switches with one cable a host: lists, rescanned whenever anything happens.

They share nothing with the kernels but what is stated of them. Messages are (rank, receiver, bytes, ready);
ways are the rows of ``fabric.links`` from host to host.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from mapping.simulation.messages import Messages
from registry.model import Allocation, Fabric, Floats, Placement

Message = tuple[int, int, int, float]


def send(*sent: Message) -> Messages:
    """Return messages of (rank, receiver, bytes, ready)."""
    rank, receiver, size, ready = zip(*sent, strict=True) if sent else ((), (), (), ())
    return Messages(
        np.array(rank, np.int32),
        np.array(receiver, np.int32),
        np.array(size, np.int64),
        np.array(ready, np.float64),
        np.zeros(len(sent), np.int32),
    )


@dataclass
class Case:
    """A tree of switches with hosts, the placement of ranks, and what they send."""

    fabric: Fabric
    placement: Placement
    sent: list[Message]
    packet_bytes: int
    latency: list[float]
    room: list[int]

    @property
    def messages(self) -> Messages:
        return send(*self.sent)

    def way(self, sender: int, receiver: int) -> list[int]:
        """Return the rows of the links from one rank's host to the other's."""
        graph: nx.DiGraph[Any] = nx.DiGraph()
        links = self.fabric.links
        for row, ends in enumerate(zip(links.source.tolist(), links.target.tolist(), strict=True)):
            graph.add_edge(*ends, row=row)
        hosts = self.placement.host_of_rank
        path = nx.shortest_path(graph, int(hosts[sender]), int(hosts[receiver]))
        return [graph.edges[end]["row"] for end in itertools.pairwise(path)]


def placed(fabric: Fabric, host_of_rank: list[int]) -> Placement:
    """Return ranks placed on these vertices."""
    hosts, counts = np.unique(host_of_rank, return_counts=True)
    return Placement(
        host_of_rank=np.array(host_of_rank, np.int32),
        allocation=Allocation.of(fabric, hosts.tolist(), counts),
        strategy="given",
    )


@st.composite
def cases(draw: st.DrawFn, *, whole: bool = False) -> Case:
    """Draw few switches and hosts; without `whole`, odd numbers make simultaneous events unlikely."""
    switches, hosts, ranks = draw(st.integers(1, 3)), draw(st.integers(2, 4)), draw(st.integers(2, 5))
    generator = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    ends = [(hosts + s, hosts + int(generator.integers(s))) for s in range(1, switches)]
    ends += [(host, hosts + int(generator.integers(switches))) for host in range(hosts)]
    source, target = [a for a, _ in ends] + [b for _, b in ends], [b for _, b in ends] + [a for a, _ in ends]
    capacity = np.ones(len(source)) if whole else generator.uniform(1.0, 3.0, len(source))
    fabric = Fabric.from_arcs(
        [f"v{v}" for v in range(hosts + switches)],
        source,
        target,
        capacity,
        slots=[ranks] * hosts + [0] * switches,
        forwards=[False] * hosts + [True] * switches,
    )
    packet_bytes = draw(st.integers(3, 9))
    sent: list[Message] = []
    times = generator.permutation(40) if whole else generator.uniform(0, 30, 40)
    for ready in times[: draw(st.integers(0, 14))].tolist():
        rank, receiver = generator.choice(ranks, 2, replace=False).tolist()
        sent.append((rank, receiver, int(generator.integers(0, 4 * packet_bytes)), float(ready)))
    links = len(fabric.links)
    latency = generator.integers(1, 4, links) if whole else generator.uniform(0.1, 4.0, links)
    room = (
        generator.integers(2, 6, links)
        if whole
        else generator.integers(packet_bytes, 3 * packet_bytes, links)
    )
    assignment = generator.integers(hosts, size=ranks).tolist()
    return Case(fabric, placed(fabric, assignment), sent, packet_bytes, latency.tolist(), room.tolist())


@dataclass(eq=False)
class _Packet:
    message: int
    size: int
    way: list[int]
    crossed: int = 0
    tail_at: float = 0.0
    since: float = 0.0


@dataclass(eq=False)
class _Place:
    """A buffer: the packets whose heads have arrived, and whether one of them is leaving."""

    packets: deque[_Packet] = field(default_factory=deque)
    leaving: bool = False


class Lines:
    """Queues of ranks at the one port of each host."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.host = case.placement.host_of_rank.tolist()
        self.todo = [
            deque(m for m, message in enumerate(case.sent) if message[0] == rank)
            for rank in range(len(self.host))
        ]
        self.line: dict[int, deque[int]] = {host: deque() for host in self.host}
        self.delivered: dict[int, float] = {}

    def offer(self, rank: int, now: float) -> None:
        """Queue the next message if it is ready; within a host it is delivered at once."""
        while self.todo[rank] and self.case.sent[self.todo[rank][0]][3] <= now:
            message = self.todo[rank][0]
            if self.host[rank] != self.host[self.case.sent[message][1]]:
                if rank not in self.line[self.host[rank]]:
                    self.line[self.host[rank]].append(rank)
                return
            self.delivered[message] = now
            self.todo[rank].popleft()

    def packets(self, host: int) -> list[_Packet]:
        """Return the packets of the first message in the queue."""
        message = self.todo[self.line[host][0]][0]
        sender, receiver, size, _ = self.case.sent[message]
        way, most = self.case.way(sender, receiver), self.case.packet_bytes
        sizes = [min(most, size - at) for at in range(0, size, most)] or [0]
        return [_Packet(message, part, way) for part in sizes]

    def done(self, host: int, now: float) -> None:
        """Remove the first message from the queue."""
        rank = self.line[host].popleft()
        self.todo[rank].popleft()
        self.offer(rank, now)


def slow_packets(case: Case) -> list[float]:
    """Return when each message is delivered, by virtual cut-through."""
    lines, links = Lines(case), case.fabric.links
    sending, room = [False] * len(links), list(case.room)
    places = {row: _Place() for row in range(len(links))}
    sources = {host: _Place() for host in set(lines.host)}
    unsent: dict[int, list[_Packet]] = {host: [] for host in sources}
    later: list[tuple[float, int, str, Any]] = [(m[3], n, "ready", m[0]) for n, m in enumerate(case.sent)]
    heapq.heapify(later)
    order = len(later)
    left: dict[int, int] = {}

    def put(at: float, what: str, whom: Any) -> None:
        nonlocal order
        order += 1
        heapq.heappush(later, (at, order, what, whom))

    def load(host: int, now: float) -> None:
        if sources[host].packets or sources[host].leaving:
            return
        if not unsent[host] and lines.line[host]:
            unsent[host] = lines.packets(host)
            left[unsent[host][0].message] = len(unsent[host])
        if unsent[host]:
            packet = unsent[host].pop(0)
            packet.since = now
            sources[host].packets.append(packet)

    def start(place: _Place, now: float, came_by: int | None) -> None:
        packet = place.packets.popleft()
        row = packet.way[packet.crossed]
        leaves = max(now + packet.size / float(links.capacity[row]), packet.tail_at)
        packet.crossed += 1
        packet.tail_at = leaves + case.latency[row]
        sending[row] = place.leaving = True
        room[row] -= packet.size
        put(leaves, "left", (place, came_by, packet, row))
        if packet.crossed == len(packet.way):
            put(packet.tail_at, "deliver", packet)
        else:
            put(now + case.latency[row], "head", packet)

    while later:
        now, _, what, whom = heapq.heappop(later)
        if what == "ready":
            lines.offer(whom, now)
        elif what == "head":
            place = places[whom.way[whom.crossed - 1]]
            place.packets.append(whom)
            whom.since = now
        elif what == "room":
            room[whom[0]] += whom[1]
        elif what == "deliver":
            row = whom.way[-1]
            put(now + case.latency[row], "room", (row, whom.size))
            left[whom.message] -= 1
            if left[whom.message] == 0:
                lines.delivered[whom.message] = now
        else:
            place, came_by, packet, row = whom
            sending[row] = place.leaving = False
            if came_by is None:
                host = lines.host[case.sent[packet.message][0]]
                if not unsent[host]:
                    lines.done(host, now)
            else:
                put(now + case.latency[came_by], "room", (came_by, packet.size))
            if place.packets:
                place.packets[0].since = now
        for host in sources:
            load(host, now)
        every = [(sources[host], None) for host in sources] + [(places[row], row) for row in places]
        ready = [(place, row) for place, row in every if place.packets and not place.leaving]
        passed: set[int] = set()
        for place, row in sorted(ready, key=lambda one: one[0].packets[0].since):
            first = place.packets[0]
            onto = first.way[first.crossed]
            if not sending[onto] and onto not in passed and room[onto] >= first.size:
                start(place, now, row)
            passed.add(onto)
    return [lines.delivered[m] for m in range(len(case.sent))]


@dataclass(eq=False)
class _Worm:
    message: int
    flits: int
    way: list[int]


def slow_flits(case: Case, flit_bytes: int = 1) -> list[float]:
    """Return when each message is delivered, by wormhole switching, in cycles (capacities of 1)."""
    lines, links = Lines(case), len(case.fabric.links)
    hosts = sorted(set(lines.host))
    # Buffers: those of links, then those of hosts; each a queue of (worm, number of the flit).
    buffers: list[deque[tuple[_Worm, int]]] = [deque() for _ in range(links + len(hosts))]
    owner: list[int | None] = [None] * links
    last_owner, credit, back = [-1] * links, list(case.room), [0] * links
    unsent: dict[int, list[_Worm]] = {host: [] for host in hosts}
    flying: list[tuple[int, int, _Worm, int]] = []
    left: dict[int, int] = {}
    cycle = 0

    def load(number: int) -> None:
        host = hosts[number]
        if buffers[links + number]:
            return
        if not unsent[host] and lines.line[host]:
            made = lines.packets(host)
            left[made[0].message] = len(made)
            unsent[host] = [_Worm(p.message, max(math.ceil(p.size / flit_bytes), 1), p.way) for p in made]
        if unsent[host]:
            worm = unsent[host].pop(0)
            buffers[links + number].extend((worm, flit) for flit in range(worm.flits))

    def onward(place: int, worm: _Worm) -> int:
        return worm.way[0] if place >= links else worm.way[worm.way.index(place) + 1]

    while len(lines.delivered) < len(case.sent):
        assert cycle < 100_000
        for _, row, worm, flit in [one for one in flying if one[0] == cycle]:
            buffers[row].append((worm, flit))
        flying = [one for one in flying if one[0] > cycle]
        credit, back = [a + b for a, b in zip(credit, back, strict=True)], [0] * links
        for message in sorted(case.sent, key=lambda one: (one[3], one[0])):
            if message[3] == cycle:
                lines.offer(message[0], cycle)
        for number in range(len(hosts)):
            load(number)
        claims: dict[int, list[int]] = {}
        for place, queue in enumerate(buffers):
            if queue and queue[0][1] == 0 and not (place < links and queue[0][0].way[-1] == place):
                onto = onward(place, queue[0][0])
                if owner[onto] is None and credit[onto] > 0 and place not in owner:
                    claims.setdefault(onto, []).append(place)
        for onto, wanting in claims.items():
            turn = min(wanting, key=lambda place: (place - last_owner[onto] - 1) % len(buffers))
            owner[onto] = last_owner[onto] = turn
        for place in range(links):
            while buffers[place] and buffers[place][0][0].way[-1] == place:
                worm, flit = buffers[place].popleft()
                back[place] += 1
                if flit == worm.flits - 1:
                    left[worm.message] -= 1
                    if left[worm.message] == 0:
                        lines.delivered[worm.message] = cycle
        for row in range(links):
            own = owner[row]
            if own is None or credit[row] == 0 or not buffers[own]:
                continue
            place = own
            worm, flit = buffers[place].popleft()
            credit[row] -= 1
            flying.append((cycle + int(case.latency[row]), row, worm, flit))
            if place < links:
                back[place] += 1
            if flit == worm.flits - 1:
                owner[row] = None
                if place >= links:
                    host = hosts[place - links]
                    if not unsent[host]:
                        lines.done(host, cycle)
                    load(place - links)
        cycle += 1
    return [lines.delivered[m] for m in range(len(case.sent))]


@dataclass
class _Flow:
    number: int
    rank: int
    way: list[int]
    weight: float
    left: float
    starts_at: float
    rate: float = 0.0


def finished_seconds(case: dict[str, Any], *, latency: bool) -> list[float]:
    """Return when messages are delivered as fluids that share links by weighted max-min fairness.

    A message waits for the latencies of its way, then flows. The rates of all that flow rise together, each
    in proportion to its weight, until a link is full; what crosses it keeps its rate, the others go on. A
    rank begins a message when the one before it is delivered. Bertsekas and Gallager, "Data Networks", 1992,
    6.5.2.

    Args:
        case: A case of ``bench.simgrid.cases.case_json``.
        latency: Whether latencies count, and weigh: the share of a flow is in inverse proportion to that of
            its way.
    """
    capacity = np.array([rate for rate, _ in case["links"]])
    ways = {(source, target): way for source, target, way in case["routes"]}
    waiting: dict[int, deque[int]] = {}
    for number, message in enumerate(case["messages"]):
        waiting.setdefault(message[0], deque()).append(number)
    found, now = [0.0] * len(case["messages"]), 0.0
    active: list[_Flow] = []
    idle = sorted(waiting)
    while idle or active:
        for rank in idle:
            if waiting[rank]:
                number = waiting[rank].popleft()
                _, receiver, size, ready = case["messages"][number]
                way = ways[rank, receiver]
                wait = sum(case["links"][link][1] for link in way) if latency else 0.0
                begins = max(ready, now) + wait
                active.append(_Flow(number, rank, way, 1.0 / wait if wait else 1.0, float(size), begins))
        flowing = [flow for flow in active if flow.starts_at <= now]
        for flow, rate in zip(flowing, shares(flowing, capacity), strict=True):
            flow.rate = rate
        ends = [now + flow.left / flow.rate for flow in flowing]
        begins_at = [flow.starts_at for flow in active if flow.starts_at > now]
        after = min([*ends, *begins_at], default=math.inf)
        done = [flow for flow, end in zip(flowing, ends, strict=True) if end <= after * (1 + 1e-15)]
        for flow in flowing:
            flow.left -= flow.rate * (after - now)
        for flow in done:
            found[flow.number] = after
            active.remove(flow)
        now, idle = after, [flow.rank for flow in done]
        if not active and not any(waiting[rank] for rank in idle):
            idle = []
    return found


def shares(flows: list[_Flow], capacity: Floats) -> list[float]:
    crosses = np.zeros((len(flows), len(capacity)), bool)
    for row, flow in enumerate(flows):
        crosses[row, flow.way] = True
    weight = np.array([flow.weight for flow in flows])
    rate, left = np.zeros(len(flows)), capacity.copy()
    rising = np.ones(len(flows), bool)
    while rising.any():
        load = (weight * rising) @ crosses
        level = np.divide(left, load, out=np.full(len(left), np.inf), where=load > 0)
        full = level <= level.min() * (1 + 1e-12)
        stopped = rising & crosses[:, full].any(axis=1)
        rate[stopped] = weight[stopped] * level.min()
        left -= rate[stopped] @ crosses[stopped]
        left = np.maximum(left, 0.0)
        rising &= ~stopped
    return [float(one) for one in rate]
