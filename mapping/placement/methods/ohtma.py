"""OHTMA: ranks by volume onto hosts by compactness, then exchanges of pairs with backtracking.

Source: Li et al., "OHTMA: an optimized heuristic topology-aware mapping algorithm on the Tianhe-3
exascale supercomputer prototype", 2020, section 4.3, Algorithm 1. Lines 1 to 19, the first mapping, are
read as printed; for lines 20 to 36 and their corrections see `mapping.placement.methods.ohtma`.

Line 7
    ``A[p, i]`` is what p sends to i: a rank that only receives comes last.
Line 11
    ``B[n, i]`` is the problem's distance from n to i: the paper counts switches, and any convention of
    `mapping.distances.distances` will do. A processor is a slot, and slots of one host are at distance 0.
    Sums over unselected processors are over all slots of the allocation, of which the first mapping picks as
    many as there are ranks.
Line 13, 14
    Ties go to the lower rank and the lower host.

OHTMA's pair exchange: the best pair of all, both locked, P/2 times, then back to the best prefix.

Source: Li et al., "OHTMA: an optimized heuristic topology-aware mapping algorithm on the Tianhe-3
exascale supercomputer prototype", 2020, section 4.3, Algorithm 1, lines 20 to 36. As printed it cannot
run; corrections:

Line 20, 30
    All processes are marked and k is set to 1 in every round, so that the loop never ends and has nothing
    left to exchange. Here the two exchanged processes are locked, and k increases.
Line 22
    ``loop`` is half the number of processes (section 5.2).
Line 26
    The gain leaves out what the two receive, and counts the bytes between the two as if nothing were sent
    any more. Here it is exact in both directions; option ``gain=printed`` keeps the printed one, for
    comparison, under which exchanges and the best prefix are chosen by wrong numbers.
Line 28
    Ties go to the lower pair. Two ranks of one host are no pair: exchanging them changes nothing.
Line 34
    The shortest of the best prefixes.

Rounds continue even if the best gain is a loss: the result is the best prefix. Time grows with the square of
the ranks, and memory with 16 bytes times ranks times groups of hosts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mapping.deadline import Deadline
from mapping.placement.candidate import Candidate
from mapping.placement.kernels.ohtma import Bench, exchange_rounds, first_mapping, set_costs
from mapping.placement.kernels.pair_gain import partners
from mapping.placement.problem import Problem
from registry.errors import InvalidValue, UnknownName
from registry.model import Floats, Ints

EXACT, PRINTED = "exact", "printed"
GAINS = (EXACT, PRINTED)
ROUND = 64
"""Exchanges between two checks of the clock."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exchange:
    """Result of one run of lines 20 to 36."""

    host_of_rank: Ints
    """int32[ranks]: Placement after the best prefix; with the printed gain perhaps worse than the start."""
    pairs: Ints
    """int32[rounds, 2]: Ranks exchanged in each round, the lower first."""
    gains: Floats
    """float64[rounds]: Bytes times distance that each round saves by the chosen gain."""
    kept: int
    """Length of the best prefix."""


def refine(
    problem: Problem,
    start: Ints,
    deadline: Deadline,
    generator: np.random.Generator,
    *,
    gain: str = EXACT,
    rounds: int = 0,
    passes: int = 1,
) -> Iterator[Candidate]:
    """Improve a placement on hop-bytes; a step is an exchange. `generator` is not used.

    Args:
        gain: ``exact`` or ``printed``.
        rounds: Number of exchanges of a pass; 0: half the ranks, as in the paper.
        passes: Most passes, each from the result of the one before and while that improves; 1 in the paper.
    """
    _check(gain, rounds, passes)
    best = Candidate(start, "hop_bytes", problem.hop_bytes(start))
    if len(problem.bytes) == 0 or problem.hosts == 1:
        return
    for _ in range(passes):
        before = best.value
        for found in _run_pass(problem, best.host_of_rank, deadline, gain, rounds):
            value = problem.hop_bytes(found.host_of_rank)
            if value < best.value:
                best = Candidate(found.host_of_rank, "hop_bytes", value)
            yield best
        if best.value >= before:
            return


