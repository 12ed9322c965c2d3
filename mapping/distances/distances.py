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
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mapping.distances.distance_tables import DistanceTable, check_distances
from mapping.routing.routes import Routes
from registry.errors import InvalidValue, UnknownName
from registry.model import Floats, Int8s, Ints
from registry.model.views import one_line

LINKS, SWITCHES, EQUIVALENT, EQUIVALENT_2, TABLE = "links", "switches", "equivalent", "equivalent+2", "table"
CONVENTIONS = (LINKS, SWITCHES, EQUIVALENT, EQUIVALENT_2, TABLE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distances:
    """Distances between the hosts of an allocation, kept by groups of hosts with equal distances.

    Attributes
    ----------
    name : str
        One of `CONVENTIONS`.
    group : int32[h]
        Group of each host, 0 to g - 1; hosts of one group have the same distances to all others.
    between : float64[g, g]
        Distance from any host of one group to any other host of another; ``between[a, a]`` is the distance
        of two different hosts of group `a`. ``inf`` if the routing does not connect them.
    """

    name: str
    group: Ints
    between: Floats

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

        Parameters
        ----------
        slots : int32[h]
            Slots of each host; those of one host are at distance 0.
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

    Parameters
    ----------
    name, group
        As in `Distances`.
    links : uint8[g, g]
        Links between groups, as ``between`` there.
    less : int
        Number by which each distance is smaller, but not below zero: 1 if switches are counted.
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

    Parameters
    ----------
    name : str
        One of `CONVENTIONS`.
    table : DistanceTable or float[h, h], optional
        For ``table``: by host name, or in the order of ``routes.hosts``.
    one_way : bool
        For ``table``: allow the two directions of a pair to differ.

    Raises
    ------
    UnknownName
        The convention is unknown, or a host is not in the table.
    InvalidValue
        The table has another shape or an entry that is not a number, not finite or below zero, a host is not
        at distance zero from itself, or the table is not symmetric without `one_way`.
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
    from mapping.distances.equivalent import equivalent_distances  # compiles a kernel that few need

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
