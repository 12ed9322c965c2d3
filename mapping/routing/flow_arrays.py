"""Construction of the arrays that search kernels read; arrays that a routing does not use are empty."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mapping.routing.kernels.channels import Ends
from mapping.routing.kernels.flows import FlowArrays, GraphArrays, ListArrays
from mapping.routing.kernels.paths import HopArray
from mapping.routing.kernels.tables import TableArrays
from mapping.routing.network import Network
from registry.model import Int8s, Ints


def empty_flow_arrays(
    kind: int, links: int, max_entries: int, max_channels: int, ends: Ends, hops: HopArray
) -> FlowArrays:
    """Return `FlowArrays` of one kind with empty graph, tables and lists; replace those of the kind."""
    none, ptr, shares = empty(0), empty(1, dtype=np.int64), empty(0, dtype=np.float64)
    return FlowArrays(
        kind=kind,
        links=links,
        max_entries=max_entries,
        max_channels=max_channels,
        ends=ends,
        hops=hops,
        graph=GraphArrays(
            *(ptr, none, ptr, none, shares, empty(0, dtype=np.bool_), none),
            *(empty(0, 0, dtype=hops.dtype), empty(0, 0, dtype=np.uint8)),
        ),
        tables=TableArrays(empty(0, 0, dtype=np.uint8), empty(0, 0), none, none, none),
        row_switch=none,
        lid=none,
        lists=ListArrays(ptr, none, shares),
    )


def graph_arrays(
    network: Network, vertex: Ints, *, hops_to: HopArray | None = None, next_arc: Int8s | None = None
) -> GraphArrays:
    """Return the network as search kernels read it, with a table of hops or of arcs to follow."""
    return GraphArrays(
        arc_ptr=network.arcs.out_ptr,
        arc_head=network.arcs.head,
        link_ptr=network.cables.ptr,
        link=network.cables.link,
        share=network.cables.share,
        forwards=network.arcs.forwards,
        vertex=vertex,
        hops_to=empty(0, 0, dtype=np.int8) if hops_to is None else hops_to,
        next_arc=empty(0, 0, dtype=np.uint8) if next_arc is None else next_arc,
    )


def empty(*shape: int, dtype: Any = np.int32) -> NDArray[Any]:
    """Return an array of zeros of this shape (by default int32)."""
    return np.zeros(shape, dtype)
