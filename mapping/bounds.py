"""Values that no placement on an allocation can go below, each with the argument that proves it.

- Injection and ejection: what a rank exchanges with ranks that cannot share its host crosses that host's
  cables; the same for what cannot share its leaf switch and the cables from there into the network.
- Cuts: hosts, and leaf switches, part the ranks into groups of limited size; the smallest eigenvalues of the
  traffic's Laplacian bound what crosses between such groups (Donath and Hoffman, "Lower bounds for the
  partitioning of graphs", 1973).
- Gilmore and Lawler for hop-bytes: each rank's heaviest partners on the nearest seats (Gilmore, "Optimal and
  suboptimal algorithms for the quadratic assignment problem", 1962; Lawler, "The quadratic assignment
  problem", 1963).
- Totals: the worst of several links is no better than all their bytes over all their capacity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment

from mapping.network import attachment
from mapping.routing.routes import Routes
from registry.model import Allocation, Bound, Floats, Ints, Longs, Profile

METRICS = ("congestion_seconds", "network_congestion_seconds", "hop_bytes")
MAX_ASSIGNMENT = 1 << 20
"""Most entries (ranks times slots) of a linear assignment problem that is solved; above, row minima."""
MAX_TABLE = 1 << 24
"""Most entries of a table of partners or of seats; above, only the heaviest partners count."""
MAX_EIGEN_RANKS = 2048
"""Most ranks whose traffic's eigenvalues are computed."""
MAX_HOSTS = 5_000
"""Most hosts whose distances from each other are used; above, each byte between hosts counts one hop."""
_ROUNDING = 1.0 - 1e-12
"""Sums in floating point may come out a little high: every bound is lowered by this much."""


def lower_bounds(routes: Routes, profile: Profile, allocation: Allocation) -> dict[str, Bound]:
    """Bounds for every placement of a profile on an allocation.

    Parameters
    ----------
    routes : Routes
        Between the allocation's hosts, in its order.

    Returns
    -------
    dict of str to Bound
        ``congestion_seconds``, ``network_congestion_seconds`` and ``hop_bytes``.

    Raises
    ------
    InfeasibleAllocation
        More ranks than slots.
    DisconnectedAllocation, UnreachablePair
        Two hosts of the allocation are not connected.
    """
    allocation.require(profile.ranks)
    routes.require_connected()
    if len(allocation) == 1:
        return dict.fromkeys(METRICS, Bound(value=0.0, proof="one host: nothing crosses a cable"))
    hosts, leaves = _host_groups(routes, allocation), _leaf_groups(routes, allocation)
    parts = [_crossing(profile, groups) for groups in (hosts, leaves) if groups is not None]
    links, network, ends = routes.fabric.links, routes.fabric.network_link, routes.ends
    usable = network | (ends.out_port >= 0) | (ends.in_port >= 0)
    own = ~routes.fabric.forwards[routes.hosts]
    hop_bytes, network_hop_bytes = _least_hop_bytes(routes, profile, allocation, parts)
    in_network = [
        *(b for part in parts if not own.any() or part.groups is leaves for b in part.bounds),
        _spread(network_hop_bytes, float(links.capacity[usable & network].sum()), "links of the network"),
    ]
    anywhere = [*parts[0].bounds, _spread(hop_bytes, float(links.capacity[usable].sum()), "links")]
    best = _best([*anywhere, *in_network]), _best(in_network), _best([hop_bytes])
    return dict(zip(METRICS, best, strict=True))


def _least_hop_bytes(
    routes: Routes, profile: Profile, allocation: Allocation, parts: list[_Crossing]
) -> tuple[Bound, Bound]:
    """Least hop-bytes on all links, and on those of the network alone."""
    own = ~routes.fabric.forwards[routes.hosts]
    if len(allocation) > MAX_HOSTS:
        one = "cut: the least bytes that leave their hosts cross one link at least"
        return (
            Bound(value=parts[0].total, proof=one),
            Bound(value=0.0 if own.any() else parts[0].total, proof=one),
        )
    within_network = np.maximum(routes.distances - own[:, None] - own, 0.0)
    return (
        _hop_bytes(profile, routes.distances, allocation.slots, parts),
        _hop_bytes(profile, within_network, allocation.slots, parts),
    )


