"""The next channels of packets, as arrays for kernels, from a routing by name.

A routing is one of those in the catalog that define for every place of a packet where it may go next
(`SIMULATED`), or ``minimal-adaptive``: all shortest paths over any free channel, and besides them escape
channels, which a packet does not leave once it has entered them and on which no packets wait for each other
in a circle. Sources: Duato, "A new theory of deadlock-free adaptive routing in wormhole networks", 1993;
Silla and Duato, "High-performance routing in networks of workstations with irregular topology", 2000.

Dimension order on a torus needs two classes of channels per link: a packet that still has to wrap around uses
the first, other packets the second (Dally and Seitz, "Deadlock-free message routing in multiprocessor
interconnection networks", 1987).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mapping.routing.catalog import build_routes
from mapping.routing.kernels.flows import ARCS, NO_ARC, PATHS, TABLES, FlowArrays
from mapping.routing.routes import ALL_CONNECTED, Routes
from mapping.routing.tori import Torus, torus_coordinates
from mapping.simulation.kernels.next_hops import ADAPTIVE, FIXED, RANDOM, NextHops
from registry.catalog import read_options, split_options
from registry.errors import InvalidValue, UnknownName
from registry.model import Fabric, Ints, Longs

MINIMAL_ADAPTIVE = "minimal-adaptive"
SIMULATED = ("tables", "shortest-paths", "up-down", "dimension-order", MINIMAL_ADAPTIVE)
"""Routings that can be simulated, by name."""
ESCAPES = ("up-down", "dimension-order", "none")
"""Values of ``minimal-adaptive:escape=``; default: dimension order on a torus or mesh, else up-down."""
SELECTIONS = {"adaptive": ADAPTIVE, "random": RANDOM, "fixed": FIXED}
"""Choice among several next channels: any free one, most room first; one drawn at every vertex; or
the same one for every packet from a vertex to a port.
"""
MOST_SEGMENTS = 1 << 28


class ChannelRoutes(NamedTuple):
    """A routing in the form that a simulation needs."""

    routes: Routes
    """Routes between the hosts, for loads and errors."""
    next_hops: NextHops
    escapes: bool
    """True if there are escape channels."""


class _Layer(NamedTuple):
    """Next links of one routing; -1 in `onward` if a link ends at a port."""

    segment: Longs
    """int64[e]: ``target * states + state``."""
    link: Ints
    of_class: Ints
    """int32[e] and int32[e]."""
    onward: Ints
    """int32[m]: State after each link."""
    states: int
    classes: int


def build_channel_routes(
    routing: str,
    fabric: Fabric,
    hosts: ArrayLike,
    *,
    rails: str = ALL_CONNECTED,
    lanes: int = 1,
    selection: str = "adaptive",
) -> ChannelRoutes:
    """Return the next channels between `hosts` (vertices) by a routing.

    Args:
        routing: One of `SIMULATED`, with options such as ``up-down:root=s6`` or
            ``minimal-adaptive:escape=none``.
        lanes: Number of channels of each class per link; >= 1.
        selection: One of `SELECTIONS`; only ``adaptive`` for ``minimal-adaptive``.

    Raises:
        UnknownName: The routing cannot be simulated, or an option, rails rule or selection is unknown.
        InvalidValue: The fabric lacks something that the routing needs, or is too large.
    """
    name, given = split_options(routing)
    if name not in SIMULATED:
        raise UnknownName("routing that can be simulated", name, SIMULATED)
    if selection not in SELECTIONS:
        raise UnknownName("selection", selection, SELECTIONS)
    if lanes < 1:
        raise InvalidValue("simulate.lanes", f"must be 1 or more, is {lanes}")
    escape = "none"
    if name == MINIMAL_ADAPTIVE:
        if selection != "adaptive":
            raise InvalidValue("simulate.selection", f"{MINIMAL_ADAPTIVE} takes adaptive, not {selection}")
        escape = _escape(fabric, str(read_options(name, given, {"escape": ""}).get("escape", "")))
        routing = "shortest-paths"
    routes = build_routes(routing, fabric, hosts, rails=rails)
    layers = [_layer(routes, fabric)]
    if escape != "none":
        layers.append(_layer(build_routes(escape, fabric, hosts, rails=rails), fabric))
    return ChannelRoutes(routes, _next_hops(routes, layers, lanes, SELECTIONS[selection]), len(layers) > 1)


def _escape(fabric: Fabric, given: str) -> str:
    if given and given not in ESCAPES:
        raise UnknownName("escape", given, ESCAPES)
    return given or ("up-down" if torus_coordinates(fabric) is None else "dimension-order")


def _layer(routes: Routes, fabric: Fabric) -> _Layer:
    """Return the next links of a routing."""
    flows = routes.flows
    by_kind = {PATHS: _by_paths, ARCS: _by_arcs, TABLES: _by_tables}
    if flows.kind not in by_kind:
        raise UnknownName("routing that can be simulated", routes.name, SIMULATED)
    states = len(flows.tables.ports) if flows.kind == TABLES else len(flows.graph.forwards)
    if states * flows.hops.shape[1] > MOST_SEGMENTS:
        raise InvalidValue("simulate", f"{states} places and {flows.hops.shape[1]} targets are too many")
    return by_kind[flows.kind](flows, fabric)


def _by_paths(flows: FlowArrays, fabric: Fabric) -> _Layer:
    """Return all next links on shortest paths of a graph."""
    graph = flows.graph
    tail, head, link = _cables_of_arcs(flows)
    onward = np.full(flows.links, -1, np.int32)
    onward[link] = head
    states, segments, links = len(graph.forwards), [], []
    for target, near in enumerate(graph.hops_to.astype(np.int32)):
        far = near[tail]
        on = (far > 0) & (near[head] == far - 1) & ((far == 1) | graph.forwards[head])
        segments.append(target * states + tail[on])
        links.append(link[on])
    return _of_targets(segments, links, onward, states)


def _by_arcs(flows: FlowArrays, fabric: Fabric) -> _Layer:
    """Return the next arc of dimension order, with a class for packets that still have to wrap around."""
    graph, torus = flows.graph, torus_coordinates(fabric)
    assert torus is not None
    tail, head, link = _cables_of_arcs(flows)
    arc = np.repeat(np.arange(len(graph.arc_head)), np.diff(graph.link_ptr))
    number = arc - graph.arc_ptr[tail]
    onward = np.full(flows.links, -1, np.int32)
    onward[link] = head
    place = torus.coordinates[fabric.forwards].astype(np.int64)
    states, goes_around = len(graph.forwards), bool(torus.wraps.any())
    segments, links, classes = [], [], []
    for target, onto in enumerate(graph.next_arc):
        on = (onto[tail] == number) & (onto[tail] != NO_ARC)
        segments.append(target * states + tail[on])
        links.append(link[on])
        if goes_around:
            goal = place[int(graph.vertex[target])]
            classes.append(_need_not_go_around(torus, place[tail[on]], place[head[on]], goal))
    return _of_targets(segments, links, onward, states, classes if goes_around else None)


def _need_not_go_around(torus: Torus, tail: Longs, head: Longs, goal: Longs) -> Ints:
    """Return 0 if the path along the axis of a step still wraps around, now or later, else 1 (int32[e])."""
    step = head - tail
    axis = np.abs(step).argmax(axis=1)
    rows = np.arange(len(step))
    length, here, there = step[rows, axis], tail[rows, axis], goal[axis]
    up = (length == 1) | (length < -1)
    around = torus.wraps[axis] & np.where(up, there < here, there > here)
    return np.where(around, 0, 1).astype(np.int32)


def _by_tables(flows: FlowArrays, fabric: Fabric) -> _Layer:
    """Return the next link of each switch for each LID."""
    tables = flows.tables
    states, segments, links = len(tables.ports), [], []
    switch = np.arange(states)
    for target, lid in enumerate(flows.lid.tolist()):
        link = tables.port_link[switch, tables.ports[:, lid]]
        known = link >= 0
        segments.append(target * states + switch[known])
        links.append(link[known])
    onward = np.where(tables.link_port >= 0, -1, tables.link_switch).astype(np.int32)
    return _of_targets(segments, links, onward, states)


def _of_targets(
    segments: list[Longs], links: list[Ints], onward: Ints, states: int, classes: list[Ints] | None = None
) -> _Layer:
    """Return the layer of links found target by target, of two classes if those are given, else of one."""
    link = np.concatenate([np.zeros(0, np.int32), *links]).astype(np.int32)
    segment = np.concatenate([np.zeros(0, np.int64), *segments])
    of_class = np.zeros_like(link) if classes is None else np.concatenate([link[:0], *classes])
    return _Layer(segment, link, of_class, onward, states, 1 if classes is None else 2)


def _cables_of_arcs(flows: FlowArrays) -> tuple[Longs, Ints, Ints]:
    """Return tail, head and row of ``fabric.links`` of every cable of the graph's arcs, arc by arc."""
    graph = flows.graph
    tail = np.repeat(np.arange(len(graph.forwards)), np.diff(graph.arc_ptr))
    cables = np.diff(graph.link_ptr)
    return np.repeat(tail, cables), np.repeat(graph.arc_head, cables), graph.link


