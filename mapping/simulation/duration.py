"""How long a simulation takes to compute, before it starts: by the links that packets or flits will cross."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from mapping.simulation.messages import Messages
from mapping.simulation.options import Options
from registry.model import Fabric, Placement
from registry.model.simulation import FLITS, PACKETS

HOPS_A_SECOND = MappingProxyType({PACKETS: 2e6, FLITS: 9e6})
"""Links crossed by packets or flits in a second of computing; large fabrics take up to twice as long. Record:
bench/results/simulation/speed.json."""
SAMPLED = 32
"""Most hosts whose distances are computed."""


def expected_seconds(
    fabric: Fabric, placement: Placement, messages: Messages, mode: str, options: Options
) -> float:
    """Return the seconds that a simulation takes to compute, right within a factor of about three.

    Distances are the fewest links, from `SAMPLED` hosts that stand for all.
    """
    host = placement.host_of_rank
    source, target = host[messages.rank], host[messages.receiver]
    size = options.flit_bytes if mode == FLITS else options.packet_bytes
    parts = np.where(source != target, np.maximum(-(-messages.bytes // size), 1), 0)
    senders = np.unique(source[parts > 0])
    if not len(senders):
        return 0.0
    chosen = senders[np.linspace(0, len(senders) - 1, min(SAMPLED, len(senders))).astype(np.int64)]
    arcs = (np.ones(len(fabric.neighbour)), fabric.neighbour, fabric.indptr)
    graph = csr_array(arcs, shape=(len(fabric), len(fabric)))
    hops = shortest_path(graph, unweighted=True, indices=chosen)
    sampled = np.isin(source, chosen) & (parts > 0)
    far = hops[np.searchsorted(chosen, source[sampled]), target[sampled]]
    known = np.isfinite(far)
    weight = parts[sampled][known].astype(np.float64)
    mean = float(weight @ far[known]) / max(float(weight.sum()), 1.0)
    return float(parts.sum()) * mean / HOPS_A_SECOND[mode]
