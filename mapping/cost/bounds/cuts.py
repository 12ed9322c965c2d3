"""Bound on the worst link by the paths of all cuts together: a linear programme over traffic between hosts.

A cut alone assumes that its bytes can use all its cables. But the paths of each two hosts are known, and a
host with several rails has no single switch to cut. Here the bytes between each two kinds of hosts, and the
number of ranks on each kind, are variables. They must cross every cut as much as any placement does, and
leave and enter each group of hosts; the worst link is as little loaded as possible. Every placement is a
solution, so that the optimum is a bound.

The solver (HiGHS) works with tolerances. So its dual solution, weights of links and of cuts, is only a
proposal: it is made feasible here, and the bound is computed anew from it by weak duality.

Hosts grouped by the cables that all traffic between a group and the rest must use.

Bounds on the worst cable, in seconds: injection and ejection, cuts, and total work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_array, csr_array

from mapping.cost.bounds.partition import Crossings
from mapping.cost.bounds.parts import (
    OBLIVIOUS,
    Cables,
    bisections,
    dense_parts,
    host_vertex,
    leaf_parts,
    tiers,
)
from mapping.cost.kernels.pair_seconds import list_flows
from mapping.distances.distances import Distances, hosts_routed_alike
from mapping.routing.kernels.flows import new_scratch
from mapping.routing.routes import Routes
from registry.model import Allocation, Bools, Bound, Floats, Ints, Longs, Profile

NAME = "routed-cuts"
MAX_KINDS = 64
"""Largest number of kinds of hosts: their pairs are variables."""
TANGENTS = 3
"""Number of ranks in a group at which the least bytes out of it are linearised."""
NOISE = 1e-9
"""Weights of cuts below this part of the largest are dropped: they are the solver's tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """Pairs of kinds of hosts, and the links that carry their traffic."""

    kind: Ints
    """int32[h]: Kind of each host."""
    first: Ints
    """int32[g]: A host of each kind."""
    slots: Longs
    """int64[g]: Slots of all hosts of each kind."""
    source: Longs
    target: Longs
    """int64[p]: Kinds of the sending and of the receiving host."""
    share: csr_array
    """csr_array[m, p]: Part of each pair's bytes on each link of the network."""

    @classmethod
    def of(cls, routes: Routes, slots: Ints) -> _Pairs | None:
        """Return the pairs of the routes' hosts, or None if there are too many."""
        kind, first, second = hosts_routed_alike(routes)
        if len(first) > MAX_KINDS:
            return None
        source, target = (each.ravel() for each in np.indices((len(first), len(first))))
        other = np.where(source == target, second[target], first[target])
        source, target, other = source[other >= 0], target[other >= 0], other[other >= 0]
        flows = routes.flows
        ptr = np.zeros(len(source) + 1, np.int64)
        link = np.empty(len(source) * flows.max_entries, np.int32)
        part = np.empty(len(link))
        list_flows(flows, new_scratch(flows), first[source], other, ptr, link, part)
        shape = (len(source), len(routes.fabric.links))
        share = csr_array((part[: ptr[-1]], link[: ptr[-1]], ptr), shape=shape).T.tocsr()
        share = csr_array(routes.fabric.network_link[:, None] * share)
        share.eliminate_zeros()
        held = np.bincount(kind, slots, len(first)).astype(np.int64)
        return cls(kind=kind, first=first, slots=held, source=source, target=target, share=share)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cuts:
    """Inequalities: bytes of some pairs, less a multiple of the ranks of each kind, have a least value."""

    pairs: list[Bools]
    """list of bool[p]."""
    ranks: list[Floats]
    """list of float64[g]."""
    least: list[float]

    def add(self, pairs: Bools, least: float, ranks: Floats) -> None:
        """Add an inequality unless it is trivial."""
        if least > 0.0 or bool((ranks > 0.0).any()):
            self.pairs.append(pairs)
            self.ranks.append(ranks)
            self.least.append(least)


def routed_cuts(
    crossings: Crossings, routes: Routes, cables: Cables, slots: Ints, groupings: list[Longs]
) -> Bound:
    """Return a bound on the worst link of the network, in seconds; 0 if nothing is proved.

    Args:
        cables: Capacity of the links. Bytes of other jobs on them do not count here.
        groupings (list of int64[h]): Groups of hosts between which bytes must cross.
    """
    nothing = Bound(value=0.0, proof=f"{NAME}: nothing is proved", name=NAME)
    if routes.name.partition(":")[0] not in OBLIVIOUS or float(crossings.profile.bytes.sum()) == 0.0:
        return nothing
    pairs = _Pairs.of(routes, slots)
    if pairs is None or pairs.share.nnz == 0:
        return nothing
    cuts = _cuts(crossings, pairs, slots, groupings)
    if not cuts.least:
        return nothing
    value = _certified(pairs, cuts, cables.capacity, crossings.profile)
    proof = (
        f"{NAME}: {len(cuts.least)} cuts, with the bytes between hosts divided as well as their paths allow"
    )
    return Bound(value=value, proof=proof, name=NAME)


