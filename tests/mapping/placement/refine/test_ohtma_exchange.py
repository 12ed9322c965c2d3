"""OHTMA against a transcription of its pseudocode, and what its exchange promises."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.nas import bt
from ingest.generate.tianhe3 import tianhe3
from mapping.deadline import Deadline
from mapping.distances.distances import distances
from mapping.placement.catalog import Chain
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import ohtma_exchange
from mapping.placement.refine.ohtma_exchange import exchange, refine
from mapping.placement.strategies import ohtma
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Ints, Longs, Profile
from tests.support.search_problems import Placed, problem_on, ring
from tests.support.small_fabrics import allocations, plain_fabrics, profiles
from tests.support.sure import sure

NOBODY = np.random.default_rng(0)


@st.composite
def whole_problems(draw: st.DrawFn) -> Problem:
    """Problems whose bytes and distances are whole numbers, so that sums have no rounding."""
    fabric = draw(plain_fabrics(max_vertices=8))
    profile = draw(profiles(max_ranks=9))
    allocation = draw(allocations(fabric, profile.ranks, max_slots=3))
    problem = problem_on(fabric, profile, allocation)
    if not problem.routes.connected:
        # One-way arcs may join nothing: any whole distances then, one-way too, do as well.
        h = len(allocation)
        drawn = draw(st.lists(st.integers(1, 9), min_size=h * h, max_size=h * h))
        table = np.reshape(drawn, (h, h)) * (1.0 - np.eye(h))
    else:
        table = np.rint(problem.distances.matrix())
    own = distances("table", problem.routes, table=table, one_way=True)
    return Problem(profile=profile, allocation=allocation, routes=problem.routes, own_distances=own)


def matrices(problem: Problem) -> tuple[Longs, Longs, list[int]]:
    """A by rank, B by slot, and the host of each slot."""
    a = np.zeros((problem.ranks, problem.ranks), np.int64)
    np.add.at(a, (problem.source, problem.target), problem.bytes.astype(np.int64))
    slots = problem.slot_host
    return a, problem.distances.of(*np.ix_(slots, slots)).astype(np.int64), slots.tolist()


def first_mapping(a: Longs, b: Longs) -> list[int]:
    """Lines 1 to 19: slot of each rank."""
    sent, away = a.tolist(), b.tolist()
    p_unselected, n_unselected = set(range(len(a))), set(range(len(b)))
    p_selected, n_selected, f = set[int](), set[int](), [-1] * len(a)
    while p_unselected:
        weight = 1 + len(p_selected)
        comm = {
            p: sum(sent[p][i] for i in p_selected) + Fraction(sum(sent[p][j] for j in p_unselected), weight)
            for p in p_unselected
        }
        hops = {
            n: sum(away[n][i] for i in n_selected) + Fraction(sum(away[n][j] for j in n_unselected), weight)
            for n in n_unselected
        }
        p_max = min(p_unselected, key=lambda p: (-comm[p], p))
        n_min = min(n_unselected, key=lambda n: (hops[n], n))
        f[p_max] = n_min
        p_selected.add(p_max)
        n_selected.add(n_min)
        p_unselected.remove(p_max)
        n_unselected.remove(n_min)
    return f


def exact_gain(a: Longs, b: Longs, f: list[int], i: int, j: int) -> int:
    """What the exchange of two ranks saves, by Equation 1 before and after."""
    swapped = f.copy()
    swapped[i], swapped[j] = f[j], f[i]
    before, after = ((a * b[np.ix_(at, at)]).sum() for at in (f, swapped))
    return int(before - after)


def printed_gain(a: Longs, b: Longs, f: list[int], i: int, j: int) -> int:
    """Line 26."""
    return int(a[i] @ b[f[i], f] + a[j] @ b[f[j], f] - a[i] @ b[f[j], f] - a[j] @ b[f[i], f])


def exchanged(
    problem: Problem, f: list[int], gain: str, *, locked: frozenset[int] = frozenset()
) -> tuple[list[int], list[tuple[int, int]], list[int]]:
    """Lines 20 to 36, mended: slots, pairs and gains."""
    a, b, hosts = matrices(problem)
    of = exact_gain if gain == "exact" else printed_gain
    start, f, free = f.copy(), f.copy(), set(range(len(a))) - locked
    pairs, result = list[tuple[int, int]](), list[int]()
    for _ in range(len(a) // 2):
        there_are = [(i, j) for i, j in combinations(sorted(free), 2) if hosts[f[i]] != hosts[f[j]]]
        if not there_are:
            break
        saved = {(i, j): of(a, b, f, i, j) for i, j in there_are}
        m, n = min(there_are, key=lambda pair: (-saved[pair], pair))
        pairs.append((m, n))
        result.append(saved[m, n])
        free -= {m, n}
        f[m], f[n] = f[n], f[m]
    sums = [sum(result[:t]) for t in range(len(result) + 1)]
    t = sums.index(max(sums))
    f = start
    for m, n in pairs[:t]:
        f[m], f[n] = f[n], f[m]
    return f, pairs, result


@given(problem=whole_problems())
def test_the_whole_is_algorithm_1_of_the_paper_mended(problem: Problem) -> None:
    a, b, hosts = matrices(problem)
    first = first_mapping(a, b)
    for gain in ("none", *ohtma_exchange.GAINS):
        slots = first if gain == "none" else exchanged(problem, first, gain)[0]
        assert ohtma.place_ranks(problem, NOBODY, gain=gain).tolist() == [hosts[s] for s in slots]


@pytest.mark.parametrize("gain", ohtma_exchange.GAINS)
@given(problem=whole_problems(), data=st.data())
def test_exchanges_are_the_same_and_leave_pins(gain: str, problem: Problem, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(problem.slot_host))))
    slots = order[: problem.ranks]
    start = problem.slot_host[np.asarray(slots)]
    pinned = data.draw(st.frozensets(st.integers(0, problem.ranks - 1)))
    pins = np.full(problem.ranks, -1, np.int32)
    pins[list(pinned)] = start[list(pinned)]
    problem = problem.with_pins(pins)
    found = exchange(problem, start, gain=gain)
    wanted, pairs, gains = exchanged(problem, list(slots), gain, locked=pinned)
    assert [tuple(pair) for pair in found.pairs.tolist()] == pairs
    assert found.gains.tolist() == gains
    assert found.host_of_rank.tolist() == problem.slot_host[wanted].tolist()
    assert (found.host_of_rank[list(pinned)] == start[list(pinned)]).all()


def on_tianhe3(profile: Profile) -> Problem:
    """One rank a node on the first nodes of the machine, hops counted as switches (Table 1)."""
    fabric = tianhe3(2, 2)
    allocation = Allocation.of(fabric, np.arange(profile.ranks).tolist())
    routes = build_routes("shortest-paths", fabric, allocation.hosts)
    own = distances("switches", routes)
    return Problem(profile=profile, allocation=allocation, routes=routes, own_distances=own)


@pytest.fixture(scope="module")
def bt256() -> Placed:
    problem = on_tianhe3(bt(256))
    return problem, ohtma.place_ranks(problem, NOBODY, gain="none")


def test_printed_gains_are_not_what_hop_bytes_fall_by(bt256: Placed) -> None:
    problem, start = bt256
    exact, printed = exchange(problem, start), exchange(problem, start, gain="printed")
    saved = problem.hop_bytes(start) - problem.hop_bytes(printed.host_of_rank)
    assert saved < 0.9 * printed.gains[: printed.kept].sum()
    assert problem.hop_bytes(exact.host_of_rank) < problem.hop_bytes(printed.host_of_rank)


def test_strategy_and_refiner_in_a_chain_are_the_whole_strategy() -> None:
    problem = on_tianhe3(bt(64))
    chain = Chain.parse("ohtma:gain=none+ohtma-exchange")
    start: Ints = sure(chain.strategy).strategy()(problem, NOBODY)
    *_, last = chain.refiners[0].refiner()(problem, start, Deadline(steps=10_000), NOBODY)
    assert last.host_of_rank.tolist() == ohtma.place_ranks(problem, NOBODY).tolist()


def test_a_budget_too_small_for_all_rounds_still_backtracks_to_the_best_prefix(bt256: Placed) -> None:
    problem, start = bt256
    whole = exchange(problem, start)
    *_, last = refine(problem, start, Deadline(steps=5), NOBODY)
    at = start.copy()
    for rank, other in whole.pairs[:5].tolist():
        at[rank], at[other] = at[other], at[rank]
    assert whole.kept > 5
    assert sorted(whole.pairs.reshape(-1).tolist()) == list(range(256))
    assert last.host_of_rank.tolist() == at.tolist()


def test_more_passes_go_on_from_the_best_prefix(bt256: Placed) -> None:
    problem, start = bt256
    twice = exchange(problem, exchange(problem, start).host_of_rank).host_of_rank
    *_, last = refine(problem, start, Deadline(steps=10_000), NOBODY, passes=2)
    assert last.value == problem.hop_bytes(twice)


def test_a_refiner_with_the_printed_gain_is_never_worse_than_its_start() -> None:
    fabric, _, allocation = ring(9, 4)
    # Twos that talk much: the printed gain takes their own edge for saved when they change places.
    profile = Profile.from_edges([0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2], [9.0, 9.0, 1.0, 1.0, 9.0, 9.0])
    problem = problem_on(fabric, profile, allocation)
    start = np.argsort(allocation.hosts)[:4].astype(np.int32)
    assert problem.hop_bytes(start) == 38.0
    raw = exchange(problem, start, gain="printed")
    assert problem.hop_bytes(raw.host_of_rank) > problem.hop_bytes(start)
    rounds = list(refine(problem, start, Deadline(steps=10_000), NOBODY, gain="printed"))
    assert rounds
    assert all(found.host_of_rank.tolist() == start.tolist() for found in rounds)
