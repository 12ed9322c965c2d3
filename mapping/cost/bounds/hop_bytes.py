"""Bounds on bytes times distance, under any convention of distance.

Sources of the bound of Gilmore and Lawler: Gilmore, "Optimal and suboptimal algorithms for the quadratic
assignment problem", 1962; Lawler, "The quadratic assignment problem", 1963.

Ranks with common partners cannot all be neighbours: a bound on bytes times distance for direct networks.

On a torus of even sizes two neighbouring hosts have no common neighbour, two others at most two. So an edge
of the guest whose ranks have `m` common partners costs more than its 2 m + 1 edges would separately, whatever
hosts they are on: on such a torus 4, 6, 10, 13, ... hops for m = 1, 2, 3, 4. Bytes are divided between such
sets and the stars of the bound of Gilmore and Lawler; any division is a bound, and an ascent on the dual of
that linear programme finds a good one.

Flows from every rank to all others: a bound on bytes times distance.

If every rank can send to all others at once within the bytes that ranks exchange, then those bytes cost at
least what these flows cost, since no way through other ranks is shorter than the distance of its ends. And
flows between all ranks cost the same wherever the ranks are (Leighton and Rao, "Multicommodity max-flow
min-cut theorems", 1999). So ranks that reach all others in few steps cannot all be near their partners.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mapping.cost.bounds.partition import Crossings
from mapping.cost.bounds.parts import NOT_TRIED, SortedBytes, host_vertex
from mapping.cost.bounds.projection import projection
from mapping.cost.kernels import nearest_slots as kernel
from mapping.cost.kernels.common_partners import ascend, least_of_sets, list_sets
from mapping.cost.kernels.nearest_flows import GuestArrays, send_to_nearest
from mapping.deadline import each
from mapping.distances.distances import Distances
from mapping.routing.routes import Routes
from mapping.routing.shortest_paths import ShortestPaths
from registry.model import Bound, Floats, Ints, Longs

MAX_SLOTS = 2048
"""Largest number of slots whose distances are compared pair by pair."""
MAX_ENTRIES = 4_000_000
"""Largest number of edges in all sets together."""
COMMON = 6
"""Largest number of common partners in a set."""
ROUNDS, STEP = 250, 0.05


def common_partners(guest: GuestArrays, distances: Distances, slots: Ints) -> Bound:
    """Return a bound on the sum of bytes times distance; 0 if sets cost no more than their edges separately.

    Args:
        distances: The smaller of both directions counts.
        slots (int32[h]): Slots of each host; those of one host are at distance 0.
    """
    nothing = Bound(value=0.0, proof="common-partners: nothing is proved", name="common-partners")
    partners = int(np.diff(guest.ptr).max())
    if int(slots.sum()) < 3 or len(guest.weight) == 0:
        return nothing
    if int(slots.sum()) > MAX_SLOTS:
        return replace(
            nothing, proof=f"{NOT_TRIED}common-partners: {int(slots.sum())} slots, more than {MAX_SLOTS}"
        )
    matrix = distances.between_slots(slots)
    rising = np.sort(matrix + np.diag(np.full(len(matrix), np.inf)), axis=1)[:, : max(partners, COMMON)]
    least = _least(matrix, rising)
    if bool((least <= rising.min() * (2 * np.arange(len(least)) + 1)).all()):
        return nothing
    sets, filled = list_sets(guest, len(least) - 1, np.zeros(0, np.int64), np.zeros(0, np.int32))
    if filled > MAX_ENTRIES:
        return replace(nothing, proof=f"{NOT_TRIED}common-partners: {filled} edges, more than {MAX_ENTRIES}")
    if filled == 0:
        return nothing
    ptr, edges = np.zeros(sets + 1, np.int64), np.zeros(filled, np.int32)
    list_sets(guest, len(least) - 1, ptr, edges)
    cost = least[(np.diff(ptr) - 1) // 2]
    value = ascend(guest, ptr, edges, cost, rising.min(axis=0), ROUNDS, STEP)
    sums = ", ".join(f"{one:.4g}" for one in least[1:])
    return Bound(
        value=value,
        proof=f"common-partners: two ranks and 1, 2, ... common partners are no nearer than {sums} in all",
        name="common-partners",
    )


def _least(matrix: Floats, rising: Floats) -> Floats:
    """Return the least sum of distances (float64[m + 1]) of two hosts and of m others from both."""
    most = min(COMMON, len(matrix) - 2)
    least = np.full(most + 1, np.inf)
    least[0] = rising.min()
    sums = np.ascontiguousarray(np.cumsum(rising[:, :most], axis=1))
    least_of_sets(np.ascontiguousarray(matrix[:64, :64]) if len(matrix) > 64 else matrix, sums, least)
    if len(matrix) > 64:  # values from some of the hosts exclude most pairs
        least_of_sets(matrix, sums, least)
    return least


MAX_ASSIGNMENT = 1 << 20
"""Largest number of entries (ranks times slots) of a linear assignment; above, row minima are used."""
MAX_TABLE = 1 << 24
"""Largest number of entries of a table of partners or slots; above, only the heaviest partners count."""
MAX_GROUPS = 4096
"""Largest number of host groups of which all distances are used together."""
SMALL = 0.005
"""A level that adds less than this part of the sum of the others is not worth much work."""
ROWS = 512
"""Rows of a larger table that are processed together."""
MAX_LEVELS = 8
"""Largest number of distances at which hosts are grouped."""


def least_cost(crossings: Crossings, distances: Distances, slots: Ints) -> list[Bound]:
    """Return bounds on the sum of bytes times distance over all pairs of ranks.

    Args:
        crossings: Least bytes between groups of the profile's ranks.
        distances: Distances between the hosts; the cost is hop-bytes if they are links, else a mapping
            coefficient.
        slots (int32[h]):
    """
    proof = "gilmore-lawler: at best each rank's heaviest partners are on the slots nearest to it"
    return [
        Bound(
            value=least_assignment(crossings.partners.both, distances, slots),
            proof=proof,
            name="gilmore-lawler",
        ),
        nested_cuts(crossings, distances, slots),
        common_partners(crossings.guest, distances, slots),
        projection(crossings.guest, distances, slots),
    ]


def least_assignment(partners: SortedBytes, distances: Distances, slots: Ints) -> float:
    """Return the least sum of bytes times distance by the argument of Gilmore and Lawler.

    Args:
        partners: Bytes of each rank with its partners, both directions together.
        distances: Distances between the hosts. The smaller of both directions counts.
        slots (int32[h]): Slots of each host.

    Notes:
        A rank on a host pays at least the weights of its partners, heaviest first, times the distances of the
        slots around it, nearest first. The least total over all assignments of ranks to slots is a linear
        assignment problem; above `MAX_ASSIGNMENT` entries each rank takes its best slot instead. Hosts of one
        group with the same number of slots are one kind, and kinds with the same distances are one row.
    """
    kind, first = host_kinds(distances.group, slots)
    ranks = len(partners.ptr) - 1
    weights = partners.table(MAX_TABLE // max(ranks, len(first))) / 2
    near, row = np.unique(
        nearest_first(distances, slots, first, weights.shape[1]), axis=0, return_inverse=True
    )
    if ranks * int(slots.sum()) > MAX_ASSIGNMENT:
        chunks = np.array_split(weights, -(-ranks * len(near) // MAX_TABLE))
        return float(sum((chunk @ near.T).min(axis=1).sum() for chunk in chunks))
    costs = (weights @ near.T)[:, np.repeat(row[kind], slots)]
    return float(costs[linear_sum_assignment(costs)].sum())


def host_kinds(group: Ints, slots: Ints) -> tuple[Longs, Longs]:
    """Return the kind of each host, by group and slots, and the first host of each kind."""
    key = group.astype(np.int64) * (int(slots.max()) + 1) + slots
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    return kind.astype(np.int64), first.astype(np.int64)


def nearest_first(distances: Distances, slots: Ints, hosts: Longs, count: int) -> Floats:
    """Return distances from a slot of each host to the nearest others, rising (float64[hosts, count])."""
    group_slots = np.bincount(distances.group, slots, distances.groups).astype(np.int64)
    found = np.zeros((len(hosts), count))
    if distances.codes is not None:
        code, value = distances.codes
        both, group, held = not distances.symmetric, distances.group[hosts].astype(np.int64), slots[hosts]
        each(
            lambda rows: kernel.nearest_slots(
                code, value, both, group_slots, group[rows], held[rows].astype(np.int64), found[rows]
            ),
            [slice(first, first + 256) for first in range(0, len(hosts), 256)],
        )
        return found
    for index, host in enumerate(hosts.tolist()):
        own, here = int(distances.group[host]), int(slots[host])
        far, free = np.minimum(*distances.rows(own)), group_slots.copy()
        free[own] -= here
        near = np.arange(len(free))
        if count + 2 < len(free):  # these groups have enough slots, without the host's own
            near = np.argpartition(far, count + 1)[: count + 2]
        near = near[np.argsort(far[near], kind="stable")]
        enough = int(np.searchsorted(np.cumsum(free[near]), count)) + 1
        around = np.repeat(far[near[:enough]], free[near[:enough]])
        found[index] = np.r_[np.zeros(min(here - 1, count)), around][:count]
    return found


def nested_cuts(crossings: Crossings, distances: Distances, slots: Ints) -> Bound:
    """Return a bound by groups within groups: bytes between groups pay the least distance between them.

    Notes:
        For distances d_1 < d_2 < ... the cost is at least the sum of ``(d_k - d_(k - 1)) * c_k``, where c_k
        are the least bytes between groups that are d_k apart or more: each byte is counted at every level up
        to its own distance.
    """
    total, floor, found = 0.0, 0.0, []
    for distance, label in levels(distances):
        enough = SMALL * total / (distance - floor) if distance > floor else np.inf
        between, argument = crossings.least(np.bincount(label, slots).astype(np.int64), above=enough)
        total, floor = total + (distance - floor) * between, distance
        found.append(f"{between:.6g} at {distance:.4g} or more (by {argument})")
    if distances.groups > MAX_GROUPS:
        found.append(f"larger distances {NOT_TRIED}{distances.groups} kinds of hosts, more than {MAX_GROUPS}")
    return Bound(value=total, proof=f"nested-cuts: least bytes: {', '.join(found)}", name="nested-cuts")


def levels(distances: Distances) -> list[tuple[float, Longs]]:
    """Return rising distances, and groups (by host) that are at least that far apart."""
    hosts = np.arange(len(distances))
    if len(distances) < 2:
        return []
    if distances.groups > MAX_GROUPS:
        return [(_nearest(distances), hosts)]
    between = np.minimum(distances.between, distances.between.T)
    single = np.bincount(distances.group, minlength=len(between)) == 1
    np.fill_diagonal(between, np.where(single, np.inf, np.diagonal(between)))
    values = np.unique(between[np.isfinite(between)])
    if len(values) > MAX_LEVELS:
        values = values[np.linspace(0, len(values) - 1, MAX_LEVELS).astype(np.int64)]
    found = []
    for value in values.tolist():
        label = _apart(between, distances.group, value)
        if int(label.max()) == 0:
            break
        found.append((value, label))
    return found


def _apart(between: np.ndarray[tuple[int, int], np.dtype[np.float64]], group: Ints, value: float) -> Longs:
    """Return groups of hosts (int64[h]) connected by steps below a distance."""
    near = between < value
    _, label = connected_components(csr_array(near), directed=False)
    single = ~np.asarray(near.any(axis=1))  # hosts of such a group are not connected to each other either
    of_host = label[group].astype(np.int64)
    lone = single[group]
    of_host[lone] = len(between) + np.arange(int(lone.sum()))
    return np.unique(of_host, return_inverse=True)[1].astype(np.int64)


def _nearest(distances: Distances) -> float:
    """Return the least distance of two hosts, for tables too large to process at once."""
    count = np.bincount(distances.group, minlength=distances.groups)
    table, value = (distances.between, None) if distances.codes is None else distances.codes
    least = np.inf
    for first in range(0, len(table), ROWS):
        rows = np.array(table[first : first + ROWS])
        groups = first + np.arange(len(rows))
        lone = np.flatnonzero(count[groups] == 1)  # such a group has no two hosts
        rows[lone, groups[lone]] = rows.max()
        least = min(least, float(rows.min()))
    if value is not None:
        return float(value[int(least)])
    return least if np.isfinite(least) else 0.0


VISITS = 40_000_000
"""Most partners that flows visit: ten million take 0.4 s."""
PASSES = 16
"""Largest number of times that each rank sends."""
PARTS = 16
"""Parts of the ranks that send one after the other; lengths are computed anew after each."""
STEEPNESS = 12.0
"""Growth of lengths with load, at the end: the fullest edge is then ``exp(12)`` times longer than empty."""
NAME = "all-to-all"


class Flows(NamedTuple):
    """Flows that together carry no more than the bytes between any two ranks."""

    sent: Floats
    """float64[ranks]: Bytes from a rank to each other one."""
    load: Floats
    """float64[e]: Bytes on each edge of the guest."""


def all_to_all(
    guest: GuestArrays, routes: Routes, distances: Distances, slots: Ints, *, above: float
) -> Bound:
    """Return a bound on the sum of bytes times distance; 0 if not all ranks with traffic reach each other.

    Bytes that the flows leave over cost what the argument of Gilmore and Lawler proves for them.

    Args:
        routes: Routes between the hosts. Without shortest paths, or between hosts with several switches, a
            distance may be longer than the way through a third host: then nothing is proved.
        distances: Distances of the hosts on these routes.
        slots (int32[h]): Slots of each host; those of one host are at distance 0.
        above: What other arguments prove for all bytes. Flows that prove less for the bytes that they take
            are given up after their first part.
    """
    nothing = Bound(value=0.0, proof=f"{NAME}: nothing is proved", name=NAME)
    talking = np.flatnonzero(np.diff(guest.ptr)).astype(np.int32)
    if len(talking) < 2 or not _obeys_triangles(routes, distances):
        return nothing
    (kind, first), visits = host_kinds(distances.group, slots), len(talking) * len(guest.head)
    if len(first) * len(talking) > MAX_TABLE or visits > PARTS * VISITS:
        return replace(
            nothing, proof=f"{NOT_TRIED}{NAME}: {len(talking)} ranks on {len(first)} kinds of hosts"
        )
    around = nearest_first(distances, slots, first, len(talking) - 1).sum(axis=1)
    rising = np.sort(np.repeat(around[kind], slots))[: len(talking)]
    flows = _flows(guest, talking, rising, above / float(guest.weight.sum()))
    value = _cost(flows, rising)
    if value == 0.0:
        return nothing
    rest = np.maximum(guest.weight - flows.load, 0.0)
    left = least_assignment(SortedBytes.of(guest.ptr, rest[guest.edge]), distances, slots)
    return Bound(
        value=value + left,
        proof=f"{NAME}: {value:.6g} for equal flows between all ranks, {left:.6g} for the bytes left over",
        name=NAME,
    )


def _obeys_triangles(routes: Routes, distances: Distances) -> bool:
    """Return True if no distance is longer than the way through a third host."""
    return type(routes) is ShortestPaths and host_vertex(routes) is not None and distances.symmetric


def _flows(guest: GuestArrays, talking: Ints, rising: Floats, enough: float) -> Flows:
    """Return flows that cost as much as can be found.

    Args:
        talking (int32[t]): Ranks with partners.
        rising (float64[t]): As for `_cost`.
        enough: Least cost for each byte of their loads.

    Notes:
        Ranks send in a random order (seed 0), and lengths of edges grow with their load, at first slowly.
        After every part all flows so far are divided by the largest load of an edge; those that cost most
        count.
    """
    ranks, count = len(guest.ptr) - 1, len(talking)
    times, size = min(PASSES * count, VISITS // len(guest.head)), -(-count // PARTS)
    generator, to_all = np.random.default_rng(0), np.zeros(count)
    to_all[-1] = 1.0
    order = np.concatenate([generator.permutation(talking) for _ in range(-(-times // count))])[:times]
    total = Flows(np.zeros(ranks), np.zeros(len(guest.weight)))
    best, worst = Flows(np.zeros(ranks), np.zeros(len(guest.weight))), 0.0
    for start in range(0, times, size):
        steepness = STEEPNESS * (start / times) / worst if worst > 0.0 else 0.0
        send_to_nearest(guest, order[start : start + size], to_all, steepness, total.load, total.sent)
        worst = float((total.load / guest.weight).max())
        cheap = float(total.sent.sum() * rising.mean()) < enough * float(total.load.sum())
        if worst == 0.0 or (start == 0 and cheap):
            break
        found = Flows(total.sent / worst, total.load / worst)
        best = max(best, found, key=lambda flows: _cost(flows, rising))
    return best


def _cost(flows: Flows, rising: Floats) -> float:
    """Return the least cost of flows.

    Args:
        rising (float64[t]): Distances from a slot to the nearest of all others together, for the slots where
            these are least.
    """
    return float(np.sort(flows.sent)[::-1][: len(rising)] @ rising)