def _cuts(crossings: Crossings, pairs: _Pairs, slots: Ints, groupings: list[Longs]) -> _Cuts:
    """Return the cuts between hosts, between the groups of each grouping, and out of and into each group."""
    cuts = _Cuts(pairs=[], ranks=[], least=[])
    total, none = crossings.least(slots.astype(np.int64))[0], np.zeros(len(pairs.first))
    cuts.add(np.ones(len(pairs.source), bool), total, none)
    seen: list[Longs] = []
    for label in (np.arange(len(slots)), *groupings):
        of_kind = label[pairs.first]
        if bool((of_kind[pairs.kind] != label).any()) or any(np.array_equal(of_kind, one) for one in seen):
            continue
        seen.append(of_kind)
        groups = np.bincount(label, slots).astype(np.int64)
        apart = of_kind[pairs.source] != of_kind[pairs.target]
        cuts.add(apart, crossings.least(groups, above=np.inf)[0], none)  # not worth more flows
        for group in range(len(groups)):
            _out_of(crossings, pairs, cuts, of_kind == group, int(groups[group]))
    return cuts


def _out_of(crossings: Crossings, pairs: _Pairs, cuts: _Cuts, inside: Bools, size: int) -> None:
    """Add the least bytes out of and into a group of kinds with `size` slots.

    The sum of the `k` smallest bytes that ranks cannot keep in such a group is convex in `k`: its tangents
    hold for all numbers of ranks in the group.
    """
    ranks = crossings.profile.ranks
    fewest = max(ranks - int(pairs.slots.sum()) + size, 0)
    for side, other, bytes in (
        (pairs.source, pairs.target, crossings.partners.sent),
        (pairs.target, pairs.source, crossings.partners.received),
    ):
        crossing = inside[side] & ~inside[other]
        rising = np.sort(bytes.beyond(size - 1))
        places = np.linspace(fewest, max(size - 1, fewest), TANGENTS)
        for k in np.unique(np.minimum(places, ranks - 1).astype(np.int64)).tolist():
            slope = float(rising[k])
            cuts.add(crossing, float(rising[:k].sum()) - slope * k, np.where(inside, slope, 0.0))
        least = crossings.small_groups.least_leaving(fewest, size, bytes.beyond(0))
        cuts.add(crossing, least, np.zeros(len(inside)))


def _certified(pairs: _Pairs, cuts: _Cuts, capacity: Floats, profile: Profile) -> float:
    """Return the bound that the weights of the solver's dual solution prove.

    Notes:
        Weights `y` of links, with the sum of ``y * capacity`` equal to 1, and `z` of cuts, so that no pair of
        hosts has more weight in cuts than on the links of its paths: the worst link takes at least the
        weighted mean of all links' times, which is at least the sum of `z` times the bytes that cross.
    """
    used = np.flatnonzero(np.diff(pairs.share.indptr) > 0)
    share, bytes, mean = pairs.share[used], float(profile.bytes.sum()), float(capacity[used].mean())
    rate, least = capacity[used] / mean, np.array(cuts.least) / bytes
    inside, held = csr_array(np.array(cuts.pairs, np.float64)), np.array(cuts.ranks) / bytes
    count, kinds = len(pairs.source), len(pairs.slots)
    solved = linprog(
        np.r_[np.zeros(count + kinds), 1.0],
        A_ub=block_array([[share, None, -rate[:, None]], [-inside, csr_array(held), None]]),
        b_ub=np.r_[np.zeros(len(used)), -least],
        A_eq=csr_array(np.r_[np.zeros(count), np.ones(kinds), 0.0][None]),
        b_eq=[profile.ranks],
        bounds=[(0, None)] * count + [(0, held) for held in pairs.slots.tolist()] + [(0, None)],
    )
    if solved.status != 0 or solved.fun <= 0.0:
        return 0.0
    y, z = np.split(np.maximum(-solved.ineqlin.marginals, 0.0), [len(used)])
    y += NOISE * y.max()  # so that no pair with links has the weight 0
    y /= float(y @ rate)
    z[z < NOISE * z.max()] = 0.0
    on_links, in_cuts = share.T @ y, inside.T @ z
    counted = in_cuts > 0.0
    z *= float((on_links[counted] / in_cuts[counted]).min(initial=np.inf)) if counted.any() else 0.0
    each_rank = z @ held
    order = np.argsort(each_rank, kind="stable")
    filled = np.diff(np.minimum(np.cumsum(pairs.slots[order]), profile.ranks), prepend=0)
    return float(z @ least + filled @ each_rank[order]) * bytes / mean


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """Hosts grouped by the cables that all traffic between a group and the rest must use."""

    name: str
    """Name of the cut between the groups: ``host-cut``, ``switch-cut``, ``pod-cut`` or ``bisection``."""
    place: str
    """What a group is, for the proof."""
    group: Longs
    """int64[h]: Group of each host of the allocation, 0 to g - 1."""
    slots: Longs
    """int64[g]: Slots of each group."""
    outwards: Floats
    inwards: Floats
    """float64[g]: Least seconds of a byte out of (into) the group on the worst of those cables; 0 if
    unlimited."""
    leaving: Bools
    entering: Bools
    """bool[m]: True for rows of ``fabric.links`` that lead out of (into) any group."""
    within_network: bool
    """True if none of these is a host's own cable."""


