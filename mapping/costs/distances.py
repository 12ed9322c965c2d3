"""What a byte between two hosts costs, under the conventions of the literature, each under its own name.

``links``
    Mean links that the routing crosses, hosts' own cables counted (hops of Hoefler and Snir 2011).
``switches``
    One less: the switches that are crossed (Li et al. 2020).
``equivalent``
    Equivalent distance of the switches by Kirchhoff's laws (Orduña, Silla and Duato 2004, section 3).
``equivalent+2``
    The same plus one for either host's own cable (section 4 there).
``table``
    The user's own, by host.

Within a host every distance is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mapping.costs.distance_tables import DistanceTable, check_distances
from mapping.routing.routes import Routes
from registry.errors import InvalidValue, UnknownName
from registry.model import Floats, Int8s, Ints

LINKS, SWITCHES, EQUIVALENT, EQUIVALENT_2, TABLE = "links", "switches", "equivalent", "equivalent+2", "table"
CONVENTIONS = (LINKS, SWITCHES, EQUIVALENT, EQUIVALENT_2, TABLE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distances:
    """Distances between the hosts of an allocation, hosts that are alike taken together.

    Attributes
    ----------
    name : str
        One of `CONVENTIONS`.
    group : int32[h]
        Group of each host, 0 to g - 1; hosts of one group have the same distances to all others.
    between : float64[g, g]
        From any host of one group to any other host of another; ``between[a, a]`` is the distance of
        two different hosts of group `a`. ``inf`` where the routing joins none.
    """

    name: str
    group: Ints
    between: Floats

    def __post_init__(self) -> None:
        group = np.array(self.group, np.int32)
        between = np.array(self.between, np.float64)
        if between.ndim != 2 or between.shape[0] != between.shape[1]:
            raise InvalidValue("Distances.between", f"has shape {between.shape}")
        if len(group) and (int(group.min()) < 0 or int(group.max()) >= len(between)):
            raise InvalidValue("Distances.group", f"outside 0 .. {len(between) - 1}")
        for field, values in (("group", group), ("between", between)):
            values.flags.writeable = False
            object.__setattr__(self, field, values)

    def __len__(self) -> int:
        return len(self.group)

    def of(self, source: ArrayLike, target: ArrayLike) -> Floats:
        """float64, shape of the arguments: distance by host index; 0 within a host."""
        i, j = np.asarray(source), np.asarray(target)
        return np.where(i == j, 0.0, self.between[self.group[i], self.group[j]])

    def matrix(self) -> Floats:
        """float64[h, h]: all distances; for a small number of hosts."""
        found = self.between[self.group[:, None], self.group[None, :]]
        np.fill_diagonal(found, 0.0)
        return found

    def ways(self, group: int) -> tuple[Floats, Floats]:
        """float64[g] twice: from a host of a group to another of each group, and back."""
        return self.between[group], self.between[:, group]

    def less(self, links: float) -> Distances:
        """The same distances, so much shorter each, though not below zero."""
        return Distances(name=self.name, group=self.group, between=np.maximum(self.between - links, 0.0))

    @property
    def codes(self) -> tuple[Int8s, Floats] | None:
        """uint8[g, g] and float64[n]: the distances as places in a list of values, where they are kept so."""
        return None

    @property
    def groups(self) -> int:
        """Number of groups, without making `between` where it is not kept."""
        return len(self.between)

    @property
    def symmetric(self) -> bool:
        """Whether both directions of every pair are equally far."""
        return bool(np.array_equal(self.between, self.between.T))


def distances(name: str, routes: Routes, *, table: Any = None, one_way: bool = False) -> Distances:
    """Distances between the hosts of `routes` under a convention.

    Parameters
    ----------
    name : str
        One of `CONVENTIONS`.
    table : DistanceTable or float[h, h], optional
        For ``table``: by host name, or in the order of ``routes.hosts``.
    one_way : bool
        For ``table``: both directions of a pair may differ.

    Raises
    ------
    UnknownName
        No such convention, or a host that the table lacks.
    InvalidValue
        A table of another shape, with an entry that is not a number, not finite or below zero, with a
        host that is not at distance zero from itself, or not symmetric without `one_way`.
    """
    if name not in CONVENTIONS:
        raise UnknownName("distance convention", name, CONVENTIONS)
    if name == TABLE:
        return _of_table(routes, table, one_way)
    if table is not None:
        raise InvalidValue("distances.table", f"goes with {TABLE!r}, not with {name!r}")
    if name in (LINKS, SWITCHES):
        whole = routes.grouped_links()
        if whole is not None:
            from mapping.costs.whole_distances import WholeDistances  # which needs this module

            return WholeDistances(name, *whole, less=int(name == SWITCHES))
        group, between = routes.grouped_hops()
        return Distances(
            name=name, group=group, between=between if name == LINKS else np.maximum(between - 1.0, 0.0)
        )
    from mapping.costs.equivalent import equivalent_distances  # a kernel to compile that few need

    group, between = equivalent_distances(routes, own_cables=name == EQUIVALENT_2)
    return Distances(name=name, group=group, between=between)


def _of_table(routes: Routes, table: Any, one_way: bool) -> Distances:
    if table is None:
        raise InvalidValue("distances.table", f"{TABLE!r} needs a table")
    names = [routes.fabric.names[host] for host in routes.hosts.tolist()]
    if isinstance(table, DistanceTable):
        values = table.between(names)
    else:
        values = np.asarray(table)
    group = np.arange(len(names), dtype=np.int32)
    return Distances(name=TABLE, group=group, between=check_distances(values, names, one_way=one_way))
