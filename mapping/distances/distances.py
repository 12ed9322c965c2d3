"""The cost of a byte between two hosts, under the conventions of the literature.

``links``
    Mean number of links that the routing crosses, including hosts' own cables (hops of Hoefler and Snir
    2011).
``switches``
    One less: the number of switches crossed (Li et al. 2020).
``equivalent``
    Equivalent distance of the switches by Kirchhoff's laws (Orduña, Silla and Duato 2004, section 3).
``equivalent+2``
    The same plus one for each host's own cable (section 4 there).
``table``
    The user's own table, by host.

Within a host every distance is zero. Distances are kept by groups of hosts with equal distances.

A user's own table of distances by host name, and its checks.

The file is CSV: a first row ``host,NAME,NAME,...`` and one row ``NAME,0,2,...`` for each sending host, as
many rows as columns, in any order.

Equivalent distances: the electrical resistance between hosts over the paths of a routing.

Source: Orduña, Silla and Duato, "On the development of a communication-aware task mapping technique", 2004,
section 3: every link of a path that the routing uses is a resistor of 1 ohm. Paths that it does not use do
not count, and a routing may use paths that are not minimal (up*/down*).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mapping.distances.kernels.resistance import Resistors, fill_resistances
from mapping.routing.kernels.flows import new_scratch
from mapping.routing.routes import Routes, read_number, read_rows
from registry.errors import InputError, InvalidValue, UnknownName
from registry.model import Floats, Int8s, Ints
from registry.model.host_names import same_hosts
from registry.model.views import one_line

SAME = 1e-9
"""Relative difference of a pair's two directions that is ignored, since tables have few digits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistanceTable:
    """Distances by host name."""

    names: tuple[str, ...]
    """Host names, unique; hosts that are not in use are allowed."""
    values: Floats
    """float64[n, n]: Distance from the host of the row to that of the column."""
    path: str = ""
    """File of the table; empty if there is none."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        values = np.array(self.values, np.float64)
        if values.shape != (len(self.names), len(self.names)):
            raise InvalidValue(
                "DistanceTable.values", f"has shape {values.shape} for {len(self.names)} hosts"
            )
        if len(set(self.names)) != len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise InvalidValue("DistanceTable.names", f"host {twice!r} occurs twice")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def between(self, hosts: Sequence[str]) -> Floats:
        """Return the part of the table (float64[h, h]) for these hosts, in this order.

        A host that is not in the table is an `UnknownName`.
        """
        index = {name: i for i, name in enumerate(self.names)}
        same = same_hosts(hosts, self.names)
        for host in hosts:
            if host not in same:
                raise UnknownName("host in the table of distances", host, self.names, path=self.path or None)
        rows = np.array([index[same[host]] for host in hosts], np.int64)
        return np.asarray(self.values[np.ix_(rows, rows)], np.float64)


def read_distance_table(path: str | Path) -> DistanceTable:
    """Read a CSV table of distances.

    Raises:
        InputError: The file cannot be read or a line is invalid; names file, line and text.
    """
    rows = read_rows(path, "table of distances")
    if not rows:
        raise InputError("the table of distances is empty", path=path)
    names = tuple(name.strip() for name in rows[0][1][1:])
    index = {name: i for i, name in enumerate(names)}
    if len(index) != len(names) or "" in index:
        raise InputError("every column of hosts needs a name of its own", path=path, line=rows[0][0])
    values = np.full((len(names), len(names)), np.nan)
    for line, row in rows[1:]:
        _read_row(values, index, row, str(path), line)
    missing = [name for name in names if np.isnan(values[index[name]]).all()]
    if missing:
        raise InputError(f"the table of distances has no row for host {missing[0]!r}", path=path)
    return DistanceTable(names=names, values=values, path=str(path))


def check_distances(values: Any, names: Sequence[str], *, one_way: bool = False) -> Floats:
    """Return the distances as float64[h, h], or raise an error that names the hosts of the first fault.

    Args:
        names: Names of the hosts, for the error.
        one_way: Allow the two directions of a pair to differ.
    """
    hosts = len(names)
    given = np.asarray(values)
    if given.dtype.kind not in "fiu" or given.shape != (hosts, hosts):
        raise InvalidValue(
            "distances.table", f"must be numbers of shape ({hosts}, {hosts}), is {given.shape}"
        )
    table = given.astype(np.float64)
    _refuse(np.isnan(table), table, names, "is not a number")
    _refuse(~np.isfinite(table), table, names, "is not finite")
    _refuse(table < 0, table, names, "is below zero")
    _refuse((table != 0) & np.eye(hosts, dtype=bool), table, names, "is within one host and not zero")
    if not one_way:
        asymmetric = ~np.isclose(table, table.T, rtol=SAME, atol=0.0)
        _refuse(asymmetric, table, names, "differs from that of the other direction")
    return table


def _refuse(fault: Any, values: Floats, names: Sequence[str], why: str) -> None:
    if fault.any():
        i, j = divmod(int(np.argmax(fault)), len(names))
        raise InvalidValue(
            "distances.table", f"the distance from {names[i]!r} to {names[j]!r}, {values[i, j]:g}, {why}"
        )


def _read_row(values: Floats, index: dict[str, int], row: list[str], path: str, line: int) -> None:
    """Read one line of the file into its row of `values`."""
    name = row[0].strip()
    if name not in index:
        raise UnknownName("column of distances", name, index, path=path, line=line)
    if len(row) != len(index) + 1:
        raise InputError(f"{len(row) - 1} distances for {len(index)} hosts", path=path, line=line, text=name)
    if not np.isnan(values[index[name]]).all():
        raise InputError("a second row for this host", path=path, line=line, text=name)
    for column, text in enumerate(row[1:]):
        values[index[name], column] = read_number(text, "a distance", path, line)
        if np.isnan(values[index[name], column]):
            raise InputError("is not a distance", path=path, line=line, text=text)


LINKS, SWITCHES, EQUIVALENT, EQUIVALENT_2, TABLE = "links", "switches", "equivalent", "equivalent+2", "table"
CONVENTIONS = (LINKS, SWITCHES, EQUIVALENT, EQUIVALENT_2, TABLE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distances:
    """Distances between the hosts of an allocation, kept by groups of hosts with equal distances."""

    name: str
    """One of `CONVENTIONS`."""
    group: Ints
    """int32[h]: Group of each host, 0 to g - 1; hosts of one group have the same distances to all others."""
    between: Floats
    """float64[g, g]: Distance from any host of one group to any other host of another; ``between[a, a]`` is
    the distance of two different hosts of group `a`. ``inf`` if the routing does not connect them."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        group = np.array(self.group, np.int32)
        between = np.array(self.between, np.float64)
        if between.ndim != 2 or between.shape[0] != between.shape[1]:
            raise InvalidValue("Distances.between", f"has shape {between.shape}")
        if len(group) and (int(group.min()) < 0 or int(group.max()) >= len(between)):
            raise InvalidValue("Distances.group", f"must be from 0 to {len(between) - 1}")
        for field, values in (("group", group), ("between", between)):
            values.flags.writeable = False
            object.__setattr__(self, field, values)

    def __len__(self) -> int:
        return len(self.group)

    def at(self, row: Any, column: Any) -> Floats:
        """Return part of `between`, by any indices of rows and columns."""
        return np.asarray(self.between[row, column], np.float64)

    def of(self, source: ArrayLike, target: ArrayLike) -> Floats:
        """Return distances by host index (float64, shape of the arguments); 0 within a host."""
        i, j = np.asarray(source), np.asarray(target)
        return np.where(i == j, 0.0, self.at(self.group[i], self.group[j]))

    def matrix(self) -> Floats:
        """Return all distances (float64[h, h]); for few hosts."""
        found = self.at(self.group[:, None], self.group[None, :])
        np.fill_diagonal(found, 0.0)
        return found

    def between_slots(self, slots: Ints) -> Floats:
        """Return the distances between all slots (float64[s, s]), the smaller of both directions; for few.

        Args:
            slots (int32[h]): Slots of each host; those of one host are at distance 0.
        """
        found, host = self.matrix(), np.repeat(np.arange(len(slots)), slots)
        smaller: Floats = np.minimum(found, found.T)[np.ix_(host, host)]
        return smaller

    def rows(self, group: int) -> tuple[Floats, Floats]:
        """Return the distances (float64[g]) from a host of a group to each group, and those back."""
        return self.at(group, slice(None)), self.at(slice(None), group)

    def shortened(self, links: float) -> Distances:
        """Return the same distances, each reduced by `links` but not below zero."""
        return Distances(name=self.name, group=self.group, between=np.maximum(self.between - links, 0.0))

    @property
    def codes(self) -> tuple[Int8s, Floats] | None:
        """Distances as indices into a list of values (uint8[g, g], float64[n]), or None if not kept so."""
        return None

    @property
    def groups(self) -> int:
        """Number of groups; does not create `between`."""
        return len(self.between)

    @property
    def symmetric(self) -> bool:
        """True if both directions of every pair have the same distance."""
        return bool(np.array_equal(self.between, self.between.T))


