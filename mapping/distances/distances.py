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

from typing import Any

import numpy as np

from mapping.distances.distance_tables import DistanceTable, check_distances
from mapping.distances.grouped_distances import Distances
from mapping.distances.whole_distances import WholeDistances
from mapping.routing.routes import Routes
from registry.errors import InvalidValue, UnknownName

LINKS, SWITCHES, EQUIVALENT, EQUIVALENT_2, TABLE = "links", "switches", "equivalent", "equivalent+2", "table"
CONVENTIONS = (LINKS, SWITCHES, EQUIVALENT, EQUIVALENT_2, TABLE)


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
            return WholeDistances(name, *whole, less=int(name == SWITCHES))
        group, between = routes.grouped_hops()
        return Distances(
            name=name, group=group, between=between if name == LINKS else np.maximum(between - 1.0, 0.0)
        )
    from mapping.distances.equivalent import equivalent_distances  # a kernel to compile that few need

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
