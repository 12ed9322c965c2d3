"""The arrays that search kernels walk, put together: what a routing leaves out is empty."""

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


def flow_arrays(
    kind: int,
    *,
    links: int,
    max_entries: int,
    max_channels: int,
    ends: Ends,
    hops: HopArray,
    graph: GraphArrays | None = None,
    tables: TableArrays | None = None,
    row_switch: Ints | None = None,
    lid: Ints | None = None,
    lists: ListArrays | None = None,
) -> FlowArrays:
    """Arrays of one kind; parameters as in ``mapping.routing.kernels.flows.FlowArrays``."""
    none = empty(0)
    return FlowArrays(
        kind=kind,
        links=links,
        max_entries=max_entries,
        max_channels=max_channels,
        ends=ends,
        hops=hops,
        graph=_no_graph(hops) if graph is None else graph,
        tables=TableArrays(empty(0, 0, dtype=np.uint8), empty(0, 0), none, none, none)
        if tables is None
        else tables,
        row_switch=none if row_switch is None else row_switch,
        lid=none if lid is None else lid,
        lists=ListArrays(empty(1, dtype=np.int64), none, empty(0, dtype=np.float64))
        if lists is None
        else lists,
    )


def graph_arrays(
    network: Network, vertex: Ints, *, hops_to: HopArray | None = None, next_arc: Int8s | None = None
) -> GraphArrays:
    """The network as search kernels walk it, with a table of hops or of arcs to follow."""
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
    """An array without entries, or of zeros."""
    return np.zeros(shape, dtype)


def _no_graph(hops: HopArray) -> GraphArrays:
    none, ptr, shares = empty(0), empty(1, dtype=np.int64), empty(0, dtype=np.float64)
    return GraphArrays(
        *(ptr, none, ptr, none, shares, empty(0, dtype=np.bool_), none),
        *(empty(0, 0, dtype=hops.dtype), empty(0, 0, dtype=np.uint8)),
    )
