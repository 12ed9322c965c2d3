"""Links that carry the bytes between two hosts, and the time of a byte on the slowest of them."""

from __future__ import annotations

import numpy as np

from mapping.kernels.decorators import allocating
from mapping.routing.kernels.flows import FlowArrays, Scratch, pair_flows
from registry.model import Floats, Ints, Longs


@allocating
def fill_seconds(
    flows: FlowArrays, scratch: Scratch, source: Ints, target: Ints, rate: Floats, found: Floats
) -> None:
    """Fill the time of a byte on the slowest of the links that it is divided over.

    Args:
        flows, scratch: From ``Routes.flows`` and ``new_scratch``.
        source, target (int32[p]): Hosts of each pair.
        rate (float64[m]): Seconds of a byte on each link; 0 for links that do not count.
        found (float64[p]): Filled; ``inf`` if the routing does not connect the hosts.
    """
    links, shares = np.empty(flows.max_entries, np.int32), np.empty(flows.max_entries)
    for pair in range(len(source)):
        i, j = source[pair], target[pair]
        count = pair_flows(flows, scratch, int(np.int64(i)), int(np.int64(j)), links, shares)
        found[pair] = np.inf if count < 0 else 0.0
        for e in range(count):
            found[pair] = max(found[pair], shares[e] * rate[links[e]])


@allocating
def list_flows(
    flows: FlowArrays, scratch: Scratch, source: Ints, target: Ints, ptr: Longs, link: Ints, share: Floats
) -> None:
    """List the links of each pair of hosts, and the part of its bytes on each.

    Args:
        flows, scratch: From ``Routes.flows`` and ``new_scratch``.
        source, target (int32[p]): Hosts of each pair, which the routing connects.
        ptr (int64[p + 1]), link, share: Filled; room for ``flows.max_entries`` links of each pair.
    """
    links, shares, filled = np.empty(flows.max_entries, np.int32), np.empty(flows.max_entries), 0
    for pair in range(len(source)):
        i, j = source[pair], target[pair]
        count = pair_flows(flows, scratch, int(np.int64(i)), int(np.int64(j)), links, shares)
        link[filled : filled + count], share[filled : filled + count] = links[:count], shares[:count]
        filled += count
        ptr[pair + 1] = filled
