"""Bound on the worst link by the paths of all cuts together: a linear programme over traffic between hosts.

A cut alone assumes that its bytes can use all its cables. But the paths of each two hosts are known, and a
host with several rails has no single switch to cut. Here the bytes between each two kinds of hosts, and the
number of ranks on each kind, are variables. They must cross every cut as much as any placement does, and
leave and enter each group of hosts; the worst link is as little loaded as possible. Every placement is a
solution, so that the optimum is a bound.

The solver (HiGHS) works with tolerances. So its dual solution, weights of links and of cuts, is only a
proposal: it is made feasible here, and the bound is computed anew from it by weak duality.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_array, csr_array

from mapping.distances.equivalent import hosts_routed_alike
from mapping.evaluation.bounds.cables import OBLIVIOUS, Cables
from mapping.evaluation.bounds.partition import Crossings
from mapping.evaluation.kernels.pair_seconds import list_flows
from mapping.routing.kernels.flows import new_scratch
from mapping.routing.routes import Routes
from registry.model import Bools, Bound, Floats, Ints, Longs, Profile

NAME = "routed-cuts"
MAX_KINDS = 64
"""Largest number of kinds of hosts: their pairs are variables."""
TANGENTS = 3
"""Number of ranks in a group at which the least bytes out of it are linearised."""
NOISE = 1e-9
"""Weights of cuts below this part of the largest are dropped: they are the solver's tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """Pairs of kinds of hosts, and the links that carry their traffic.

    Attributes
    ----------
    kind : int32[h]
        Kind of each host.
    first : int32[g]
        A host of each kind.
    slots : int64[g]
        Slots of all hosts of each kind.
    source, target : int64[p]
        Kinds of the sending and of the receiving host.
    share : csr_array[m, p]
        Part of each pair's bytes on each link of the network.
    """

    kind: Ints
    first: Ints
    slots: Longs
    source: Longs
    target: Longs
    share: csr_array

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
    """Inequalities: the bytes of some pairs, less a multiple of the ranks of each kind, have a least value.

    Attributes
    ----------
    pairs : list of bool[p]
    ranks : list of float64[g]
    least : list of float
    """

    pairs: list[Bools]
    ranks: list[Floats]
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

    Parameters
    ----------
    cables : Cables
        Capacity of the links. Bytes of other jobs on them do not count here.
    groupings : list of int64[h]
        Groups of hosts between which bytes must cross.
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

    Notes
    -----
    Weights `y` of links, with the sum of ``y * capacity`` equal to 1, and `z` of cuts, so that no pair of
    hosts has more weight in cuts than on the links of its paths: the worst link takes at least the weighted
    mean of all links' times, which is at least the sum of `z` times the bytes that cross.
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
