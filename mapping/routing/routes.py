"""Base class of all routings: loads of links, distances, and arrays for search kernels.

If a routing does not connect two hosts between which traffic is routed, whatever its bytes, methods raise
`DisconnectedAllocation` or `UnreachablePair`.

Routes by the user's own table: the paths of each pair of hosts and their probabilities.

This is the general routing function of Hoefler and Snir, "Generic topology mapping strategies for large-scale
parallel architectures", 2011, section 2.1. A file is CSV with the columns ``source,target,probability,path``,
where a path is the names of its vertices from host to host, separated by ``>``. Parallel cables are one link,
shared in proportion to capacity.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mapping.routing.kernels import channels as kernel
from mapping.routing.kernels.channels import Channels, Ends
from mapping.routing.kernels.flows import LISTS, FlowArrays, ListArrays
from mapping.routing.kernels.paths import HopArray
from mapping.routing.network import (
    EndPoints,
    column_classes,
    empty_flow_arrays,
    end_points,
    group_hops,
    group_links,
    host_groups,
)
from registry.errors import InputError, InvalidValue, UnknownName, UnreachablePair
from registry.model import Fabric, Floats, Int8s, Ints, Longs

ALL_CONNECTED = "all-connected"
SAME_RAIL = "same-rail"
RAILS = (ALL_CONNECTED, SAME_RAIL)
"""Rules that split the bytes of a pair over adapters: over all adapter pairs that the routing connects, or
only between adapters of the same number (ordered by name, then GUID)."""


Carry = Callable[[Channels, Floats], tuple[Floats, Ints | Floats]]
"""Routes the bytes of each channel. Returns the loads of links (float64[m], writable) without the hosts' own
cables, and the links that each channel crosses (-1: not delivered)."""


class Load(NamedTuple):
    """Load that traffic puts on a fabric."""

    link_bytes: Floats
    """float64[m]: Bytes on each row of ``fabric.links``."""
    hops: Floats
    """float64[pairs]: Mean links that the bytes of each pair cross, including the hosts' own cables."""