def host_groups(routes: Routes, allocation: Allocation, cables: Cables) -> Groups:
    """Return groups of one host each, with its own cables."""
    ends, fabric = routes.ends, routes.fabric
    return Groups(
        name="host-cut",
        place="host",
        group=np.arange(len(allocation)),
        slots=allocation.slots.astype(np.int64),
        outwards=_host_seconds_per_byte(routes, cables, outwards=True),
        inwards=_host_seconds_per_byte(routes, cables, outwards=False),
        leaving=(ends.out_port >= 0) & cables.usable,
        entering=(ends.in_port >= 0) & cables.usable,
        within_network=bool(fabric.forwards[routes.hosts].all()),
    )


def larger_groups(routes: Routes, allocation: Allocation, cables: Cables, near: Distances) -> list[Groups]:
    """Return the leaf switches, pods, dense parts and bisections of a fabric that exist, fine to coarse."""
    vertex = host_vertex(routes)
    if vertex is None:
        return []
    parts = [
        ("switch-cut", "leaf switch", leaf_parts(routes, vertex)),
        *(("pod-cut", "pod", part) for part in tiers(routes, near, vertex)),
        ("pod-cut", "densely cabled part", dense_parts(routes)),
        *(("bisection", f"part of {n}", part) for n, part in bisections(routes, allocation, vertex)),
    ]
    found: list[Groups] = []
    for name, place, part in parts:
        groups = None if part is None else _groups(routes, allocation, cables, name, place, part, vertex)
        if groups is not None and not any(np.array_equal(groups.group, other.group) for other in found):
            found.append(groups)
    return found


def _groups(
    routes: Routes,
    allocation: Allocation,
    cables: Cables,
    name: str,
    place: str,
    part: Longs,
    vertex: Longs,
) -> Groups | None:
    """Return the hosts of each part as groups; None if all hosts are in one part."""
    fabric = routes.fabric
    mine, group = np.unique(part[vertex], return_inverse=True)
    if len(mine) < 2 or int(mine[0]) < 0:
        return None
    number = np.full(int(part.max()) + 2, -1, np.int64)  # the last entry is for -1
    number[mine] = np.arange(len(mine))
    of_vertex = number[part]
    links = fabric.links
    usable = cables.usable & fabric.network_link
    out_of, into = of_vertex[links.source], of_vertex[links.target]
    leaving, entering = (usable & (out_of != into) & (side >= 0) for side in (out_of, into))

    def rates(side: Ints | Longs, rows: Bools) -> Floats:
        capacity = np.bincount(side[rows], cables.capacity[rows], len(mine))
        return np.divide(1.0, capacity, out=np.zeros(len(mine)), where=capacity > 0)

    return Groups(
        name=name,
        place=place,
        group=group.astype(np.int64),
        slots=np.bincount(group, allocation.slots).astype(np.int64),
        outwards=rates(out_of, leaving),
        inwards=rates(into, entering),
        leaving=leaving,
        entering=entering,
        within_network=True,
    )


