"""All bounds on the metrics of a placement by name. A new argument takes one file and one line here.

Groups of hosts are hosts, leaf switches, pods, and the parts of a bisected network: each is of limited size,
so the guest must send bytes between groups, over the cables that leave them.

The least bytes between groups are computed in ``mapping.cost.bounds.partition``. The bounds hold for
every placement on the allocation, with or without pinned ranks, and for any routing: distances are the
routing's own, and no path avoids the cables of a cut. Background (``mapping.distances.cost_model``) reduces
capacity, or adds bytes in all arguments that sum over cables.
"""

from __future__ import annotations

import numpy as np

from mapping.cost.bounds.cuts import (
    Groups,
    cut_bounds,
    host_groups,
    injection_bounds,
    larger_groups,
    routed_cuts,
    total_work,
)
from mapping.cost.bounds.hop_bytes import MAX_GROUPS, all_to_all, least_cost, levels
from mapping.cost.bounds.pairs import detours, heavy_pairs
from mapping.cost.bounds.partition import Crossings
from mapping.cost.bounds.parts import NOT_TRIED, Cables, cables, not_tried
from mapping.distances.cost_model import Background
from mapping.distances.distances import LINKS, Distances, distances
from mapping.routing.routes import Routes
from registry.catalog import Catalog, Entry
from registry.model import Allocation, Bound, Ints, Profile

METRICS = ("congestion_seconds", "network_congestion_seconds", "hop_bytes")
BOUNDS = Catalog(
    "bound",
    (
        Entry(
            name="injection",
            target="mapping.cost.bounds.cuts:injection_bounds",
            about="bytes that ranks send to ranks outside their group of hosts",
        ),
        Entry(
            name="ejection",
            target="mapping.cost.bounds.cuts:injection_bounds",
            about="bytes that ranks receive from ranks outside their group of hosts",
        ),
        Entry(
            name="host-cut",
            target="mapping.cost.bounds.cuts:cut_bounds",
            about="bytes that must cross between hosts, over the hosts' own cables",
        ),
        Entry(
            name="switch-cut",
            target="mapping.cost.bounds.cuts:cut_bounds",
            about="bytes that must cross between leaf switches, over their uplinks",
        ),
        Entry(
            name="pod-cut",
            target="mapping.cost.bounds.cuts:cut_bounds",
            about="bytes that must cross between pods, over the cables between them",
        ),
        Entry(
            name="bisection",
            target="mapping.cost.bounds.cuts:cut_bounds",
            about="bytes that must cross between two halves of the network",
        ),
        Entry(
            name="routed-cuts",
            target="mapping.cost.bounds.cuts:routed_cuts",
            about="all cuts together, with the bytes between hosts on the paths of the routing",
        ),
        Entry(
            name="heavy-pairs",
            target="mapping.cost.bounds.pairs:heavy_pairs",
            about="pairs of ranks with many bytes on the hosts with the fastest paths between them",
        ),
        Entry(
            name="detours",
            target="mapping.cost.bounds.pairs:detours",
            about="pairs of ranks with many bytes on hosts with several paths, which are longer",
        ),
        Entry(
            name="total-work",
            target="mapping.cost.bounds.cuts:total_work",
            about="all bytes times distance over the capacity of all cables",
        ),
        Entry(
            name="gilmore-lawler",
            target="mapping.cost.bounds.hop_bytes:least_cost",
            about="each rank's heaviest partners on the nearest slots",
        ),
        Entry(
            name="nested-cuts",
            target="mapping.cost.bounds.hop_bytes:nested_cuts",
            about="bytes that must cross between groups of hosts, group within group",
        ),
        Entry(
            name="common-partners",
            target="mapping.cost.bounds.hop_bytes:common_partners",
            about="ranks with common partners cannot all be neighbours",
        ),
        Entry(
            name="projection",
            target="mapping.cost.bounds.projection:projection",
            about="eigenvalues of bytes and of distances, the largest with the smallest",
        ),
        Entry(
            name="all-to-all",
            target="mapping.cost.bounds.hop_bytes:all_to_all",
            about="flows from every rank to all others within the bytes that ranks exchange",
        ),
    ),
)
"""All arguments; ``one-host`` and ``none`` name the trivial bounds."""
_ROUNDING = 1.0 - 1e-9
"""Factor that lowers every bound, since sums in floating point may come out slightly high."""


