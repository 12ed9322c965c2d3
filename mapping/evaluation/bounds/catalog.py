"""All bounds on a placement's metrics, each by name. A new argument is one file and one line here."""

from __future__ import annotations

import numpy as np

from mapping.distances.background import Background
from mapping.distances.distances import LINKS, distances
from mapping.distances.grouped_distances import Distances
from mapping.evaluation.bounds.cables import Cables, cables
from mapping.evaluation.bounds.cuts import cut_bounds
from mapping.evaluation.bounds.groups import Groups, host_groups, larger_groups
from mapping.evaluation.bounds.hop_bytes import MAX_GROUPS, least_cost
from mapping.evaluation.bounds.injection import injection_bounds
from mapping.evaluation.bounds.partition import Crossings
from mapping.evaluation.bounds.parts import not_tried
from mapping.evaluation.bounds.total_work import total_work
from mapping.routing.routes import Routes
from registry.catalog import Catalog, Entry
from registry.model import Allocation, Bound, Profile

METRICS = ("congestion_seconds", "network_congestion_seconds", "hop_bytes")
BOUNDS = Catalog(
    "bound",
    (
        Entry(
            name="injection",
            target="mapping.evaluation.bounds.injection:injection_bounds",
            about="bytes that ranks send to ranks outside their group of hosts",
        ),
        Entry(
            name="ejection",
            target="mapping.evaluation.bounds.injection:injection_bounds",
            about="bytes that ranks receive from ranks outside their group of hosts",
        ),
        Entry(
            name="host-cut",
            target="mapping.evaluation.bounds.cuts:cut_bounds",
            about="bytes that must cross between hosts, over the hosts' own cables",
        ),
        Entry(
            name="switch-cut",
            target="mapping.evaluation.bounds.cuts:cut_bounds",
            about="bytes that must cross between leaf switches, over their uplinks",
        ),
        Entry(
            name="pod-cut",
            target="mapping.evaluation.bounds.cuts:cut_bounds",
            about="bytes that must cross between pods, over the cables between them",
        ),
        Entry(
            name="bisection",
            target="mapping.evaluation.bounds.cuts:cut_bounds",
            about="bytes that must cross between two halves of the network",
        ),
        Entry(
            name="total-work",
            target="mapping.evaluation.bounds.total_work:total_work",
            about="all bytes times distance over the capacity of all cables",
        ),
        Entry(
            name="gilmore-lawler",
            target="mapping.evaluation.bounds.hop_bytes:least_cost",
            about="each rank's heaviest partners on the nearest slots",
        ),
        Entry(
            name="nested-cuts",
            target="mapping.evaluation.bounds.hop_bytes:nested_cuts",
            about="bytes that must cross between groups of hosts, group within group",
        ),
        Entry(
            name="common-partners",
            target="mapping.evaluation.bounds.common_partners:common_partners",
            about="ranks with common partners cannot all be neighbours",
        ),
    ),
)
"""All arguments; ``one-host`` and ``none`` name the trivial bounds."""


def every_bound(
    routes: Routes, profile: Profile, allocation: Allocation, *, background: Background | None = None
) -> dict[str, tuple[Bound, ...]]:
    """All bounds by metric, in the order in which they are tried; parameters and errors as `lower_bounds`."""
    allocation.require(profile.ranks)
    routes.require_connected()
    if len(allocation) == 1:
        alone = Bound(value=0.0, proof="one host: nothing crosses a cable", name="one-host")
        return dict.fromkeys(METRICS, (alone,))
    found, crossings = cables(routes, background), Crossings(profile)
    near = distances(LINKS, routes)
    hosts = host_groups(routes, allocation, found)
    larger = larger_groups(routes, allocation, found, near)
    hop_bytes = least_cost(crossings, near, allocation.slots)
    rows = {"links": found.usable, "links of the network": found.usable & routes.fabric.network_link}
    inside = _network_distances(routes, near)
    within = hop_bytes if inside is near else least_cost(crossings, inside, allocation.slots)
    least = max(hop_bytes, key=_value), max(within, key=_value)
    work = [total_work(bound, found, rows[which], which) for bound, which in zip(least, rows, strict=True)]
    own = _on_cables(crossings, hosts, found, 0.0)
    network = [*(own if hosts.within_network else ()), work[1]]
    for groups in larger:
        network += _on_cables(crossings, groups, found, max(bound.value for bound in network))
    network += not_tried(routes, near)
    anywhere = [*own, work[0], *(bound for bound in network if bound not in own)]
    return dict(zip(METRICS, (tuple(anywhere), tuple(network), tuple(hop_bytes)), strict=True))


def _on_cables(crossings: Crossings, groups: Groups, found: Cables, above: float) -> list[Bound]:
    injection = injection_bounds(crossings.partners, groups)
    return [*injection, *cut_bounds(crossings, groups, found, above=above)]


def _network_distances(routes: Routes, near: Distances) -> Distances:
    """Links of the network alone that a byte crosses: hosts' own cables left out."""
    own = ~routes.fabric.forwards[routes.hosts]
    if not own.any():
        return near
    if bool(own.all()):
        return near.less(2.0)
    first = np.unique(near.group, return_index=True)[1]
    if near.groups > MAX_GROUPS:
        return near.less(2.0)
    cable = own[first].astype(np.float64)
    between = np.maximum(near.between - cable[:, None] - cable, 0.0)
    return Distances(name=near.name, group=near.group, between=between)


def _value(bound: Bound) -> float:
    return bound.value
