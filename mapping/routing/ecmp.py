"""Equal-cost multipath by flow hash: each flow of a pair of hosts goes one shortest way.

At every switch a hash of the flow and the switch takes one of all cables that lead nearer to the
destination, each with the same chance (Hopps, "Analysis of an equal-cost multi-path algorithm", RFC 2992).
A pair's bytes are cut into so many equal flows; real hashes are not published, so a seed stands for one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mapping.routing.kernels.channels import Channels
from mapping.routing.kernels.ecmp import carry_hashed
from mapping.routing.network import end_points, transit_network
from mapping.routing.routes import ALL_CONNECTED, check_rails
from mapping.routing.shortest_paths import ShortestPaths
from registry.errors import InvalidValue
from registry.model import Fabric, Floats, Ints, Longs


def build(
    fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, paths: int = 1, seed: int = 0
) -> Ecmp:
    """Routes between `hosts` (vertices) with flows hashed onto shortest ways.

    Parameters
    ----------
    paths : int
        Flows that each pair of hosts has between two ports; at least 1.
    seed : int
        Of the hash, 0 to 2**62.

    Raises
    ------
    InvalidValue
        No flows, or a seed below zero.
    UnknownName
        A rails rule that there is not.
    """
    check_rails(rails)
    if paths < 1:
        raise InvalidValue("ecmp.paths", f"{paths} is below 1")
    if not 0 <= seed < 1 << 62:
        raise InvalidValue("ecmp.seed", f"{seed} is not from 0 to 2**62")
    return Ecmp(fabric, np.asarray(hosts, np.int32).reshape(-1), rails, paths, seed)


class Ecmp(ShortestPaths):
    """Routes whose flows each go one shortest way.

    `flows`, which searches walk, are those of all shortest paths: a surrogate, what hashing gives in the
    mean of all seeds only where every switch has as many ways on. `load` is exact for the seed.
    """

    def __init__(self, fabric: Fabric, hosts: Ints, rails: str, paths: int, seed: int) -> None:
        ends = end_points(fabric, hosts)
        super().__init__(fabric, ends, transit_network(fabric, ends), rails)
        self.name = f"ecmp:paths={paths},seed={seed}"
        self.paths = paths
        self.seed = seed

    def _crossing(self, channels: Channels, amount: Floats, link: int) -> Floats:
        """See `Routes`: hashed ways are shortest ways, so only channels with one over the link are asked."""
        found = super()._crossing(channels, amount, link)
        for at in np.flatnonzero(found).tolist():
            own = slice(at, at + 1)
            one = Channels(
                channels.source[own], channels.port[own], channels.target[own], channels.weight[own]
            )
            found[at] = self._carry_channels(one, amount[own])[0][link]
        return found

    def _carry_channels(self, channels: Channels, amount: Floats) -> tuple[Floats, Ints]:
        """See `Routes`. A pair given twice takes the same ways."""
        port_host = self.ends.port_host
        key = self._key(port_host[channels.source], port_host[channels.port])
        key += (channels.source - _first_port(port_host)[channels.source]) * 256
        key += channels.port - _first_port(port_host)[channels.port]
        row = self._arrays.port_row[channels.source]
        return self._carry_hashed(row, channels.target, key, amount)

    def _key(self, source: Ints, target: Ints) -> Longs:
        """int64: what the flows from one host to another are hashed by: the hosts' vertices."""
        vertices = len(self.fabric)
        return (self.hosts[source].astype(np.int64) * vertices + self.hosts[target]) * 65536

    def _carry_hashed(self, row: Ints, target: Ints, key: Longs, amount: Floats) -> tuple[Floats, Ints]:
        cables, order = self._network.cables, np.argsort(target, kind="stable")
        first = np.searchsorted(target[order], np.arange(len(self._vertex) + 1))
        loads, steps = np.zeros(len(self.fabric.links)), np.empty(len(row), np.int32)
        steps[order] = carry_hashed(
            self._network.arcs, cables.ptr, cables.link, self.fabric.links.cables, self._vertex, first,
            self._vertex[row[order]], key[order], amount[order], self.paths, self.seed, loads,
        )  # fmt: skip
        return loads, steps


def _first_port(port_host: Ints) -> Longs:
    """int64[p]: first port of each port's host."""
    return np.searchsorted(port_host, port_host)
