"""Equivalent distances: the electrical resistance between hosts over the paths of a routing.

Source: Orduña, Silla and Duato, "On the development of a communication-aware task mapping technique", 2004,
section 3: every link of a path that the routing uses is a resistor of 1 ohm. Paths that it does not use do
not count, and a routing may use paths that are not minimal (up*/down*).
"""

from __future__ import annotations

import numpy as np

from mapping.distances.kernels.resistance import Resistors, fill_resistances
from mapping.routing.kernels.flows import new_scratch
from mapping.routing.routes import Routes
from registry.model import Floats, Ints


def equivalent_distances(routes: Routes, *, own_cables: bool) -> tuple[Ints, Floats]:
    """Return the equivalent distances between the hosts of `routes`, by groups of hosts with equal routes.

    Parameters
    ----------
    own_cables : bool
        Count a host's own cables, as in section 4: with one cable per host this adds two. Otherwise a host is
        one node with the switches that it is attached to. Hosts that forward have no cables of their own.

    Returns
    -------
    group : int32[h]
        Group of each host.
    between : float64[g, g]
        As in ``mapping.distances.distances.Distances``. Parallel cables are parallel resistors.
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