def _host_seconds_per_byte(routes: Routes, cables: Cables, *, outwards: bool) -> Floats:
    """Return the least time (float64[h]) of a byte sent (or received) by a host on its worst port."""
    ends = routes.ends
    port = ends.out_port if outwards else ends.in_port
    rows = (port >= 0) & cables.usable
    ports = np.bincount(port[rows], weights=cables.capacity[rows], minlength=len(ends.port_host))
    if routes.evenly_split:
        rail_of_port = np.repeat(np.arange(len(ends.rail_adapter)), np.diff(ends.port_ptr))
        host_of_rail = np.repeat(np.arange(len(ends.hosts)), np.diff(ends.rail_ptr))
        share = 1.0 / np.diff(ends.port_ptr)[rail_of_port] / np.diff(ends.rail_ptr)[ends.port_host]
        found = np.zeros(len(ends.hosts))
        limited = ports > 0
        np.maximum.at(
            found, host_of_rail[rail_of_port[limited]], (share / np.maximum(ports, 1e-300))[limited]
        )
        return found
    hosts = np.bincount(ends.port_host, weights=ports, minlength=len(ends.hosts))
    return np.divide(1.0, hosts, out=np.zeros(len(ends.hosts)), where=hosts > 0)


def injection_bounds(crossings: Crossings, groups: Groups) -> list[Bound]:
    """Return bounds from bytes that a rank's group cannot keep.

    Notes:
        With its heaviest partners in all other slots of its group, the rest of a rank's bytes still cross,
        and so do bytes of ranks that must share its group because other slots are too few. If groups are
        small, the least bytes out of any group with the rank are found by enumeration. The heaviest ranks
        take the fastest groups: no other assignment has a smaller maximum.
    """
    size, partners = int(groups.slots.max()), crossings.partners
    out, into = (
        _crossing(
            side.beyond(size - 1), groups.slots, crossings.small_groups.leaving(groups.slots, side.beyond(0))
        )
        for side in (partners.sent, partners.received)
    )
    place = groups.place
    proof = f"what a rank's {place} cannot keep crosses that {place}'s cables"
    slower = np.minimum(groups.outwards, groups.inwards)
    return [
        _worst(out, groups.outwards, groups.slots, "injection", f"injection: {proof}"),
        _worst(into, groups.inwards, groups.slots, "ejection", f"ejection: {proof}"),
        _worst(np.maximum(out, into), slower, groups.slots, "injection", f"injection and ejection: {proof}"),
    ]


def _crossing(beyond: Floats, slots: Longs, enumerated: Floats | None) -> Floats:
    """Return the least bytes (float64[ranks]) that each rank's group sends (or receives)."""
    crossing = beyond + _shared_group_bytes(beyond, slots)
    return crossing if enumerated is None else np.maximum(crossing, enumerated)


def _shared_group_bytes(crossing: Floats, slots: Longs) -> float:
    """Return the least bytes of the other ranks that must be in any rank's group for lack of slots."""
    others = len(crossing) - int(slots.sum()) + int(slots.min()) - 1
    return float(np.sort(crossing)[: max(others, 0)].sum())


def _worst(crossing: Floats, rates: Floats, slots: Longs, name: str, proof: str) -> Bound:
    """Return the largest time of a rank, with the heaviest ranks on the fastest slots."""
    fastest = np.sort(np.repeat(rates, slots))[: len(crossing)]
    return Bound(value=float((np.sort(crossing)[::-1] * fastest).max()), proof=proof, name=name)


def cut_bounds(crossings: Crossings, groups: Groups, cables: Cables, *, above: float = 0.0) -> list[Bound]:
    """Return bounds from bytes that the guest must send between groups.

    Args:
        above: Seconds that are proved already: less work is done if no more can be expected.

    Notes:
        Every byte between two groups leaves one group over at least one of its cables, and enters the other.
    """
    capacity = min(float(cables.capacity[rows].sum()) for rows in (groups.leaving, groups.entering))
    total, argument = crossings.least(groups.slots, above=above * capacity)
    proof = (
        f"{groups.name}: at least {total:.6g} bytes cross between {len(groups.slots)} groups of hosts"
        f" ({groups.place}; by {argument}) and share the cables"
    )
    return [
        Bound(value=cables.least_seconds(rows, total), proof=f"{proof} that {verb} them", name=groups.name)
        for rows, verb in ((groups.leaving, "leave"), (groups.entering, "enter"))
    ]


def total_work(hop_bytes: Bound, cables: Cables, rows: Bools, which: str) -> Bound:
    """Return a bound from the least sum of bytes on some links.

    Args:
        hop_bytes: Bound on the bytes that all these links carry together.
    """
    least = f"{hop_bytes.value:.6g} bytes times links at least"
    return Bound(
        value=cables.least_seconds(rows, hop_bytes.value),
        proof=f"total-work: {least} on all {which} ({hop_bytes.proof})",
        name="total-work",
    )