def _next_hops(routes: Routes, layers: list[_Layer], lanes: int, selection: int) -> NextHops:
    """Combine layers: from states of the first a packet may go over to the second, not back."""
    flows, first = routes.flows, layers[0]
    classes = sum(layer.classes for layer in layers)
    width, states = classes * lanes, sum(layer.states for layer in layers)
    state_of = np.full((flows.links, classes, lanes), -1, np.int32)
    segments, channels = [], []
    below, before = 0, 0
    for layer in layers:
        onward = np.where(layer.onward >= 0, layer.onward + below, -1)
        state_of[:, before : before + layer.classes] = onward[:, None, None]
        target, state = layer.segment // layer.states, layer.segment % layer.states
        channel = layer.link * width + (before + layer.of_class) * lanes
        segments.append(target * states + below + state)
        channels.append(channel)
        if layer is not first:  # its vertices have the same numbers, in its states before a path turns down
            over = state < first.states
            segments.append((target * states + state)[over])
            channels.append(channel[over])
        below, before = below + layer.states, before + layer.classes
    up, down = states * flows.hops.shape[1], states * flows.hops.shape[1] + len(flows.ends.port_row)
    ends, row_state = flows.ends, _row_states(flows)
    port_state = np.append(row_state, -1)[ends.port_row]
    for base, ptr, link in ((up, ends.up_ptr, ends.up_link), (down, ends.down_ptr, ends.down_link)):
        port = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        segments.append(base + port)
        channels.append(link.astype(np.int64) * width)
        if base == up:
            state_of[link] = port_state[port][:, None, None]
    segment = np.concatenate(segments)
    order = np.argsort(segment, kind="stable")
    begins = np.searchsorted(segment[order], np.arange(down + len(ends.port_row) + 1)).astype(np.int64)
    set_of, ptr, choice = _sets(begins, np.concatenate(channels)[order].astype(np.int32))
    return NextHops(
        lanes=lanes,
        width=width,
        states=states,
        up=up,
        down=down,
        set_of=set_of,
        ptr=ptr,
        choice=choice,
        most=max(int(np.diff(ptr).max(initial=0)), 1) * lanes,
        state_of=state_of.reshape(-1),
        start=np.where(np.diff(ends.up_ptr) > 0, -1, port_state).astype(np.int32),
        selection=selection,
    )


