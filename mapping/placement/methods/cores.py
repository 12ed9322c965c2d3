"""Cores for the ranks of a placement on hosts with known layouts, and the bytes that they save.

Two things count: a byte between two ranks of a host costs the distance of their NUMA domains, and a byte
that leaves the host the distance of the rank's domain to the nearest adapter, both relative to a local one.
Two starts, ranks in order and domains grown around heavy partners, are improved by moves, swaps and
exchanges of whole domains; the better is kept, so the result never costs more than ranks in order.
The cores of one domain are alike; caches are not looked at.

Hosts divided into domains, so that threads exchange ranks in parallel without conflicts.

Each thread exchanges only ranks and slots of its own domain, and for it the others stay where they are;
afterwards the results of the domains are merged. Domains do not depend on the machine, so that a search with
given workers and steps has the same result on one core as on many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mapping.deadline import cores
from mapping.placement.kernels.cores import HostRanks, cost, descend, grow
from mapping.placement.kernels.hop_bytes_search import Near
from registry.errors import InvalidPlacement, UnknownName, WrongRanks
from registry.model import Allocation, Fabric, Floats, Ints, Longs, Placement, Profile
from registry.model.host_names import same_hosts
from registry.model.hosts import HostLayout

ALL = ""
"""Name of the layout of all hosts without their own."""
ROUNDING = 1e-12
"""A change that saves less than this part of a host's bytes is ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreBinding:
    """Cost of the chosen cores, and of ranks in ascending order on the first cores."""

    hosts: int
    without_layout: int
    """Number of hosts with ranks, and of those without a layout, where ranks stay in order."""
    crossing_bytes: float
    crossing_bytes_in_order: float
    """Bytes between two ranks of one host in different NUMA domains."""
    weighted_bytes: float
    weighted_bytes_in_order: float
    """Bytes times relative distance, including the distance to the adapter (`numa_bytes`)."""


def layouts_on(
    fabric: Fabric, allocation: Allocation, layouts: Mapping[str, HostLayout]
) -> dict[int, HostLayout]:
    """Return the layouts of the hosts of an allocation, by vertex.

    Args:
        layouts: Layouts by name of a host of the fabric, in short or in full, or under `ALL` for all hosts
            without their own. Hosts outside the allocation are allowed.

    Raises:
        UnknownName: A host that the fabric lacks.
    """
    known = {fabric.names[vertex]: int(vertex) for vertex in fabric.hosts}
    same = same_hosts(layouts, known)
    found: dict[int, HostLayout] = {}
    for name, layout in layouts.items():
        if name == ALL:
            continue
        if name not in same:
            raise UnknownName("host", name, known, remedy="name the host of a layout as HOST=FILE")
        found[known[same[name]]] = layout
    if ALL in layouts:
        return {vertex: found.get(vertex, layouts[ALL]) for vertex in allocation.hosts.tolist()}
    return {vertex: found[vertex] for vertex in allocation.hosts.tolist() if vertex in found}