class Routes(ABC):
    """Routes between some hosts of a fabric.

    Attributes:
        rails: Rails rule, one of `RAILS`.
        hosts (int32[h]): Vertices of the hosts, unique; all other host indices here are positions in it.
        ends: End points of these hosts.
    """

    name: str
    """Name of the routing."""

    def __init__(self, fabric: Fabric, ends: EndPoints, arrays: Ends, rails: str) -> None:
        if rails not in RAILS:
            raise UnknownName("rails rule", rails, RAILS)
        self.fabric = fabric
        self.hosts: Ints = ends.hosts
        self.rails = rails
        self.ends = ends
        self._arrays = arrays

    def link_bytes(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike) -> Floats:
        """Return the exact load of each row of ``fabric.links``; see `load`."""
        return self.load(source, target, bytes).link_bytes

    def load(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike) -> Load:
        """Route traffic between hosts.

        Args:
            source, target (int[pairs]): Indices into `hosts`; traffic of a host with itself loads nothing and
                has no hops.
            bytes (float[pairs]):
        """
        return self._load(source, target, bytes, self._carry_channels)

    def on_link(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike, link: int) -> Floats:
        """Return the bytes (float64[pairs]) of each pair on one link if all pairs are routed together.

        Args:
            source, target, bytes: As in `load`. All pairs must be connected; this is not checked here.
            link: Row of ``fabric.links``; `InvalidValue` is raised if there is none.
        """
        if not 0 <= link < len(self.fabric.links):
            raise InvalidValue("Routes.on_link", f"{link} is not from 0 to {len(self.fabric.links) - 1}")
        i, j, amount = self._demands(source, target, bytes)
        ends, apart = self._arrays, np.flatnonzero(i != j)
        pair, channels = self._channels(i[apart], j[apart])
        carried = amount[apart][pair] * channels.weight
        crossing = self._crossing(channels, carried, link)
        for ptr, cable, share, port in (
            (ends.up_ptr, ends.up_link, ends.up_share, channels.source),
            (ends.down_ptr, ends.down_link, ends.down_share, channels.port),
        ):
            for index in np.flatnonzero(cable == link).tolist():
                owner = int(np.searchsorted(ptr, index, side="right")) - 1
                crossing += np.where(port == owner, carried * share[index], 0.0)
        found = np.zeros(len(i))
        found[apart] = np.bincount(pair, weights=crossing, minlength=len(apart))
        return found

    def _demands(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike) -> tuple[Ints, Ints, Floats]:
        i, j = self._indices(source, "source"), self._indices(target, "target")
        amount = np.array(bytes, np.float64).reshape(-1)
        if not len(i) == len(j) == len(amount):
            raise InvalidValue("Routes.load", "source, target and bytes differ in length")
        return i, j, amount

    def _load(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike, carry: Carry) -> Load:
        """Split traffic into channels, route them with `carry`, and add the hosts' own cables."""
        i, j, amount = self._demands(source, target, bytes)
        ends, apart = self._arrays, np.flatnonzero(i != j)
        pair, channels = self._channels(i[apart], j[apart])
        carried = amount[apart][pair] * channels.weight
        loads, steps = carry(channels, carried)
        if len(steps) and float(steps.min()) < 0:
            lost = apart[pair[int(np.argmin(steps))]]
            raise self._unconnected(int(i[lost]), int(j[lost]))
        kernel.add_cables(ends.up_ptr, ends.up_link, ends.up_share, channels.source, carried, loads)
        kernel.add_cables(ends.down_ptr, ends.down_link, ends.down_share, channels.port, carried, loads)
        steps = (
            steps + (np.diff(ends.up_ptr) > 0)[channels.source] + (np.diff(ends.down_ptr) > 0)[channels.port]
        )
        hops = np.zeros(len(i))
        hops[apart] = np.bincount(pair, weights=channels.weight * steps, minlength=len(apart))
        return Load(loads, hops)

    @cached_property
    def distances(self) -> Floats:
        """Mean hops between hosts (float64[h, h]) with their own cables; 0 within a host, inf for none."""
        group, between = self.grouped_hops()
        found = between[group][:, group]
        np.fill_diagonal(found, 0.0)
        found.flags.writeable = False
        return found

    def grouped_hops(self) -> tuple[Ints, Floats]:
        """Return the mean hops between groups of interchangeable hosts, including the hosts' own cables.

        Returns:
            group: Group of each host, numbered by their first hosts.
            between: Hops from any host of a group to any other host of a group; ``inf`` if not connected. The
                diagonal holds the hops between two hosts of a group; 0 if the group has only one host.
        """
        group = host_groups(self._arrays, self._target_class)
        return group, group_hops(self._arrays, self._hops, group, self.max_channels)

    def grouped_links(self) -> tuple[Ints, Int8s] | None:
        """Return `grouped_hops` with hops as bytes (uint8[g, g]); None if some are not whole numbers."""
        hops, means = self._hops, type(self).grouped_hops is not Routes.grouped_hops
        if means or not (self._single and self._all_connected and hops.dtype == np.int8):
            return None
        group = host_groups(self._arrays, self._target_class)
        return group, group_links(self._arrays, hops, group)

    @cached_property
    def flows(self) -> FlowArrays:
        """Arrays for ``mapping.routing.kernels.flows.pair_flows``."""
        return self._flows()

    def require_connected(self) -> None:
        """Raise an error if some host does not reach another."""
        i, j = self._first_unconnected()
        if i >= 0:
            raise self._unconnected(i, j)

    @property
    def connected(self) -> bool:
        """True if every host reaches every other."""
        return self._first_unconnected()[0] < 0

    @property
    def evenly_split(self) -> bool:
        """True if traffic of a host is divided evenly over its rails, and that of a rail over its ports."""
        return not self._arrays.same_rail and self._all_connected

    @property
    def max_channels(self) -> int:
        """Upper bound of the number of channels of a pair of hosts."""
        ports = self._arrays.port_ptr[self._arrays.rail_ptr]
        targets = self._arrays.target_ptr[ports]
        return int(np.diff(ports).max(initial=0) * np.diff(targets).max(initial=0))

    @cached_property
    @abstractmethod
    def _hops(self) -> HopArray:
        """Links from each row to each target (int8[k, t] or int16[k, t]); `NO_PATH` if there is no path."""

    def _carry_channels(self, channels: Channels, amount: Floats) -> tuple[Floats, Ints | Floats]:
        """Route channels by this routing; see `Carry`."""
        return self._carry(self._arrays.port_row[channels.source], channels.target, amount)

    @abstractmethod
    def _carry(self, row: Ints, target: Ints, amount: Floats) -> tuple[Floats, Ints | Floats]:
        """Return loads of links (float64[m], writable) and links of each demand (-1: not delivered)."""

    def _crossing(self, channels: Channels, amount: Floats, link: int) -> Floats:
        """Return the bytes of each channel on a link (float64, writable), without the hosts' own cables."""
        row, width = self._arrays.port_row[channels.source].astype(np.int64), len(self._arrays.target) + 1
        _, first, same = np.unique(row * width + channels.target, return_index=True, return_inverse=True)
        part = self._part_on(row[first].astype(np.int32), channels.target[first], link)
        return np.asarray(amount * part[same], np.float64)

    @abstractmethod
    def _part_on(self, row: Ints, target: Ints, link: int) -> Floats:
        """Return the fraction (float64[d]) of each demand from a row to a target that crosses a link."""

    @abstractmethod
    def _flows(self) -> FlowArrays: ...

    @abstractmethod
    def _unconnected(self, i: int, j: int) -> Exception:
        """Return the error that names two unconnected hosts."""

    @cached_property
    def _single(self) -> bool:
        """True if each host has one port with one target: ports and targets are numbered like hosts."""
        ports, targets = len(self._arrays.port_row), len(self._arrays.target)
        return self.max_channels == 1 and ports == targets == len(self.hosts)

    def _first_unconnected(self) -> tuple[int, int]:
        if self._all_connected:
            return -1, -1
        i, j = kernel.first_unconnected(self._arrays, self._hops, self._channel_buffer)
        return int(i), int(j)

    @cached_property
    def _all_connected(self) -> bool:
        """True if every port reaches every target, and every host has a port and every port a target."""
        ends = self._arrays
        lacking = any(bool((np.diff(ptr) == 0).any()) for ptr in (ends.rail_ptr, ends.target_ptr))
        return not lacking and int(ends.port_row.min()) >= 0 and int(self._hops.min()) >= 0

    @cached_property
    def _target_class(self) -> Longs:
        """Class of each target (int64[t]); equal for targets with equal columns of `_hops`."""
        return column_classes(self._hops)

    @property
    def _channel_buffer(self) -> Channels:
        return kernel.new_channels(self.max_channels)

    def _channels(self, i: Ints, j: Ints) -> tuple[Longs, Channels]:
        """Return all channels of the given pairs, and the pair of each channel."""
        arrays = self._arrays
        if self._single:
            return np.arange(len(i)), Channels(i, j, arrays.target[j], np.ones(len(i)))
        counts = np.zeros(len(i), np.int64)
        buffer = self._channel_buffer
        kernel.count_channels(arrays, self._hops, i, j, buffer, counts)
        if len(counts) and int(counts.min()) == 0:
            lost = int(np.argmin(counts))
            raise self._unconnected(int(i[lost]), int(j[lost]))
        first = np.r_[0, np.cumsum(counts)]
        channels = kernel.new_channels(int(first[-1]))
        kernel.list_channels(arrays, self._hops, i, j, buffer, first, channels)
        return np.repeat(np.arange(len(i)), counts), channels

    def _indices(self, values: ArrayLike, name: str) -> Ints:
        indices = np.asarray(values).reshape(-1)
        if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= len(self.hosts)):
            raise InvalidValue(f"Routes.load.{name}", f"must be from 0 to {len(self.hosts) - 1}")
        return indices.astype(np.int32)