def exchange(problem: Problem, start: Ints, *, gain: str = EXACT, rounds: int = 0) -> Exchange:
    """Run lines 20 to 36 once, without a deadline; parameters as for `refine`."""
    _check(gain, rounds, 1)
    *_, last = _run_pass(problem, start, Deadline(seconds=np.inf), gain, rounds)
    return last


def _check(gain: str, rounds: int, passes: int) -> None:
    if gain not in GAINS:
        raise UnknownName("ohtma.gain", gain, GAINS)
    if rounds < 0 or passes < 1:
        raise InvalidValue("ohtma-exchange", "rounds must not be below 0, passes not below 1")


def _run_pass(
    problem: Problem, start: Ints, deadline: Deadline, gain: str, rounds: int
) -> Iterator[Exchange]:
    """Yield the result of a pass after each chunk of rounds, at least once."""
    bench = _bench(problem, start, gain)
    set_costs(bench)
    most = rounds or problem.ranks // 2
    pairs, gains, done = np.zeros((most, 2), np.int32), np.zeros(most), 0
    yield _best_prefix(start, pairs[:0], gains[:0])
    while done < most and (chunk := deadline.claim(min(ROUND, most - done))):
        made = exchange_rounds(bench, gain == EXACT, pairs[done : done + chunk], gains[done : done + chunk])
        done += made
        yield _best_prefix(start, pairs[:done], gains[:done])
        if made < chunk:
            return


def _best_prefix(start: Ints, pairs: Ints, gains: Floats) -> Exchange:
    """Return the result after the best prefix (lines 33 to 35)."""
    kept = int(np.argmax(np.r_[0.0, np.cumsum(gains)]))
    host_of_rank = start.copy()
    for rank, other in pairs[:kept].tolist():
        host_of_rank[rank], host_of_rank[other] = host_of_rank[other], host_of_rank[rank]
    return Exchange(host_of_rank=host_of_rank, pairs=pairs, gains=gains, kept=kept)


def _bench(problem: Problem, start: Ints, gain: str) -> Bench:
    """Return the tables of the exchange kernel for a placement."""
    ranks, hosts = problem.ranks, problem.distances
    used, group = np.unique(hosts.group[start], return_inverse=True)
    of_host = np.full(problem.hosts, -1, np.int32)
    of_host[start] = group
    member = np.argsort(start, kind="stable").astype(np.int32)
    place = np.empty(ranks, np.int32)
    place[member] = np.arange(ranks)
    both = partners(ranks, problem.source, problem.target, problem.bytes)
    nothing = np.zeros(len(both.partner))
    return Bench(
        pays=both if gain == EXACT else both._replace(received=nothing),
        causes=both if gain == EXACT else both._replace(sent=nothing),
        group=of_host,
        between=np.ascontiguousarray(hosts.between[np.ix_(used, used)]),
        host_of_rank=start.astype(np.int32),
        first=np.searchsorted(start[member], np.arange(problem.hosts + 1)).astype(np.int64),
        member=member,
        place=place,
        locked=problem.pinned.copy(),
        cost=np.zeros((ranks, len(used))),
        transposed=np.zeros((len(used), ranks)),
        stay=np.zeros(ranks),
        gain=np.zeros(ranks),
        other=np.full(ranks, -1, np.int32),
        stale=np.zeros(ranks, np.bool_),
        touched=np.zeros(ranks, np.bool_),
        trial=np.zeros(ranks),
    )


NONE = "none"
EXCHANGES = (EXACT, PRINTED, NONE)


def place_ranks(
    problem: Problem, generator: np.random.Generator, *, gain: str = EXACT, rounds: int = 0
) -> Ints:
    """Place ranks by Algorithm 1.

    Args:
        gain: Gain of an exchange: ``exact`` or ``printed``; ``none``: the first mapping alone, for use with
            the refiner ``ohtma-exchange`` under a limit.
        rounds: Number of exchanges; 0: half the ranks, as in the paper (section 5.2).
    """
    if gain not in EXCHANGES:
        raise UnknownName("ohtma.gain", gain, EXCHANGES)
    table = partners(problem.ranks, problem.source, problem.target, problem.bytes)
    distances = problem.distances
    start = first_mapping(table, problem.allocation.slots, distances.group, distances.between)
    if gain == NONE or len(problem.bytes) == 0 or problem.hosts == 1:
        return start
    return exchange(problem, start, gain=gain, rounds=rounds).host_of_rank