def _hop_bytes(profile: Profile, distances: Floats, slots: Ints, parts: list[_Crossing]) -> Bound:
    """The better of Gilmore-Lawler and of the cuts between hosts and between leaf switches."""
    cuts, floor = 0.0, 0.0
    for part in parts:  # fine to coarse: what crosses between leaves crosses between hosts too
        group = part.groups.group
        nearest = float(distances[group[:, None] != group].min(initial=np.inf))
        if np.isfinite(nearest):
            cuts, floor = cuts + (nearest - floor) * part.total, nearest
    nearest_seats = "Gilmore-Lawler: at best each rank's heaviest partners sit on the seats nearest to it"
    bounds = [
        Bound(value=gilmore_lawler(profile, distances, slots), proof=nearest_seats),
        Bound(
            value=cuts, proof="cuts: least bytes between hosts, and between leaf switches, times least hops"
        ),
    ]
    return max(bounds, key=lambda bound: bound.value)


def gilmore_lawler(profile: Profile, distances: Floats, slots: Ints) -> float:
    """Least sum of bytes times distance that any placement can reach.

    Parameters
    ----------
    distances : float64[h, h]
        Between hosts; 0 within one. The smaller of both directions counts.
    slots : int32[h]

    Notes
    -----
    A rank on a host pays at least its partners' weights, heaviest first, times the distances of the
    seats around it, nearest first. The least total over all ways to seat the ranks is a linear assignment
    problem; above `MAX_ASSIGNMENT` entries each rank takes its best seat instead.
    """
    pairs = _summed(profile.sender, profile.partner, profile.bytes / 2, profile.ranks)
    columns = MAX_TABLE // max(profile.ranks, len(slots))
    weights = _heaviest_first(profile.ranks, *pairs, columns)
    near = _nearest_first(np.minimum(distances, distances.T), slots, weights.shape[1])
    if profile.ranks * int(slots.sum()) > MAX_ASSIGNMENT:
        chunks = np.array_split(weights, -(-profile.ranks * len(slots) // MAX_TABLE))
        return float(sum((chunk @ near.T).min(axis=1).sum() for chunk in chunks))
    costs = np.repeat(weights @ near.T, slots, axis=1)
    return float(costs[linear_sum_assignment(costs)].sum())


def partition_cut(profile: Profile, slots: Longs) -> float:
    """Least bytes that cross between groups of at most `slots` ranks each, by eigenvalues.

    Notes
    -----
    Donath and Hoffman: with groups of m_1 >= m_2 >= ... ranks at least ``sum(m_i * e_i) / 2`` crosses, where
    e_1 <= e_2 <= ... are the eigenvalues of the Laplacian; full groups, largest first, give the least.
    Above `MAX_EIGEN_RANKS` ranks, or where each rank has a group to itself, 0: others bound that better.
    """
    ranks = profile.ranks
    if ranks > MAX_EIGEN_RANKS or int(slots.max()) == 1 or int(slots.max()) >= ranks:
        return 0.0
    filled = np.minimum(np.cumsum(np.sort(slots)[::-1]), ranks)
    sizes = np.diff(filled, prepend=0)
    sizes = sizes[sizes > 0]
    laplacian = np.zeros((ranks, ranks))
    laplacian[profile.sender, profile.partner] -= profile.bytes
    laplacian += laplacian.T
    degree = -laplacian.sum(axis=1)
    laplacian[np.diag_indices(ranks)] = degree
    values = eigh(laplacian, eigvals_only=True, subset_by_index=(0, len(sizes) - 1))
    error = ranks * np.finfo(np.float64).eps * 2 * float(degree.max(initial=0.0))
    return float((np.maximum(values - error, 0.0) * sizes).sum() / 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Groups:
    """Hosts grouped by the cables that all traffic between the group and the rest must take.

    Attributes
    ----------
    place : str
        What a group is, for the proof.
    group : int64[h]
        Group of each host of the allocation.
    slots : int64[g]
    outwards, inwards : float64[g]
        Least seconds that a byte out of (into) the group takes on the worst of those cables; 0 no limit.
    """

    place: str
    group: Longs
    slots: Longs
    outwards: Floats
    inwards: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Crossing:
    """What must cross between groups: least bytes in all, and the bounds on congestion that follow."""

    groups: _Groups
    total: float
    bounds: list[Bound]


def _crossing(profile: Profile, groups: _Groups) -> _Crossing:
    place, bounds, sides = groups.place, [], []
    total = partition_cut(profile, groups.slots)
    for at, other, rates, argument in (
        (profile.sender, profile.partner, groups.outwards, "injection"),
        (profile.partner, profile.sender, groups.inwards, "ejection"),
    ):
        # With its heaviest partners in all other seats of its group, the rest of a rank's bytes still cross.
        lighter = _place_by_weight(profile.ranks, at, other, profile.bytes) >= int(groups.slots.max()) - 1
        crossing = np.zeros(profile.ranks)
        np.add.at(crossing, at[lighter], profile.bytes[lighter])
        total = max(total, float(crossing.sum()))
        sides.append(crossing + _company(crossing, groups.slots))
        proof = f"{argument}: what a rank cannot keep on its {place} crosses that {place}'s cables"
        bounds.append(_worst(sides[-1], rates, groups.slots, proof))
    proof = f"injection and ejection: what a rank exchanges beyond its {place} crosses that {place}'s cables"
    slower = np.minimum(groups.outwards, groups.inwards)
    bounds.append(_worst(np.maximum(*sides), slower, groups.slots, proof))
    for rates in (groups.outwards, groups.inwards):
        proof = f"cut: the least bytes that cross between groups share the cables of every {place}"
        limited = bool((rates > 0).all())
        bounds.append(Bound(value=total / float((1 / rates).sum()) if limited else 0.0, proof=proof))
    return _Crossing(groups=groups, total=total, bounds=bounds)


def _company(crossing: Floats, slots: Longs) -> float:
    """What the ranks that at least sit beside any rank, for want of other seats, add to its group."""
    beside = len(crossing) - int(slots.sum()) + int(slots.min()) - 1
    return float(np.sort(crossing)[: max(beside, 0)].sum())


def _worst(crossing: Floats, rates: Floats, slots: Longs, proof: str) -> Bound:
    """Heaviest ranks on the fastest seats: no other seating has a better worst seat."""
    seats = np.sort(np.repeat(rates, slots))[: len(crossing)]
    return Bound(value=float((np.sort(crossing)[::-1] * seats).max()), proof=proof)


def _spread(hop_bytes: Bound, capacity: float, which: str) -> Bound:
    return Bound(
        value=hop_bytes.value / capacity if capacity > 0 else 0.0,
        proof=f"total work: the least hop-bytes over the capacity of all {which} ({hop_bytes.proof})",
    )


def _best(bounds: list[Bound]) -> Bound:
    """The highest bound, the first of equals, lowered by what rounding may have added."""
    best = max(bounds, key=lambda bound: bound.value)
    if best.value <= 0.0:
        return Bound(value=0.0, proof="no argument known here gives more than zero")
    return Bound(value=best.value * _ROUNDING, proof=best.proof)


def _host_groups(routes: Routes, allocation: Allocation) -> _Groups:
    """Each host with its own cables."""
    return _Groups(
        place="host",
        group=np.arange(len(allocation)),
        slots=allocation.slots.astype(np.int64),
        outwards=_host_seconds_per_byte(routes, outwards=True),
        inwards=_host_seconds_per_byte(routes, outwards=False),
    )


def _host_seconds_per_byte(routes: Routes, *, outwards: bool) -> Floats:
    """float64[h]: least time that a byte sent (or received) by a host takes on its worst port."""
    ends, capacity = routes.ends, routes.fabric.links.capacity
    port = ends.out_port if outwards else ends.in_port
    rows = port >= 0
    ports = np.bincount(port[rows], weights=capacity[rows], minlength=len(ends.port_host))
    if routes.evenly_split:
        rail_of_port = np.repeat(np.arange(len(ends.rail_adapter)), np.diff(ends.port_ptr))
        host_of_rail = np.repeat(np.arange(len(ends.hosts)), np.diff(ends.rail_ptr))
        share = 1.0 / np.diff(ends.port_ptr)[rail_of_port] / np.diff(ends.rail_ptr)[ends.port_host]
        return _largest(host_of_rail[rail_of_port], share / ports, len(ends.hosts))
    hosts = np.bincount(ends.port_host, weights=ports, minlength=len(ends.hosts))
    return np.asarray(1.0 / hosts, np.float64)


def _leaf_groups(routes: Routes, allocation: Allocation) -> _Groups | None:
    """Leaf switches with their hosts, where every host hangs on exactly one and none forwards."""
    fabric, ends = routes.fabric, routes.ends
    if bool(fabric.forwards[routes.hosts].any()):
        return None
    leaf_of_port = attachment(fabric, ends)
    first = leaf_of_port[ends.port_ptr[ends.rail_ptr[:-1]]]
    if bool((leaf_of_port < 0).any() or (leaf_of_port != first[ends.port_host]).any()):
        return None
    leaves, group = np.unique(first, return_inverse=True)

    def rates(side: Ints) -> Floats:
        rows = fabric.network_link
        capacity = np.bincount(side[rows], weights=fabric.links.capacity[rows], minlength=len(fabric))
        return np.divide(1.0, capacity[leaves], out=np.zeros(len(leaves)), where=capacity[leaves] > 0)

    return _Groups(
        place="leaf switch",
        group=group,
        slots=np.bincount(group, weights=allocation.slots).astype(np.int64),
        outwards=rates(fabric.links.source),
        inwards=rates(fabric.links.target),
    )


def _summed(rank: Ints, partner: Ints, weight: Floats, ranks: int) -> tuple[Longs, Longs, Floats]:
    """Weights with both directions of a pair summed: each pair once from either side."""
    at, other = np.r_[rank, partner].astype(np.int64), np.r_[partner, rank].astype(np.int64)
    pairs, inverse = np.unique(at * ranks + other, return_inverse=True)
    total = np.bincount(inverse, weights=np.r_[weight, weight]).astype(np.float64)
    return pairs // ranks, pairs % ranks, total


def _place_by_weight(ranks: int, rank: Ints | Longs, partner: Ints | Longs, weight: Floats) -> Longs:
    """int64[e]: how many heavier partners a rank has than each of its own; ties by partner."""
    order = np.lexsort((partner, -weight, rank))
    count = np.bincount(rank, minlength=ranks)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    return place


def _heaviest_first(
    ranks: int, rank: Ints | Longs, partner: Ints | Longs, weight: Floats, columns: int
) -> Floats:
    """float64[ranks, d]: weights of each rank's partners, falling, filled up with zeros; d <= columns."""
    place = _place_by_weight(ranks, rank, partner, weight)
    table = np.zeros((ranks, min(int(place.max(initial=-1)) + 1, columns)))
    kept = place < columns
    table[rank[kept], place[kept]] = weight[kept]
    return table


def _nearest_first(distances: Floats, slots: Ints, count: int) -> Floats:
    """float64[h, count]: distances from a seat of each host to the nearest other seats, rising."""
    found = np.zeros((len(slots), count))
    for host in range(len(slots) if count else 0):
        near = np.arange(len(slots))
        if count + 1 < len(slots):  # so many hosts have enough seats
            near = np.argpartition(distances[host], count)[: count + 1]
        near = near[np.argsort(distances[host, near], kind="stable")]
        seats = np.repeat(distances[host, near], slots[near] - (near == host))
        found[host] = seats[:count]
    return found


def _largest(group: Longs, values: Floats, groups: int) -> Floats:
    found = np.zeros(groups)
    np.maximum.at(found, group, values)
    return found