COLUMNS = ("source", "target", "probability", "path")
SLACK = 1e-6
"""Tolerance for the sum of the probabilities of a pair, which must be 1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathTable:
    """Paths and their probabilities; the paths of a pair may be in any order."""

    probability: Floats
    """float64[p]: Probability of each path, 0 to 1; those of a pair sum to 1."""
    ptr: Longs
    """int64[p + 1]."""
    vertex: Ints
    """Vertices of each path, ``vertex[ptr[p]:ptr[p + 1]]``, from host to host."""


def build(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, file: str = "") -> TableOfPaths:
    """Return routes by a file of paths; see `read_path_table` and `routes_by` for its errors.

    The paths decide which rails are used: a rails rule is an error.
    """
    if not file:
        raise InvalidValue("path-table.file", "is empty: give the path of a CSV file")
    if rails != ALL_CONNECTED:
        raise InvalidValue("path-table", f"does not take the rails rule {rails!r}: the table lists the paths")
    return routes_by(read_path_table(file, fabric), fabric, hosts)


def read_path_table(path: str | Path, fabric: Fabric) -> PathTable:
    """Read a CSV table of paths.

    Raises:
        InputError: The file cannot be read or a line is invalid; names file, line and text.
        UnknownName: A vertex is not in the fabric.
    """
    rows = read_rows(path, "table of paths")
    if not rows or tuple(name.strip() for name in rows[0][1]) != COLUMNS:
        raise InputError(f"the table of paths must begin with the line {','.join(COLUMNS)}", path=path)
    number = _vertices(rows, fabric)
    probability, paths = [], []
    for line, row in rows[1:]:
        if len(row) != len(COLUMNS):
            raise InputError(f"found {len(row)} columns, expected {len(COLUMNS)}", path=path, line=line)
        source, target, part, way = (entry.strip() for entry in row)
        names = [name.strip() for name in way.split(">")]
        if names[0] != source or names[-1] != target:
            raise InputError(f"the path does not lead from {source!r} to {target!r}", path=path, line=line)
        for name in names:
            if name not in number:
                raise UnknownName("vertex", name, fabric.names, path=path, line=line)
        probability.append(read_number(part, "a probability", path, line))
        paths.append([number[name] for name in names])
    return PathTable(
        probability=np.array(probability, np.float64),
        ptr=np.r_[0, np.cumsum([len(vertices) for vertices in paths], dtype=np.int64)],
        vertex=np.array([v for vertices in paths for v in vertices], np.int32),
    )


def _vertices(rows: Sequence[tuple[int, list[str]]], fabric: Fabric) -> dict[str, int]:
    """Return the vertex of each name of the paths that the fabric has."""
    ways = (row[-1].split(">") for _, row in rows[1:])
    return fabric.known_vertices({name.strip() for way in ways for name in way}, kind="vertex")


def read_rows(path: str | Path, what: str) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV file that are not blank, each with its line number."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the {what}: {error}", path=path) from error
    lines = enumerate(csv.reader(io.StringIO(text)), 1)
    return [(line, row) for line, row in lines if any(map(str.strip, row))]


def read_number(text: str, what: str, path: str | Path, line: int) -> float:
    """Return a number of a CSV file; `InputError` is raised if it is none."""
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"is not {what}", path=path, line=line, text=text) from error


def routes_by(table: PathTable, fabric: Fabric, hosts: ArrayLike) -> TableOfPaths:
    """Return routes between `hosts` (vertices) by a table of paths; all of the table is checked.

    Raises:
        InvalidValue: A probability is outside 0 to 1, those of a pair do not sum to 1, or a path uses a
            missing link, crosses a vertex that does not forward, or leads from a host to itself; names the
            pair.
    """
    return TableOfPaths(fabric, table, end_points(fabric, hosts))


class TableOfPaths(Routes):
    """Routes by a table of paths and their probabilities."""

    name = "path-table"

    def __init__(self, fabric: Fabric, table: PathTable, ends: EndPoints) -> None:
        arc, hosts = _check(fabric, table), ends.hosts
        every, none = np.arange(len(hosts) + 1), np.zeros(0, np.int32)
        arrays = Ends(
            same_rail=False,
            rail_ptr=every,
            rail_number=np.zeros(len(hosts), np.int32),
            port_ptr=every,
            port_row=every[:-1].astype(np.int32),
            target_ptr=every,
            target=every[:-1].astype(np.int32),
            up_ptr=np.zeros(len(every), np.int64),
            up_link=none,
            up_share=np.zeros(0),
            down_ptr=np.zeros(len(every), np.int64),
            down_link=none,
            down_share=np.zeros(0),
        )
        super().__init__(fabric, ends, arrays, ALL_CONNECTED)
        self._lists, self._mean = _lists(fabric, table, arc, hosts)

    def grouped_hops(self) -> tuple[Ints, Floats]:
        """Return the mean hops between hosts, each a group of its own; see `Routes.grouped_hops`."""
        between = np.where(self._mean < 0, np.inf, self._mean)
        np.fill_diagonal(between, 0.0)
        return np.arange(len(self.hosts), dtype=np.int32), between

    @property
    def evenly_split(self) -> bool:
        """False: paths may use any port of a host."""
        return False

    @cached_property
    def _hops(self) -> HopArray:
        whole = np.rint(self._mean)
        np.fill_diagonal(whole, 0.0)
        return whole.astype(np.int8 if float(whole.max(initial=0.0)) <= 127 else np.int16)

    def _carry(self, row: Ints, target: Ints, amount: Floats) -> tuple[Floats, Floats]:
        ptr, pair = self._lists.ptr, row.astype(np.int64) * len(self.hosts) + target
        counts = ptr[pair + 1] - ptr[pair]
        first = np.cumsum(counts) - counts
        entry = np.repeat(ptr[pair] - first, counts) + np.arange(int(counts.sum()))
        part = np.repeat(amount, counts) * self._lists.share[entry]
        loads = np.bincount(self._lists.link[entry], weights=part, minlength=len(self.fabric.links))
        return loads.astype(np.float64), self._mean[row, target]

    def _part_on(self, row: Ints, target: Ints, link: int) -> Floats:
        lists, entry = self._lists, np.flatnonzero(self._lists.link == link)
        pair = np.searchsorted(lists.ptr, entry, side="right") - 1
        wanted = row.astype(np.int64) * len(self.hosts) + target
        index = np.minimum(np.searchsorted(pair, wanted), max(len(pair) - 1, 0))
        if not len(pair):
            return np.zeros(len(row))
        return np.where(pair[index] == wanted, lists.share[entry][index], 0.0)

    def _flows(self) -> FlowArrays:
        links, most = len(self.fabric.links), int(np.diff(self._lists.ptr).max(initial=0))
        flows = empty_flow_arrays(LISTS, links, most, self.max_channels, self._arrays, self._hops)
        return flows._replace(lists=self._lists)

    def _unconnected(self, i: int, j: int) -> UnreachablePair:
        names = self.fabric.names
        why = "the table of paths has no path for them"
        return UnreachablePair(names[self.hosts[i]], names[self.hosts[j]], why)


def _check(fabric: Fabric, table: PathTable) -> Longs:
    """Return the arc of the fabric (int64) of each step of the paths, steps of a path in order."""
    names, length = fabric.names, np.diff(table.ptr)

    def refuse(fault: ArrayLike, path: Longs, why: str) -> None:
        wrong = np.flatnonzero(fault)
        if len(wrong):
            p = int(path[wrong[0]])
            vertices = [names[v] for v in table.vertex[table.ptr[p] : table.ptr[p + 1]].tolist()]
            ends = f"{vertices[0]!r} to {vertices[-1]!r}" if vertices else "nowhere"
            raise InvalidValue("path-table", f"the path {'>'.join(vertices)} from {ends} {why}")

    every = np.arange(len(length))
    refuse(length < 2, every, "has no link")
    first, last = table.vertex[table.ptr[:-1]], table.vertex[table.ptr[1:] - 1]
    refuse(first == last, every, "leads from a host to itself")
    refuse(~((table.probability >= 0) & (table.probability <= 1)), every, "has a probability outside 0 to 1")
    path = np.repeat(every, length)
    at_end = np.zeros(len(path), np.bool_)
    at_end[table.ptr[:-1]], at_end[table.ptr[1:] - 1] = True, True
    refuse(~at_end & ~fabric.forwards[table.vertex], path, "leads through a vertex that does not forward")
    _, pair = np.unique(first.astype(np.int64) * len(names) + last, return_inverse=True)
    total = np.bincount(pair, weights=table.probability)
    refuse(np.abs(total - 1)[pair] > SLACK, every, "belongs to a pair whose probabilities do not sum to 1")
    step = np.flatnonzero(np.diff(path) == 0)
    arcs = np.repeat(np.arange(len(names)), np.diff(fabric.indptr)) * len(names) + fabric.neighbour
    wanted = table.vertex[step].astype(np.int64) * len(names) + table.vertex[step + 1]
    arc = np.searchsorted(arcs, wanted)
    refuse(np.append(arcs, -1)[arc] != wanted, path[step], "uses a link that the fabric does not have")
    return arc


def _lists(fabric: Fabric, table: PathTable, arc: Longs, hosts: Ints) -> tuple[ListArrays, Floats]:
    """Return the links of each pair of hosts, and the mean length (float64[h, h]) of its paths or -1."""
    index = np.full(len(fabric), -1, np.int64)
    index[hosts] = np.arange(len(hosts))
    source, target = index[table.vertex[table.ptr[:-1]]], index[table.vertex[table.ptr[1:] - 1]]
    pair = np.where((source >= 0) & (target >= 0), source * len(hosts) + target, -1)
    steps = np.diff(table.ptr) - 1
    link_ptr = np.searchsorted(fabric.arc_of_link, np.arange(len(fabric.capacity) + 1))
    cables = np.diff(link_ptr)[arc]
    link = np.repeat(link_ptr[arc] - np.r_[0, np.cumsum(cables)[:-1]], cables) + np.arange(int(cables.sum()))
    path = np.repeat(np.repeat(np.arange(len(steps)), steps), cables)
    share = table.probability[path] * fabric.links.capacity[link] / np.repeat(fabric.capacity[arc], cables)
    kept = np.flatnonzero((pair[path] >= 0) & (share > 0))
    key, place = np.unique(pair[path[kept]] * len(fabric.links) + link[kept], return_inverse=True)
    lists = ListArrays(
        ptr=np.searchsorted(key // len(fabric.links), np.arange(len(hosts) ** 2 + 1)),
        link=(key % len(fabric.links)).astype(np.int32),
        share=np.bincount(place, weights=share[kept], minlength=len(key)).astype(np.float64),
    )
    mean = np.full(len(hosts) ** 2, -1.0)
    ours = pair >= 0
    mean[pair[ours]] = 0.0
    np.add.at(mean, pair[ours], table.probability[ours] * steps[ours])
    return lists, mean.reshape(len(hosts), len(hosts))
