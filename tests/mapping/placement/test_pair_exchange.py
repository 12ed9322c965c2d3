"""Searches on hop-bytes: annealed pair exchange, domains of hosts for threads, and OHTMA's exchange."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.direct import hypercube
from ingest.generate.nas import bt
from ingest.generate.trees import tianhe3
from mapping.deadline import Deadline
from mapping.distances.distances import distances
from mapping.kernels.random_numbers import State, state_from
from mapping.placement.catalog import Chain
from mapping.placement.kernels import hop_bytes_search
from mapping.placement.kernels.hop_bytes_search import SearchArrays
from mapping.placement.kernels.pair_exchange import Domain, RankState, anneal, compute_costs
from mapping.placement.methods import cores as domains
from mapping.placement.methods import ohtma, pair_exchange
from mapping.placement.methods import ohtma as ohtma_exchange
from mapping.placement.methods.cores import Team, cut, near_pairs
from mapping.placement.methods.ohtma import exchange, refine
from mapping.placement.problem import Problem
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Ints, Longs, Profile
from tests.support import search_problems
from tests.support.kernels import from_python
from tests.support.search_problems import Placed, placed_problems, ring, ring_problem
from tests.support.small_fabrics import allocations, plain_fabrics, profiles
from tests.support.sure import sure


def annealer(problem: Problem, start: Ints) -> Annealer:
    guest, assignment = problem.guest(directed=len(problem.hops.code) == 2), problem.assign_slots(start)
    ranks = problem.ranks
    rank_state = RankState(assignment.host_of_rank.copy(), np.zeros(ranks, np.int32), np.zeros(ranks))
    arrays = SearchArrays(guest, problem.hops, problem.near, assignment)
    compute_costs(arrays, rank_state)
    return Annealer(arrays, rank_state)


class Annealer(NamedTuple):
    """All that a call of the kernel on one domain needs."""

    arrays: SearchArrays
    rank_state: RankState

    def run(self, proposals: int, temperature: float, state: State) -> tuple[int, int]:
        guest, hops, _, assignment = self.arrays
        tables = guest.table if len(hops.code) == 2 else None
        movable = guest.active[~assignment.fixed[guest.active]]
        domain = Domain(np.zeros(len(hops.group), np.int8), 0, movable)
        inside, kept = anneal(proposals, temperature, self.arrays, tables, self.rank_state, domain, state)
        return int(inside), int(kept)


@given(case=placed_problems(), temperature=st.sampled_from([0.0, 1.0, 50.0]), seed=st.integers(0, 99))
def test_after_exchanges_all_is_as_computed_afresh(case: Placed, temperature: float, seed: int) -> None:
    problem, start = case
    if len(problem.bytes) == 0:
        return
    search = annealer(problem, start)
    inside, _ = search.run(200, temperature, state_from(np.random.default_rng(seed)))
    assert inside == 200
    rank_state, assignment = search.rank_state, search.arrays.assignment
    kept = rank_state.cost.copy()
    total = compute_costs(search.arrays, rank_state)
    np.testing.assert_allclose(kept, rank_state.cost, atol=1e-6)
    after = search_problems.brute_hop_bytes(problem, rank_state.host)
    assert total == pytest.approx(after, abs=1e-6)
    assert after == pytest.approx(problem.hop_bytes(rank_state.host), abs=1e-9)
    assert (rank_state.host == problem.slot_host[assignment.slot_of_rank]).all()
    assert (assignment.rank_of_slot[assignment.slot_of_rank] == np.arange(problem.ranks)).all()
    assert (assignment.rank_of_slot >= 0).sum() == problem.ranks
    assert temperature > 0 or after <= search_problems.brute_hop_bytes(problem, start) + 1e-9


def test_how_proposals_are_cut_into_calls_does_not_matter() -> None:
    problem = ring_problem(12, 9)
    ends = []
    for cuts in ([300], [1, 299], [100, 100, 100]):
        search, state = annealer(problem, problem.slot_host[:9]), state_from(np.random.default_rng(1))
        for count in cuts:
            search.run(count, 0.7, state)
        ends.append(search.rank_state.host.tolist())
    assert ends[0] == ends[1] == ends[2]


def test_domains_are_runs_of_equally_many_slots_around_their_centre() -> None:
    distance = np.array([2.0, 1.0, 0.0, 1.0, 2.0, 3.0])
    assert cut(distance, np.arange(7), 2, 2).tolist() == [1, 0, 0, 0, 1, 1]
    slots = np.r_[0, np.cumsum([1, 1, 4, 1, 1, 1])]  # half of nine: the centre's four and the next
    assert cut(distance, slots, 2, 2).tolist() == [1, 1, 0, 0, 1, 1]
    assert (cut(distance, np.arange(7), 1, 0) == 0).all()


def test_near_groups_are_those_at_the_two_nearest_distances() -> None:
    problem = ring_problem(8, 8)
    distances, near = problem.routes.distances, problem.near
    for host in range(8):
        group = problem.hops.group[host]
        first = {int(g) for g in near.group[near.start[group] : near.middle[group]]}
        second = {int(g) for g in near.group[near.middle[group] : near.end[group]]}
        assert first == {int(problem.hops.group[j]) for j in np.flatnonzero(distances[host] == 1)}
        assert second == {int(problem.hops.group[j]) for j in np.flatnonzero(distances[host] == 2)}


def last(problem: Problem, start: Ints, steps: int) -> float:
    *_, found = pair_exchange.refine(problem, start, Deadline(steps=steps), np.random.default_rng(0))
    assert found.value == problem.hop_bytes(found.host_of_rank)
    return found.value


def test_a_ring_is_laid_around_a_ring_of_hosts_into_free_slots_and_hosts_with_room() -> None:
    problem = ring_problem(10, 10)
    assert last(problem, problem.slot_host.copy(), 50_000) == 10.0
    problem = ring_problem(12, 2)
    far = np.array([0, int(np.argmax(problem.routes.distances[0]))], np.int32)
    assert last(problem, far, 1000) == 2.0
    assert last(ring_problem(6, 4, slots=4), np.arange(4, dtype=np.int32), 20_000) == 0.0


def test_the_torus_instance_falls_a_quarter_below_in_order() -> None:
    problem = search_problems.torus8_problem()
    start = problem.slot_host.copy()
    assert problem.hop_bytes(start) == 1_759_434  # tests/data/bench/README.md
    assert last(problem, start, 500_000) < 0.75 * 1_759_434


def test_more_than_256_distances_are_rounded_a_little() -> None:
    hosts = 600
    hops = ring_problem(hosts, 4)
    group = hops.hops.group
    found = hops.hops.value[hops.hops.code[0][group[:, None], group]]
    np.fill_diagonal(found, 0.0)
    np.testing.assert_allclose(found, hops.routes.distances, atol=hosts / 2 / 254)


gain_of_exchange = from_python(hop_bytes_search.exchange_gain)
swap_into = from_python(hop_bytes_search.swap_into)


@given(case=placed_problems(), data=st.data())
def test_a_gain_is_the_difference_of_exact_sums(case: Placed, data: st.DataObject) -> None:
    problem, start = case
    if len(problem.bytes) == 0:  # no search begins, and `Guest.size` is of another type
        return
    assignment = problem.assign_slots(start)
    guest = problem.guest(directed=len(problem.hops.code) == 2)
    rank = data.draw(st.integers(0, problem.ranks - 1))
    slot = data.draw(st.integers(0, len(problem.slot_host) - 1))
    here, there = int(start[rank]), int(problem.slot_host[slot])
    other = int(assignment.rank_of_slot[slot])
    gain = gain_of_exchange(guest, problem.hops, assignment, rank, other, here, there)
    swap_into(assignment, rank, slot)
    change = search_problems.brute_hop_bytes(
        problem, assignment.host_of_rank
    ) - search_problems.brute_hop_bytes(problem, start)
    if here != there:
        assert gain == pytest.approx(change, abs=1e-9)


@given(slots=st.lists(st.integers(1, 4), min_size=1, max_size=12), workers=st.integers(1, 5), data=st.data())
def test_every_host_is_in_one_domain_and_domains_by_distance_differ_by_less_than_a_host(
    slots: list[int], workers: int, data: st.DataObject
) -> None:
    hosts = len(slots)
    distance = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=hosts, max_size=hosts)), float)
    domain = cut(distance, np.r_[0, np.cumsum(slots)], workers, centre=data.draw(st.integers(0, hosts - 1)))
    assert len(domain) == hosts
    assert ((domain >= 0) & (domain < workers)).all()
    taken = np.bincount(domain, weights=slots, minlength=workers)
    assert taken.sum() == sum(slots)
    assert (np.abs(taken - sum(slots) / workers) < max(slots)).all()
    centre_out = [distance[domain == worker] for worker in range(workers) if (domain == worker).any()]
    assert all(inner.max() <= outer.min() for inner, outer in pairwise(centre_out))


@given(problem=search_problems.problems(), seed=st.integers(0, 9))
def test_near_pairs_are_at_the_least_distance_of_their_first_host(problem: Problem, seed: int) -> None:
    random = np.random.default_rng(seed).integers(1 << 62, size=(2, 20))
    one, other = near_pairs(problem.near, random)
    distances = problem.distances.matrix()
    alone = problem.hosts == 1
    assert len(one) == len(other)
    assert not (alone and len(one))
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        others = np.delete(distances[a], a)
        assert a == b or distances[a, b] == others.min()


def test_two_domains_of_a_hypercube_are_cubes() -> None:
    fabric = hypercube(6)
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    profile = Profile.from_edges([0], [1], [1.0], ranks=64)
    problem = search_problems.problem_on(fabric, profile, allocation)
    cuts = pair_exchange._Domains(problem, np.random.default_rng(0), 2)
    neighbours = [np.flatnonzero(row == row[row > 0].min()) for row in problem.distances.matrix()]
    for _ in range(10):
        domain = cuts.next()
        assert [int((domain[near] != domain[host]).sum()) for host, near in enumerate(neighbours)] == [1] * 64


@pytest.mark.parametrize("workers", [2, 3])
def test_threads_that_really_run_do_not_change_a_byte(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = search_problems.torus8_problem()
    ends = []
    for cores in (1, 2, 8):
        monkeypatch.setattr(domains, "cores", lambda cores=cores: cores)
        deadline = Deadline(steps=100_000, workers=workers)
        start, generator = problem.slot_host.copy(), np.random.default_rng(5)
        *_, found = pair_exchange.refine(problem, start, deadline, generator)
        assert found.value == problem.hop_bytes(found.host_of_rank) < problem.hop_bytes(start)
        assert sorted(found.host_of_rank.tolist()) == list(range(512))
        ends.append(found.host_of_rank.tobytes())
    assert ends[0] == ends[1] == ends[2]


def test_a_team_hands_back_results_in_order_whoever_is_first() -> None:
    with Team(5) as team:
        assert team.run(lambda worker: worker * worker) == [0, 1, 4, 9, 16]


def test_few_proposals_a_rank_improve_and_do_not_spoil() -> None:
    problem = ring_problem(64, 60)
    start = np.random.default_rng(0).permutation(problem.slot_host)[:60]
    *_, found = pair_exchange.refine(problem, start, Deadline(steps=30 * 60), np.random.default_rng(0))
    assert problem.hop_bytes(found.host_of_rank) < 0.8 * problem.hop_bytes(start)


NOBODY = np.random.default_rng(0)


@st.composite
def whole_problems(draw: st.DrawFn) -> Problem:
    """Problems whose bytes and distances are whole numbers, so that sums have no rounding."""
    fabric = draw(plain_fabrics(max_vertices=8))
    profile = draw(profiles(max_ranks=9))
    allocation = draw(allocations(fabric, profile.ranks, max_slots=3))
    problem = search_problems.problem_on(fabric, profile, allocation)
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
    problem = search_problems.problem_on(fabric, profile, allocation)
    start = np.argsort(allocation.hosts)[:4].astype(np.int32)
    assert problem.hop_bytes(start) == 38.0
    raw = exchange(problem, start, gain="printed")
    assert problem.hop_bytes(raw.host_of_rank) > problem.hop_bytes(start)
    rounds = list(refine(problem, start, Deadline(steps=10_000), NOBODY, gain="printed"))
    assert rounds
    assert all(found.host_of_rank.tolist() == start.tolist() for found in rounds)
