"""Equivalent distances: resistance between hosts on the paths that a routing supplies.

Source: Orduña, Silla and Duato, "On the development of a communication-aware task mapping technique",
2004, section 3: every link of a path that the routing uses is a resistor of 1 ohm. Paths that it does
not use count for nothing, and a routing may use paths that are not minimal (up*/down*).
"""

from __future__ import annotations

import numpy as np

from mapping.distances.kernels.resistance import fill_resistances
from mapping.routing.kernels.flows import new_scratch
from mapping.routing.routes import Routes
from registry.model import Floats, Ints


def equivalent_distances(routes: Routes, *, own_cables: bool) -> tuple[Ints, Floats]:
    """Equivalent distance between the hosts of `routes`, hosts that are routed alike taken together.

    Parameters
    ----------
    own_cables : bool
        Whether a host's own cables count, as in section 4: with one cable a host this adds two. Otherwise
        a host is one with the switches that it hangs on. Hosts that forward have no cables of their own.

    Returns
    -------
    group : int32[h]
        Group of each host.
    between : float64[g, g]
        As in ``mapping.distances.grouped_distances.Distances``. Parallel cables are parallel resistors.
    """
    flows, fabric = routes.flows, routes.fabric
    group, first, second = alike(routes)
    between = np.empty((len(first), len(first)))
    links = fabric.links
    fill_resistances(
        flows,
        new_scratch(flows),
        first,
        second,
        routes.hosts,
        fabric.forwards,
        links.source,
        links.target,
        links.cables,
        own_cables,
        between,
    )
    return group, between


def alike(routes: Routes) -> tuple[Ints, Ints, Ints]:
    """Group of each host, its first host, and its second (-1 none).

    Hosts are alike where their traffic starts from and is led to the same places over as many cables.
    """
    ends, forwards = routes.flows.ends, routes.fabric.forwards[routes.hosts].tolist()
    cables = np.append(routes.fabric.links.cables, 0)
    rail_ptr, port_ptr, target_ptr = ends.rail_ptr.tolist(), ends.port_ptr.tolist(), ends.target_ptr.tolist()
    number, row, target = ends.rail_number.tolist(), ends.port_row.tolist(), ends.target.tolist()
    up, down = (
        np.add.reduceat(np.append(cables[link], 0), ptr[:-1]) * (np.diff(ptr) > 0)
        for ptr, link in ((ends.up_ptr, ends.up_link), (ends.down_ptr, ends.down_link))
    )
    ways = list(zip(row, up.tolist(), down.tolist(), strict=True))
    found: dict[tuple[object, ...], int] = {}
    group = np.empty(len(forwards), np.int32)
    first: list[int] = []
    second: list[int] = []
    for host, direct in enumerate(forwards):
        key = tuple(
            (number[r], *((*ways[p], *target[target_ptr[p] : target_ptr[p + 1]])
                          for p in range(port_ptr[r], port_ptr[r + 1])))
            for r in range(rail_ptr[host], rail_ptr[host + 1])
        )  # fmt: skip
        at = found.setdefault((host if direct else -1, *key), len(first))
        group[host] = at
        if at == len(first):
            first.append(host)
            second.append(-1)
        elif second[at] < 0:
            second[at] = host
    return group, np.array(first, np.int32), np.array(second, np.int32)
