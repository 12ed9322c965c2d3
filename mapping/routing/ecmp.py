"""Equal-cost multipath: the flows of a pair of hosts are hashed onto shortest paths.

At every switch a hash of flow and switch selects one of all cables on shortest paths to the destination, each
with the same probability (Hopps, "Analysis of an equal-cost multi-path algorithm", RFC 2992). The bytes of a
pair are divided into equal flows. Hash functions of real switches are not published; a seed selects one here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mapping.routing.kernels.channels import Channels
from mapping.routing.kernels.single_paths import ArcCables, HashedFlows, carry_hashed
from mapping.routing.network import attach
from mapping.routing.routes import ALL_CONNECTED
from mapping.routing.shortest_paths import ShortestPaths
from registry.errors import InvalidValue
from registry.model import Fabric, Floats, Ints, Longs


def build(
    fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, paths: int = 1, seed: int = 0
) -> Ecmp:
    """Return routes with flows hashed onto shortest paths.

    Parameters
    ----------
    paths : int
        Flows of each pair of hosts between two ports; at least 1.
    seed : int
        Seed of the hash, 0 to 2**62.
    """
    if paths < 1:
        raise InvalidValue("ecmp.paths", f"{paths} is below 1")
    if not 0 <= seed < 1 << 62:
        raise InvalidValue("ecmp.seed", f"{seed} is not from 0 to 2**62")
    return Ecmp(fabric, hosts, rails, paths, seed)


class Ecmp(ShortestPaths):
    """Routes whose flows use one shortest path each.

    `load` is exact for the seed. `flows`, which searches use, are those of all shortest paths: the mean over
    all seeds, if every switch has the same number of cables on shortest paths, else an approximation.
    """

    def __init__(self, fabric: Fabric, hosts: ArrayLike, rails: str, paths: int, seed: int) -> None:
        super().__init__(fabric, *attach(fabric, hosts), rails)
        self.name = f"ecmp:paths={paths},seed={seed}"
        self.paths = paths
        self.seed = seed

    def _crossing(self, channels: Channels, amount: Floats, link: int) -> Floats:
        """Return the bytes of each channel on a link; routes only channels with a shortest path over it."""
        crossing = super()._crossing(channels, amount, link)
        for index in np.flatnonzero(crossing).tolist():
            own = slice(index, index + 1)
            one = Channels._make(column[own] for column in channels)
            crossing[index] = self._carry_channels(one, amount[own])[0][link]
        return crossing

    def _carry_channels(self, channels: Channels, amount: Floats) -> tuple[Floats, Ints]:
        """Route channels; see `Routes`. A pair that occurs twice uses the same paths."""
        port_host = self.ends.port_host
        first_port = np.searchsorted(port_host, port_host)  # of each port's host
        key = self._key(port_host[channels.source], port_host[channels.port])
        key += (channels.source - first_port[channels.source]) * 256
        key += channels.port - first_port[channels.port]
        row = self._arrays.port_row[channels.source]
        return self._carry_hashed(row, channels.target, key, amount)

    def _key(self, source: Ints, target: Ints) -> Longs:
        """Return the hash key (int64) of the flows from one host to another, from the hosts' vertices."""
        vertices = len(self.fabric)
        return (self.hosts[source].astype(np.int64) * vertices + self.hosts[target]) * 65536

    def _carry_hashed(self, row: Ints, target: Ints, key: Longs, amount: Floats) -> tuple[Floats, Ints]:
        cables, order = self._network.cables, np.argsort(target, kind="stable")
        first = np.searchsorted(target[order], np.arange(len(self._vertex) + 1))
        loads, steps = np.zeros(len(self.fabric.links)), np.empty(len(row), np.int32)
        bundles = ArcCables(cables.ptr, cables.link, self.fabric.links.cables)
        flows = HashedFlows(first, self._vertex[row[order]], key[order], amount[order], self.paths, self.seed)
        steps[order] = carry_hashed(self._network.arcs, bundles, self._vertex, flows, loads)
        return loads, steps