TILE = 128
"""Rows and columns of a table that are compared with their transposes at once, so that they stay in cache."""


class WholeDistances(Distances):
    """Distances that are whole numbers of links, one byte each; ``between`` is created on first use.

    The distances of 10,000 single hosts need 100 MB.

    Args:
        name, group: As in `Distances`.
        links (uint8[g, g]): Links between groups, as ``between`` there.
        less: Number by which each distance is smaller, but not below zero: 1 if switches are counted.
    """

    def __init__(self, name: str, group: Ints, links: Int8s, less: int = 0) -> None:
        value = np.maximum(np.arange(int(links.max(initial=0)) + 1.0) - less, 0.0)
        for values in (group, links, value):
            values.flags.writeable = False
        set_ = object.__setattr__
        set_(self, "name", name)
        set_(self, "group", group)
        set_(self, "_links", links)
        set_(self, "_value", value)
        set_(self, "_less", less)

    @cached_property
    def between(self) -> Floats:
        """Distances between groups (float64[g, g]); see `Distances`."""
        found = self._value[self._links]
        found.flags.writeable = False
        return found

    @property
    def codes(self) -> tuple[Int8s, Floats]:
        """Distances as indices into a rising list of values (uint8[g, g], float64[n])."""
        return self._links, self._value

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self._links)

    @cached_property
    def symmetric(self) -> bool:
        """True if both directions of every pair have the same distance."""
        links, starts = self._links, range(0, len(self._links), TILE)
        tiles = ((slice(a, a + TILE), slice(b, b + TILE)) for a in starts for b in starts if a <= b)
        return all(np.array_equal(links[rows, columns], links[columns, rows].T) for rows, columns in tiles)

    def at(self, row: Any, column: Any) -> Floats:
        """Return part of `between`, by any indices of rows and columns."""
        return np.asarray(self._value[self._links[row, column]], np.float64)

    def shortened(self, links: float) -> Distances:
        """Return the same distances, each reduced by `links` but not below zero."""
        if links != int(links):
            return super().shortened(links)
        return WholeDistances(self.name, self.group, self._links, self._less + int(links))

    def __reduce__(self) -> tuple[type[WholeDistances], tuple[str, Ints, Int8s, int]]:
        return type(self), (self.name, self.group, self._links, self._less)

    _links: Int8s
    _value: Floats
    _less: int


