"""Traffic by way of a switch drawn from all (`mapping.routing.adaptive`), taken apart link by link."""

from __future__ import annotations

import numpy as np

from mapping.routing.kernels.paths import Goals
from mapping.routing.network import EndPoints, Network
from mapping.routing.on_link import arcs_with, by_paths
from mapping.routing.shortest_paths import ShortestPaths
from registry.model import Fabric, Floats, Ints


class Detours(ShortestPaths):
    """All traffic on non-minimal ways, for `Routes.on_link`; its other methods are those of shortest paths.

    Parameters
    ----------
    middle : int32[w]
        Vertices of the network that ways are led over, each with the same chance.
    """

    def __init__(self, fabric: Fabric, ends: EndPoints, network: Network, rails: str, middle: Ints) -> None:
        super().__init__(fabric, ends, network, rails)
        self._middle = middle

    def _part_on(self, row: Ints, target: Ints, link: int) -> Floats:
        network, middle = self._network, self._middle
        to_middle = Goals(middle, np.full(len(middle), -1, np.int32))
        every = np.arange(len(middle), dtype=np.int32)
        begin, of_row = np.unique(row, return_inverse=True)
        end, of_target = np.unique(target, return_inverse=True)
        outward, inward = np.zeros(len(begin)), np.zeros(len(end))
        for arc, share in zip(*arcs_with(network.cables, link), strict=True):
            out = by_paths(
                *(network.arcs, int(arc), np.repeat(self._vertex[begin], len(middle)), to_middle),
                np.tile(every, len(begin)),
            )
            back = by_paths(
                *(network.arcs, int(arc), np.repeat(middle, len(end)), self._goals),
                np.tile(end, len(middle)),
            )
            outward += share * out.reshape(len(begin), len(middle)).mean(axis=1)
            inward += share * back.reshape(len(middle), len(end)).mean(axis=0)
        return np.where(row != target, outward[of_row] + inward[of_target], 0.0)
