"""Assignment of ranks to the cores of a host, by NUMA domain and closeness to the network adapter.

Two things count: a byte between two ranks of a host costs the distance of their NUMA domains, and a byte
that leaves the host the distance of the rank's domain to the nearest adapter, both relative to a local one.
Two starts, ranks in order and domains grown around heavy partners, are improved by moves, swaps and
exchanges of whole domains; the better is kept, so the result never costs more than ranks in order.
The cores of one domain are alike; caches are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scipy.sparse import csr_matrix

from mapping.placement.kernels.cores import HostRanks, cost, descend, grow
from registry.errors import InvalidPlacement
from registry.model import Floats, Ints, Longs, Placement, Profile
from registry.model.host_layout import HostLayout

ROUNDING = 1e-12
"""A change that saves less than this part of a host's bytes is ignored."""


def bind_within_hosts(profile: Profile, placement: Placement, layouts: Mapping[int, HostLayout]) -> Ints:
    """Choose a core for each rank on its host.

    Parameters
    ----------
    placement : Placement
        Placement of the profile's ranks.
    layouts : mapping of int to HostLayout
        Layouts by vertex of the fabric. Ranks of other hosts keep their slots, in ascending order.

    Returns
    -------
    int32[ranks]
        Slot within the host: a core of its layout, from 0; each at most once per host.

    Raises
    ------
    InvalidPlacement
        Another number of ranks than the profile's, or more ranks on a host than it has cores.
    """
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

    Parameters
    ----------
    slot_of_rank : int32[ranks]
        Core of each rank within its host's layout.

    Raises
    ------
    InvalidPlacement
        As `bind_within_hosts`.
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
        raise InvalidPlacement(f"the placement has {placement.ranks} ranks, the profile {profile.ranks}")
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