def _sets(first: Longs, choice: Ints) -> tuple[Ints, Longs, Ints]:
    """Merge segments that contain the same channels in the same order into sets.

    Equal segments are found by a sum of mixed 64-bit numbers and then compared.
    """
    length = np.diff(first)
    segment = np.repeat(np.arange(len(length)), length)
    place = np.arange(len(choice)) - first[segment]
    mixed = _mixed(choice.astype(np.uint64) << np.uint64(24) ^ place.astype(np.uint64))
    total = np.r_[np.uint64(0), np.cumsum(mixed, dtype=np.uint64)]
    sums = total[first[1:]] - total[first[:-1]]
    _, one, set_of = np.unique(sums, return_index=True, return_inverse=True)
    set_of = set_of.reshape(-1)
    same = bool((length == length[one][set_of]).all())
    if not (same and bool((choice == choice[first[one[set_of[segment]]] + place]).all())):
        one = set_of = np.arange(len(length))  # two sums are equal by chance
    ptr = np.r_[0, np.cumsum(length[one])]
    taken = np.repeat(first[one] - ptr[:-1], length[one]) + np.arange(int(ptr[-1]))
    return set_of.astype(np.int32), ptr.astype(np.int64), choice[taken]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the numbers mixed by the finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        z = numbers + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _row_states(flows: FlowArrays) -> NDArray[np.int32]:
    """Return the state in which packets start from each row of ``FlowArrays.hops``."""
    return flows.row_switch if flows.kind == TABLES else flows.graph.vertex