def distances(name: str, routes: Routes, *, table: Any = None, one_way: bool = False) -> Distances:
    """Return the distances between the hosts of `routes` under a convention.

    Args:
        name: One of `CONVENTIONS`.
        table (DistanceTable or float[h, h]): For ``table``: by host name, or in the order of
            ``routes.hosts``.
        one_way: For ``table``: allow the two directions of a pair to differ.

    Raises:
        UnknownName: The convention is unknown, or a host is not in the table.
        InvalidValue: The table has another shape or an entry that is not a number, not finite or below zero,
            a host is not at distance zero from itself, or the table is not symmetric without `one_way`.
    """
    if name not in CONVENTIONS:
        raise UnknownName("distance convention", name, CONVENTIONS)
    if name == TABLE:
        return _of_table(routes, table, one_way)
    if table is not None:
        raise InvalidValue("distances.table", f"is only for {TABLE!r}, not for {name!r}")
    if name in (LINKS, SWITCHES):
        whole = routes.grouped_links()
        if whole is not None:
            return WholeDistances(name, *whole, less=int(name == SWITCHES))
        group, between = routes.grouped_hops()
        return Distances(
            name=name, group=group, between=between if name == LINKS else np.maximum(between - 1.0, 0.0)
        )

    group, between = equivalent_distances(routes, own_cables=name == EQUIVALENT_2)
    return Distances(name=name, group=group, between=between)