def bind_cores(
    profile: Profile, placement: Placement, layouts: Mapping[int, HostLayout]
) -> tuple[Placement, CoreBinding]:
    """Return the placement with a core for each rank, and the cost of the cores.

    Args:
        layouts: Layouts by vertex. Ranks of other hosts get cores 0, 1, ... in ascending order, and no CPUs.

    Raises:
        InvalidPlacement: Another number of ranks than in the profile, or more ranks on a host than cores.
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

    Args:
        core_of_rank (int32[ranks]): Core of each rank within its host's layout.
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


def bind_within_hosts(profile: Profile, placement: Placement, layouts: Mapping[int, HostLayout]) -> Ints:
    """Return int32[ranks]: a core for each rank on its host; see `bind_cores`."""
    slot = placement.slot_of_rank
    for vertex, ranks, host in _hosts(profile, placement, layouts):
        cores = layouts[vertex].core_domain
        start = cores[: len(ranks)]
        least = ROUNDING * float(host.weight.sum() + host.leaves.sum())
        found = [grow(host), start.copy()]
        for domain in found:
            descend(host, domain, least)
        best = min(found, key=lambda domain: cost(host, domain))
        if cost(host, best) < cost(host, start) - least:
            slot[ranks] = _cores(best, cores)
    return slot


def numa_bytes(
    profile: Profile, placement: Placement, layouts: Mapping[int, HostLayout], slot_of_rank: Ints
) -> float:
    """Return bytes times relative distance over all hosts with a layout, which `bind_within_hosts` reduces.

    Args:
        slot_of_rank (int32[ranks]): Core of each rank within its host's layout.
    """
    return float(
        sum(
            cost(host, layouts[vertex].core_domain[slot_of_rank[ranks]])
            for vertex, ranks, host in _hosts(profile, placement, layouts)
        )
    )


def _hosts(
    profile: Profile, placement: Placement, layouts: Mapping[int, HostLayout]
) -> Iterator[tuple[int, Longs, HostRanks]]:
    """Yield vertex, ranks (int64[n], ascending) and arrays of each host that has ranks and a layout."""
    if profile.ranks != placement.ranks:
        raise WrongRanks(placement.ranks, profile.ranks)
    sent = csr_matrix((profile.bytes, profile.partner, profile.indptr), shape=(profile.ranks, profile.ranks))
    both = (sent + sent.T).tocsr()
    total = np.asarray(both.sum(axis=1)).reshape(-1)
    order = np.argsort(placement.host_of_rank, kind="stable")
    hosts = placement.host_of_rank[order]
    for ranks in np.split(order, np.flatnonzero(np.diff(hosts)) + 1):
        vertex = int(placement.host_of_rank[ranks[0]])
        layout = layouts.get(vertex)
        if layout is None:
            continue
        if len(ranks) > layout.cores:
            raise InvalidPlacement(
                f"{len(ranks)} ranks on vertex {vertex} ({layout.name or 'unnamed'}), "
                f"whose layout has {layout.cores} cores"
            )
        weight = both[ranks][:, ranks].toarray()
        yield vertex, ranks, _host_ranks(layout, weight, total[ranks] - weight.sum(axis=1))


def _host_ranks(layout: HostLayout, weight: Floats, leaves: Floats) -> HostRanks:
    distance = (layout.distance + layout.distance.T) / (2 * layout.distance.diagonal().min())
    used = layout.nic_fabric if layout.nic_fabric.any() else np.ones(len(layout.nic_name), np.bool_)
    near = layout.nic_near[used].any(axis=0)
    reach = distance[:, near].min(axis=1) if near.any() else np.zeros(layout.domains)
    room = np.bincount(layout.core_domain).astype(np.int64)
    return HostRanks(weight, np.maximum(leaves, 0.0), room, np.ascontiguousarray(distance), reach)


def _cores(domain: Ints, cores: Ints) -> Ints:
    """Return int32[n]: a core for each rank, in ascending order within a domain."""
    found = np.empty(len(domain), np.int32)
    for d in np.unique(domain).tolist():
        ranks = np.flatnonzero(domain == d)
        found[ranks] = np.flatnonzero(cores == d)[: len(ranks)]
    return found


Result = TypeVar("Result")


def cut(
    distance: Floats, first_slot: Longs, workers: int, centre: int, group: Ints | None = None
) -> NDArray[np.int8]:
    """Return int8[h]: the domain of each host, by distance from one host, with equally many slots each.

    Args:
        distance (float64[h]): Distance of each host from `centre`.
        first_slot (int64[h + 1]): First slot of each host.
        workers: Number of domains, at most 127.
        centre: Host of which those that follow cyclically come first among equally far ones.
        group (int32[h]): Group of each host; among equally far hosts, those of a group stay together.
    """
    hosts = len(distance)
    after = (np.arange(hosts) - centre) % hosts
    together = after if group is None else (group - group[centre]) % (int(group.max()) + 1)
    order = np.lexsort((after, together, distance))
    before = np.cumsum(np.diff(first_slot)[order]) - np.diff(first_slot)[order]
    domain = np.empty(hosts, np.int8)
    domain[order] = np.minimum(before * workers // max(int(first_slot[-1]), 1), workers - 1)
    return domain


def near_pairs(near: Near, random: Longs) -> tuple[Ints, Ints]:
    """Return int32[k] twice: hosts, and for each another at the nearest distance; k is 0 for a single host.

    Args:
        random (int64[2, k]): Random numbers >= 0 that choose the hosts and one of those near each.
    """
    group = near.host_group[random[0] % len(near.host_group)]
    count = near.middle[group] - near.start[group]
    one, count, random = (random[0] % len(near.host_group))[count > 0], count[count > 0], random[:, count > 0]
    beside = near.group[near.start[near.host_group[one]] + random[1] % np.maximum(count, 1)]
    slots = near.first[beside + 1] - near.first[beside]
    other = near.slot_host[near.slot[near.first[beside] + random[1] // np.maximum(count, 1) % slots]]
    return one.astype(np.int32), other.astype(np.int32)


class Team:
    """Threads for the rounds of a search: ``run(task)`` returns the results of all workers in order."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        threads = min(workers, cores())
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def run(self, task: Callable[[int], Result]) -> list[Result]:
        """Return the task's result for each worker."""
        if self._pool is None:
            return [task(worker) for worker in range(self.workers)]
        return list(self._pool.map(task, range(self.workers)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()