def every_bound(
    routes: Routes, profile: Profile, allocation: Allocation, *, background: Background | None = None
) -> dict[str, tuple[Bound, ...]]:
    """Return all bounds by metric, in the order of computation; see `lower_bounds`."""
    allocation.require(profile.ranks)
    routes.require_connected()
    if len(allocation) == 1:
        one_host = Bound(value=0.0, proof="one host: nothing crosses a cable", name="one-host")
        return dict.fromkeys(METRICS, (one_host,))
    found, crossings = cables(routes, background), Crossings(profile)
    near = distances(LINKS, routes)
    hosts = host_groups(routes, allocation, found)
    larger = larger_groups(routes, allocation, found, near)
    hop_bytes = _on_distances(crossings, routes, near, allocation.slots)
    rows = {"links": found.usable, "links of the network": found.usable & routes.fabric.network_link}
    inside = _network_distances(routes, near)
    within = hop_bytes if inside is near else _on_distances(crossings, routes, inside, allocation.slots)
    least = (max(bounds, key=lambda bound: bound.value) for bounds in (hop_bytes, within))
    work = [total_work(bound, found, rows[which], which) for bound, which in zip(least, rows, strict=True)]
    own = _on_cables(crossings, hosts, found, 0.0)
    network = [*(own if hosts.within_network else ()), work[1]]
    for groups in larger:
        network += _on_cables(crossings, groups, found, max(bound.value for bound in network))
    groupings = [*(label for _, label in levels(near)), *(groups.group for groups in larger)]
    network.append(routed_cuts(crossings, routes, found, allocation.slots, groupings))
    proved = max(bound.value for bound in network)
    network.append(heavy_pairs(profile, routes, found, allocation.slots, proved))
    proved, usable = max(proved, network[-1].value), rows["links of the network"]
    network.append(detours(profile, routes, found, usable, allocation.slots, near=inside, above=proved))
    network += not_tried(routes, near)
    anywhere = [*own, work[0], *(bound for bound in network if bound not in own)]
    return dict(zip(METRICS, (tuple(anywhere), tuple(network), tuple(hop_bytes)), strict=True))


def _on_distances(crossings: Crossings, routes: Routes, near: Distances, slots: Ints) -> list[Bound]:
    """Return the bounds on bytes times distance."""
    found = least_cost(crossings, near, slots)
    return [
        *found,
        all_to_all(crossings.guest, routes, near, slots, above=max(bound.value for bound in found)),
    ]


def _on_cables(crossings: Crossings, groups: Groups, found: Cables, above: float) -> list[Bound]:
    """Return the bounds on the worst cable of the groups, in seconds."""
    injection = injection_bounds(crossings, groups)
    return [*injection, *cut_bounds(crossings, groups, found, above=above)]


def _network_distances(routes: Routes, near: Distances) -> Distances:
    """Return the links of the network that a byte crosses, without hosts' own cables."""
    own = ~routes.fabric.forwards[routes.hosts]
    if not own.any():
        return near
    if bool(own.all()) or near.groups > MAX_GROUPS:
        return near.shortened(2.0)
    first = np.unique(near.group, return_index=True)[1]
    cable = own[first].astype(np.float64)
    between = np.maximum(near.between - cable[:, None] - cable, 0.0)
    return Distances(name=near.name, group=near.group, between=between)


def lower_bounds(
    routes: Routes, profile: Profile, allocation: Allocation, *, background: Background | None = None
) -> dict[str, Bound]:
    """Return bounds for every placement of a profile on an allocation.

    Args:
        routes: Routes between the allocation's hosts, in its order.
        background: Load of other jobs.

    Returns:
        ``congestion_seconds``, ``network_congestion_seconds`` and ``hop_bytes``: the best bound of
        `every_bound` for each. Its proof also names the arguments that were left out because of size.

    Raises:
        InfeasibleAllocation: There are more ranks than slots.
        DisconnectedAllocation, UnreachablePair: Two hosts of the allocation are not connected.
    """
    found = every_bound(routes, profile, allocation, background=background)
    return {metric: _best(found[metric]) for metric in METRICS}


def _best(bounds: tuple[Bound, ...]) -> Bound:
    """Return the highest bound (the first of equal ones), lowered by possible rounding errors."""
    best = max(bounds, key=lambda bound: bound.value)
    left_out = "".join(f"; {bound.proof}" for bound in bounds if bound.proof.startswith(NOT_TRIED))
    if best.value <= 0.0:
        proof = best.proof if best.name == "one-host" else "no argument known here gives more than zero"
        return Bound(value=0.0, proof=proof + left_out, name=best.name if best.name == "one-host" else "none")
    return Bound(value=best.value * _ROUNDING, proof=best.proof + left_out, name=best.name)
