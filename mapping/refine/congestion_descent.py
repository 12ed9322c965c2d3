"""Annealed pair exchange on the sum over links of (load / (capacity * worst)) ** p, with p growing.

A sum of high powers is close to its largest term but, unlike that, falls with every hot link that is
relieved. Hosts' own cables and links of the network are scaled by their own worst: where a host's own
cable is the floor of congestion, the network goes on improving, worst link first, then worst network
link, then hop-bytes, as the objective says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mapping.budget import Budget
from mapping.kernels import congestion_search as kernel
from mapping.kernels.congestion_search import Flows, Loads
from mapping.kernels.flow_cache import FlowCache, new_cache
from mapping.kernels.hop_bytes_search import Guest, Seats
from mapping.kernels.random_numbers import State, state_from
from mapping.objective import Score, better, score_of
from mapping.problem import Problem
from mapping.refine import Found
from mapping.refine.pair_exchange import temperature
from registry.model import Bools, Ints

ROUND = 1_024
"""Proposals between two looks at the clock: 1 to 50 ms."""
REFRESH = 8
"""Proposals a rank between two exact computations of all loads."""
SQUARINGS = (2, 3, 4, 5)
"""Powers of two that p goes through, in equal parts of the budget."""
HOTTEST, COLDEST = 0.3, 0.01
"""First and last temperature, as the part of the sum's logarithmic slope that one rank is worth."""
SCREEN = 1.0
"""Hop-bytes that a proposal may lose, in bytes of the median rank times hops."""
HOT_PAIRS = 0.02
"""Part of the pairs of ranks that counts as hottest."""
FEWEST_HOT = 8
"""Fewest pairs that count as hottest."""
TOGETHER = 0.5
"""Part of the budget in which hosts' cables and the network's are measured by one worst link, where hosts
take several ranks."""
CACHE_BYTES = 192 << 20
"""Memory for flows between hosts."""


class _Search(NamedTuple):
    """Arrays of one run."""

    guest: Guest
    cache: FlowCache
    loads: Loads
    pending: Flows
    seats: Seats
    state: State


class _Stage(NamedTuple):
    """What holds from one computation of all loads to the next: their score, p, scale, hottest pairs."""

    score: Score
    squarings: int
    total: float
    hot_rank: Ints
    hot_partner: Ints


def refine(problem: Problem, start: Ints, budget: Budget, generator: np.random.Generator) -> Iterator[Found]:
    """Improve a placement by host index on congestion, as the objective of that name orders."""
    if len(problem.bytes) == 0 or problem.hosts == 1:
        return
    search = _begin(problem, start, generator)
    stage, since = _look(problem, search, 0.0), 0
    best, lowest = start, stage.score
    while proposals := budget.claim(ROUND):
        heat = temperature(budget.fraction, HOTTEST, COLDEST) / problem.ranks
        kernel.exchange_on_congestion(
            proposals,
            stage.squarings,
            heat * stage.total * (1 << stage.squarings),
            SCREEN * problem.median_rank_bytes,
            search.guest,
            search.cache,
            search.loads,
            search.pending,
            problem.hops,
            problem.near,
            search.seats,
            stage.hot_rank,
            stage.hot_partner,
            search.state,
        )
        since += proposals
        if since >= REFRESH * problem.ranks or budget.fraction >= 1.0:
            stage, since = _look(problem, search, budget.fraction), 0
            if better("congestion", stage.score, lowest):
                best, lowest = search.seats.host_of_rank.copy(), stage.score
        yield Found(best, "congestion_seconds", lowest.congestion_seconds)
    if since and better("congestion", (stage := _look(problem, search, 1.0)).score, lowest):
        best, lowest = search.seats.host_of_rank.copy(), stage.score
        yield Found(best, "congestion_seconds", lowest.congestion_seconds)


def load_all(problem: Problem, cache: FlowCache, loads: Loads, host_of_rank: Ints) -> None:
    """Compute ``loads.bytes`` afresh: all pairs of ranks as one change of links without load."""
    source, target, size = problem.host_traffic(host_of_rank)
    apart = source != target
    flows = Flows(source[apart], target[apart], size[apart])
    kernel.pend_flows(cache, flows, len(flows.source), loads)
    loads.bytes[:] = loads.change
    loads.change[:] = 0.0
    loads.is_touched[:] = False


def _begin(problem: Problem, start: Ints, generator: np.random.Generator) -> _Search:
    guest, links = problem.guest(directed=True), len(problem.routes.fabric.links)
    room = 4 * int(np.diff(guest.indptr).max())
    number, one = np.zeros(links), np.zeros(links, np.int32)
    return _Search(
        guest=guest,
        cache=new_cache(problem.routes.flows, CACHE_BYTES),
        loads=Loads(number, number.copy(), number.copy(), number.copy(), one, np.zeros(links, bool)),
        pending=Flows(np.zeros(room, np.int32), np.zeros(room, np.int32), np.zeros(room)),
        seats=problem.seats(start),
        state=state_from(generator),
    )


def _look(problem: Problem, search: _Search, fraction: float) -> _Stage:
    """Compute all loads afresh, scale links by the worst of their class, and find the hottest pairs."""
    loads = search.loads
    load_all(problem, search.cache, loads, search.seats.host_of_rank)
    score = score_of(problem.routes.fabric, loads.bytes)
    squarings = SQUARINGS[min(int(fraction * len(SQUARINGS)), len(SQUARINGS) - 1)]
    wanted = _scale(problem, loads, score, squarings, fraction)
    hot = _hot_pairs(problem, search, wanted)
    total = float(loads.term[wanted].sum())
    return _Stage(score, squarings, total, problem.source[hot], problem.target[hot])


def _scale(problem: Problem, loads: Loads, score: Score, squarings: int, fraction: float) -> Bools:
    """Set the links' scales and terms; which links are to be relieved.

    With one rank a host its own cables carry what the rank sends and receives, wherever it sits: only the
    network can be relieved. With several, hosts' cables can be too: first the worst of all links counts,
    then the worst of each class.
    """
    fabric = problem.routes.fabric
    network, several = fabric.network_link, bool((problem.allocation.slots > 1).any())
    highest, inner = score.congestion_seconds, score.network_congestion_seconds
    together = inner == 0 or (several and fraction < TOGETHER)
    worst = np.where(network, highest if together else inner, highest)
    loads.scale[:] = 1.0 / (fabric.links.capacity * np.where(worst > 0, worst, 1.0))
    loads.term[:] = (loads.bytes * loads.scale) ** (1 << squarings)
    return network | (several or inner == 0)


def _hot_pairs(problem: Problem, search: _Search, wanted: Bools) -> Ints:
    """Pairs of ranks whose traffic is worth most of the sum."""
    loads = search.loads
    slope = np.divide(loads.term, loads.bytes, out=np.zeros(len(wanted)), where=wanted & (loads.bytes > 0))
    heat = np.empty(len(problem.bytes))
    kernel.pair_heat(
        problem.source, problem.target, problem.bytes, search.cache, search.seats.host_of_rank, slope, heat
    )
    count = min(max(int(len(heat) * HOT_PAIRS), FEWEST_HOT), len(heat))
    coolest = np.partition(heat, len(heat) - count)[len(heat) - count]
    return np.flatnonzero(heat >= coolest).astype(np.int32)