def _of_table(routes: Routes, table: Any, one_way: bool) -> Distances:
    """Return the distances of the user's own table."""
    if table is None:
        raise InvalidValue("distances.table", f"{TABLE!r} needs a table")
    names = [routes.fabric.names[host] for host in routes.hosts.tolist()]
    if isinstance(table, DistanceTable):
        values = table.between(names)
    else:
        values = np.asarray(table)
    group = np.arange(len(names), dtype=np.int32)
    return Distances(name=TABLE, group=group, between=check_distances(values, names, one_way=one_way))


def equivalent_distances(routes: Routes, *, own_cables: bool) -> tuple[Ints, Floats]:
    """Return the equivalent distances between the hosts of `routes`, by groups of hosts with equal routes.

    Args:
        own_cables: Count a host's own cables, as in section 4: with one cable per host this adds two.
            Otherwise a host is one node with the switches that it is attached to. Hosts that forward have no
            cables of their own.

    Returns:
        group: Group of each host.
        between: As in ``mapping.distances.distances.Distances``. Parallel cables are parallel resistors.
    """
    flows, fabric = routes.flows, routes.fabric
    group, first, second = hosts_routed_alike(routes)
    between = np.empty((len(first), len(first)))
    links = fabric.links
    resistors = Resistors(links.source, links.target, links.cables, fabric.forwards, own_cables)
    fill_resistances(flows, new_scratch(flows), first, second, routes.hosts, resistors, between)
    return group, between


def hosts_routed_alike(routes: Routes) -> tuple[Ints, Ints, Ints]:
    """Return the group of each host, the first host of each group, and the second (-1 if none).

    Hosts are in one group if their traffic starts and ends at the same places over the same number of cables.
    """
    ends, forwards = routes.flows.ends, routes.fabric.forwards[routes.hosts].tolist()
    cables = np.append(routes.fabric.links.cables, 0)
    rail_ptr, port_ptr, target_ptr = ends.rail_ptr.tolist(), ends.port_ptr.tolist(), ends.target_ptr.tolist()
    number, row, target = ends.rail_number.tolist(), ends.port_row.tolist(), ends.target.tolist()
    up, down = (
        np.add.reduceat(np.append(cables[link], 0), ptr[:-1]) * (np.diff(ptr) > 0)
        for ptr, link in ((ends.up_ptr, ends.up_link), (ends.down_ptr, ends.down_link))
    )
    ports = list(zip(row, up.tolist(), down.tolist(), strict=True))
    number_of: dict[tuple[object, ...], int] = {}
    group = np.empty(len(forwards), np.int32)
    first: list[int] = []
    second: list[int] = []
    for host, direct in enumerate(forwards):
        key = tuple(
            (number[r], *((*ports[p], *target[target_ptr[p] : target_ptr[p + 1]])
                          for p in range(port_ptr[r], port_ptr[r + 1])))
            for r in range(rail_ptr[host], rail_ptr[host + 1])
        )  # fmt: skip
        index = number_of.setdefault((host if direct else -1, *key), len(first))
        group[host] = index
        if index == len(first):
            first.append(host)
            second.append(-1)
        elif second[index] < 0:
            second[index] = host
    return group, np.array(first, np.int32), np.array(second, np.int32)
