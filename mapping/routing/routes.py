"""What every routing answers: loads of links, distances, and the arrays that kernels walk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mapping.routing.groups import column_classes, group_hops, group_links, host_groups
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
"""Rules that split a pair's bytes over adapters: over all adapter pairs that the routing connects, or
only from the i-th adapter to the i-th (by name, then GUID)."""


Carry = Callable[[Channels, Floats], tuple[Floats, Ints | Floats]]
"""Routes the bytes of each channel: loads of links (float64[m], writeable) without the hosts' own cables, and
the links that each channel crosses (-1: not delivered)."""


class Load(NamedTuple):
    """What traffic puts on a fabric.

    Attributes
    ----------
    link_bytes : float64[m]
        Load of each row of ``fabric.links``.
    hops : float64[pairs]
        Mean links that each pair's bytes cross, hosts' own cables counted.
    """

    link_bytes: Floats
    hops: Floats


class Routes(ABC):
    """The routes between some hosts of a fabric.

    Attributes
    ----------
    name : str
        Of the routing.
    rails : str
        One of `RAILS`.
    fabric : Fabric
    hosts : int32[h]
        Vertices, without repeats; all other indices here are positions in it.
    ends : EndPoints
        Of these hosts.
    """

    name: str

    def __init__(self, fabric: Fabric, ends: EndPoints, arrays: Ends, rails: str) -> None:
        self.fabric = fabric
        self.hosts: Ints = ends.hosts
        self.rails = rails
        self.ends = ends
        self._arrays = arrays

    def link_bytes(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike) -> Floats:
        """Load of each row of ``fabric.links``, exact; see `load`."""
        return self.load(source, target, bytes).link_bytes

    def load(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike) -> Load:
        """Route traffic between hosts.

        Parameters
        ----------
        source, target : int[pairs]
            Indices into `hosts`; a pair of a host with itself loads nothing and has no hops.
        bytes : float[pairs]

        Raises
        ------
        DisconnectedAllocation, UnreachablePair
            A pair that the routing does not connect, whatever its bytes.
        """
        return self._load(source, target, bytes, self._carry_channels)

    def on_link(self, source: ArrayLike, target: ArrayLike, bytes: ArrayLike, link: int) -> Floats:
        """float64[pairs]: what each pair, routed together with the others, puts on one link.

        Parameters
        ----------
        source, target, bytes
            As in `load`, which tells whether the routing connects them all: here that is taken for granted.
        link : int
            Row of ``fabric.links``.

        Raises
        ------
        InvalidValue
            A row that there is not.
        """
        if not 0 <= link < len(self.fabric.links):
            raise InvalidValue("Routes.on_link", f"{link} is outside 0 .. {len(self.fabric.links) - 1}")
        i, j, amount = self._demands(source, target, bytes)
        ends, apart = self._arrays, np.flatnonzero(i != j)
        pair, channels = self._channels(i[apart], j[apart])
        carried = amount[apart][pair] * channels.weight
        crossing = self._crossing(channels, carried, link)
        for ptr, cable, share, port in (
            (ends.up_ptr, ends.up_link, ends.up_share, channels.source),
            (ends.down_ptr, ends.down_link, ends.down_share, channels.port),
        ):
            for at in np.flatnonzero(cable == link).tolist():
                owner = int(np.searchsorted(ptr, at, side="right")) - 1
                crossing += np.where(port == owner, carried * share[at], 0.0)
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
        """Cut traffic into channels, let `carry` route them, and add the hosts' own cables."""
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
        """float64[h, h]: mean hops between hosts, their own cables counted; 0 within a host, inf for none."""
        group, between = self.grouped_hops()
        found = between[group][:, group]
        np.fill_diagonal(found, 0.0)
        found.flags.writeable = False
        return found

    def grouped_hops(self) -> tuple[Ints, Floats]:
        """Mean hops between groups of hosts that are interchangeable, hosts' own cables counted.

        Returns
        -------
        group : int32[h]
            Group of each host, numbered by their first hosts.
        between : float64[g, g]
            From any host of a group to any other host of one; ``inf`` for none. The diagonal is the way
            between two hosts of a group; 0 where there is but one.
        """
        group = host_groups(self._arrays, self._target_class)
        return group, group_hops(self._arrays, self._hops, group, self.max_channels)

    def grouped_links(self) -> tuple[Ints, Int8s] | None:
        """What `grouped_hops` gives, in a byte each; None unless all of these are whole numbers.

        Returns
        -------
        group : int32[h]
        links : uint8[g, g]
        """
        hops, means = self._hops, type(self).grouped_hops is not Routes.grouped_hops
        if means or not (self._single and self._all_joined and hops.dtype == np.int8):
            return None
        group = host_groups(self._arrays, self._target_class)
        return group, group_links(self._arrays, hops, group)

    @cached_property
    def flows(self) -> FlowArrays:
        """Arrays for ``mapping.routing.kernels.flows.pair_flows``."""
        return self._flows()

    def require_connected(self) -> None:
        """Raise unless every host reaches every other.

        Raises
        ------
        DisconnectedAllocation, UnreachablePair
        """
        i, j = self._first_unconnected()
        if i >= 0:
            raise self._unconnected(i, j)

    @property
    def connected(self) -> bool:
        """Whether every host reaches every other."""
        return self._first_unconnected()[0] < 0

    @property
    def evenly_split(self) -> bool:
        """Whether all that a host sends or receives is spread evenly over its rails, and those over ports."""
        return not self._arrays.same_rail and self._all_joined

    @property
    def max_channels(self) -> int:
        """Most channels that a pair of hosts can have."""
        ports = self._arrays.port_ptr[self._arrays.rail_ptr]
        targets = self._arrays.target_ptr[ports]
        return int(np.diff(ports).max(initial=0) * np.diff(targets).max(initial=0))

    @cached_property
    @abstractmethod
    def _hops(self) -> HopArray:
        """int8[k, t] or int16[k, t]: links from each row to each target; `NO_PATH` for none."""

    def _carry_channels(self, channels: Channels, amount: Floats) -> tuple[Floats, Ints | Floats]:
        """A `Carry` by this routing."""
        return self._carry(self._arrays.port_row[channels.source], channels.target, amount)

    @abstractmethod
    def _carry(self, row: Ints, target: Ints, amount: Floats) -> tuple[Floats, Ints | Floats]:
        """Loads of links (float64[m], writeable) and links crossed by each demand (-1: not delivered)."""

    def _crossing(self, channels: Channels, amount: Floats, link: int) -> Floats:
        """float64[channels], writeable: bytes of each that a link carries, hosts' own cables left out."""
        row, width = self._arrays.port_row[channels.source].astype(np.int64), len(self._arrays.target) + 1
        _, first, same = np.unique(row * width + channels.target, return_index=True, return_inverse=True)
        part = self._part_on(row[first].astype(np.int32), channels.target[first], link)
        return np.asarray(amount * part[same], np.float64)

    @abstractmethod
    def _part_on(self, row: Ints, target: Ints, link: int) -> Floats:
        """float64[d]: part of what goes from rows to targets that a link carries."""

    @abstractmethod
    def _flows(self) -> FlowArrays: ...

    @abstractmethod
    def _unconnected(self, i: int, j: int) -> Exception:
        """The error that names two hosts that are not connected."""

    @cached_property
    def _single(self) -> bool:
        """Whether each host has one port with one target, so that ports and targets count like hosts."""
        ports, targets = len(self._arrays.port_row), len(self._arrays.target)
        return self.max_channels == 1 and ports == targets == len(self.hosts)

    def _first_unconnected(self) -> tuple[int, int]:
        if self._all_joined:
            return -1, -1
        i, j = kernel.first_unconnected(self._arrays, self._hops, self._room)
        return int(i), int(j)

    @cached_property
    def _all_joined(self) -> bool:
        """Whether every port reaches every target, and no host or port is without."""
        ends = self._arrays
        lacking = any(bool((np.diff(ptr) == 0).any()) for ptr in (ends.rail_ptr, ends.target_ptr))
        return not lacking and int(ends.port_row.min()) >= 0 and int(self._hops.min()) >= 0

    @cached_property
    def _target_class(self) -> Longs:
        """int64[t]: equal for targets whose columns of `_hops` are equal."""
        return column_classes(self._hops)

    @property
    def _room(self) -> Channels:
        return kernel.new_channels(self.max_channels)

    def _channels(self, i: Ints, j: Ints) -> tuple[Longs, Channels]:
        """All channels of the given pairs, and the pair that each belongs to."""
        arrays = self._arrays
        if self._single:
            return np.arange(len(i)), Channels(i, j, arrays.target[j], np.ones(len(i)))
        counts = np.zeros(len(i), np.int64)
        room = self._room
        kernel.count_channels(arrays, self._hops, i, j, room, counts)
        if len(counts) and int(counts.min()) == 0:
            lost = int(np.argmin(counts))
            raise self._unconnected(int(i[lost]), int(j[lost]))
        first = np.r_[0, np.cumsum(counts)]
        found = kernel.new_channels(int(first[-1]))
        kernel.list_channels(arrays, self._hops, i, j, room, first, found)
        return np.repeat(np.arange(len(i)), counts), found

    def _indices(self, values: ArrayLike, name: str) -> Ints:
        found = np.asarray(values).reshape(-1)
        if len(found) and (int(found.min()) < 0 or int(found.max()) >= len(self.hosts)):
            raise InvalidValue(f"Routes.load.{name}", f"outside 0 .. {len(self.hosts) - 1}")
        return found.astype(np.int32)


def check_rails(rails: str) -> None:
    """Raise `UnknownName` for a rails rule that there is not."""
    if rails not in RAILS:
        raise UnknownName("rails rule", rails, RAILS)
