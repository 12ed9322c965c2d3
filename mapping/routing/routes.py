"""Base class of all routings: loads of links, distances, and arrays for search kernels.

If a routing does not connect two hosts between which traffic is routed, whatever its bytes, methods raise
`DisconnectedAllocation` or `UnreachablePair`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mapping.routing.host_groups import column_classes, group_hops, group_links, host_groups
from mapping.routing.kernels import channels as kernel
from mapping.routing.kernels.channels import Channels, Ends
from mapping.routing.kernels.flows import FlowArrays
from mapping.routing.kernels.paths import HopArray
from mapping.routing.network import EndPoints
from registry.errors import InvalidValue, UnknownName
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
    """Load that traffic puts on a fabric.

    Attributes
    ----------
    link_bytes : float64[m]
        Bytes on each row of ``fabric.links``.
    hops : float64[pairs]
        Mean links that the bytes of each pair cross, including the hosts' own cables.
    """

    link_bytes: Floats
    hops: Floats


class Routes(ABC):
    """Routes between some hosts of a fabric.

    Attributes
    ----------
    name : str
        Name of the routing.
    rails : str
        Rails rule, one of `RAILS`.
    fabric : Fabric
    hosts : int32[h]
        Vertices of the hosts, unique; all other host indices here are positions in it.
    ends : EndPoints
        End points of these hosts.
    """

    name: str

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

        Parameters
        ----------
        source, target : int[pairs]
            Indices into `hosts`; traffic of a host with itself loads nothing and has no hops.
        bytes : float[pairs]
        """
        return self._load(source, target, bytes, self._carry_channels)

    def on_link(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike, link: int) -> Floats:
        """Return the bytes (float64[pairs]) of each pair on one link if all pairs are routed together.

        Parameters
        ----------
        source, target, bytes
            As in `load`. All pairs must be connected; this is not checked here.
        link : int
            Row of ``fabric.links``; `InvalidValue` is raised if there is none.
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

        Returns
        -------
        group : int32[h]
            Group of each host, numbered by their first hosts.
        between : float64[g, g]
            Hops from any host of a group to any other host of a group; ``inf`` if not connected. The diagonal
            holds the hops between two hosts of a group; 0 if the group has only one host.
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
