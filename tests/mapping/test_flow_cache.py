"""Flows kept link by link: the loads that follow an exchange are the exact ones, however little is kept."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mapping.kernels.congestion_search import Flows, Loads, note_exchange, pend_flows
from mapping.kernels.flow_cache import FlowCache, new_cache
from mapping.kernels.hop_bytes_search import sit
from mapping.model.problem import Problem
from registry.model import Floats, Ints
from tests.search_problems import problem_on, seated, torus8

ROOMY = 1 << 20


def empty_loads(problem: Problem) -> Loads:
    m = len(problem.routes.fabric.links)
    touched, is_touched = np.zeros(m, np.int32), np.zeros(m, np.bool_)
    return Loads(np.zeros(m), np.ones(m), np.zeros(m), np.zeros(m), touched, is_touched)


def exact(problem: Problem, host_of_rank: Ints) -> Floats:
    return problem.routes.link_bytes(*problem.host_traffic(host_of_rank))


def after_exchanges(problem: Problem, start: Ints, cache: FlowCache, count: int) -> tuple[Ints, Floats]:
    """Where ranks sit after random exchanges, and the loads that were carried along."""
    seats, guest, loads = problem.seats(start), problem.guest(directed=True), empty_loads(problem)
    room = 4 * len(problem.source) + 4
    pending = Flows(np.zeros(room, np.int32), np.zeros(room, np.int32), np.zeros(room))
    own, random = exact(problem, start), np.random.default_rng(0)
    for _ in range(count):
        rank, slot = int(random.integers(problem.ranks)), int(random.integers(len(problem.slot_host)))
        here, there = int(seats.host_of_rank[rank]), int(problem.slot_host[slot])
        if here == there:
            continue
        other = int(seats.rank_of_slot[slot])
        number = note_exchange(guest, seats, rank, other, here, there, pending)
        touched = loads.touched[: pend_flows(cache, pending, number, loads)]
        own[touched] += loads.change[touched]
        loads.change[touched], loads.is_touched[touched] = 0.0, False
        assert not loads.change.any()
        sit(seats, rank, slot)
    return seats.host_of_rank, own


@given(case=seated(), limit=st.sampled_from([0, ROOMY]))
def test_loads_follow_exchanges(case: tuple[Problem, Ints], limit: int) -> None:
    problem, start = case
    hosts, loads = after_exchanges(problem, start, new_cache(problem.routes.flows, limit), 30)
    np.testing.assert_allclose(loads, exact(problem, hosts), rtol=1e-6, atol=1e-5)


def test_the_cache_stays_within_its_memory() -> None:
    problem = problem_on(*torus8(), "shortest-paths")
    cache = new_cache(problem.routes.flows, 1 << 16)
    after_exchanges(problem, problem.slot_host.copy(), cache, 100)
    assert cache.runs.used[2] > 0  # it had to forget
    assert cache.runs.link.nbytes + cache.runs.share.nbytes <= 1 << 16
