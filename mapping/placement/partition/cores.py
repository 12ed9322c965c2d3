"""Cores for the ranks of a placement on hosts with known layouts, and the bytes that they save.

`mapping.placement.partition.slots` chooses the cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mapping.placement.partition.slots import bind_within_hosts, numa_bytes
from registry.errors import UnknownName
from registry.model import Allocation, Fabric, Ints, Placement, Profile
from registry.model.host_layout import HostLayout

ALL = ""
"""Name of the layout of all hosts without their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreBinding:
    """Cost of the chosen cores, and of ranks in ascending order on the first cores.

    Attributes
    ----------
    hosts, without_layout : int
        Number of hosts with ranks, and of those without a layout, where ranks stay in order.
    crossing_bytes, crossing_bytes_in_order : float
        Bytes between two ranks of one host in different NUMA domains.
    weighted_bytes, weighted_bytes_in_order : float
        Bytes times relative distance, including the distance to the adapter
        (`mapping.placement.partition.slots.numa_bytes`).
    """

    hosts: int
    without_layout: int
    crossing_bytes: float
    crossing_bytes_in_order: float
    weighted_bytes: float
    weighted_bytes_in_order: float


def layouts_on(
    fabric: Fabric, allocation: Allocation, layouts: Mapping[str, HostLayout]
) -> dict[int, HostLayout]:
    """Return the layouts of the hosts of an allocation, by vertex.

    Parameters
    ----------
    layouts : mapping of str to HostLayout
        Layouts by name of a host of the fabric (a domain after the first dot is ignored), or under `ALL` for
        all hosts without their own. Hosts outside the allocation are allowed.

    Raises
    ------
    UnknownName
        A host that the fabric lacks.
    """
    known = {fabric.names[vertex]: int(vertex) for vertex in fabric.hosts}
    found: dict[int, HostLayout] = {}
    for name, layout in layouts.items():
        if name == ALL:
            continue
        vertex = known.get(name, known.get(name.partition(".")[0]))
        if vertex is None:
            raise UnknownName("host", name, known, remedy="name the host of a layout as HOST=FILE")
        found[vertex] = layout
    if ALL in layouts:
        return {vertex: found.get(vertex, layouts[ALL]) for vertex in allocation.hosts.tolist()}
    return {vertex: found[vertex] for vertex in allocation.hosts.tolist() if vertex in found}


def bind_cores(
    profile: Profile, placement: Placement, layouts: Mapping[int, HostLayout]
) -> tuple[Placement, CoreBinding]:
    """Return the placement with a core for each rank, and the cost of the cores.

    Parameters
    ----------
    layouts : mapping of int to HostLayout
        Layouts by vertex. Ranks of other hosts get cores 0, 1, ... in ascending order, and no CPUs.

    Raises
    ------
    InvalidPlacement
        Another number of ranks than in the profile, or more ranks on a host than cores.
    """
    core, before = bind_within_hosts(profile, placement, layouts), placement.slot_of_rank
    cpu = np.full(placement.ranks, -1, np.int32)
    hosts = np.unique(placement.host_of_rank).tolist()
    for vertex in hosts:
        if vertex in layouts:
            here = placement.host_of_rank == vertex
            cpu[here] = layouts[vertex].core_cpu[core[here]]
    binding = CoreBinding(
        hosts=len(hosts),
        without_layout=sum(vertex not in layouts for vertex in hosts),
        crossing_bytes=crossing_bytes(profile, placement, layouts, core),
        crossing_bytes_in_order=crossing_bytes(profile, placement, layouts, before),
        weighted_bytes=numa_bytes(profile, placement, layouts, core),
        weighted_bytes_in_order=numa_bytes(profile, placement, layouts, before),
    )
    return replace(placement, core_of_rank=core, cpu_of_rank=cpu), binding


def crossing_bytes(
    profile: Profile, placement: Placement, layouts: Mapping[int, HostLayout], core_of_rank: Ints
) -> float:
    """Return the bytes between ranks of one host in different NUMA domains, on hosts with a layout.

    Parameters
    ----------
    core_of_rank : int32[ranks]
        Core of each rank within its host's layout.
    """
    host = placement.host_of_rank
    domain = np.zeros(placement.ranks, np.int32)
    for vertex in np.unique(host).tolist():
        if vertex in layouts:
            here = host == vertex
            domain[here] = layouts[vertex].core_domain[core_of_rank[here]]
    source = np.repeat(np.arange(profile.ranks), np.diff(profile.indptr))
    crosses = (host[source] == host[profile.partner]) & (domain[source] != domain[profile.partner])
    return float(profile.bytes[crosses].sum())
