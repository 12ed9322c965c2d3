"""The best exchanges of ranks near a placement, one after another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.deadline import Deadline
from mapping.placement.moves.best_exchanges import best_exchanges
from mapping.placement.problem.problem import Problem
from registry.model import Ints
from tests.support.search_problems import pinned, placed_problems


@given(case=pinned(), most=st.integers(0, 4))
def test_best_exchanges_gain_each_time_and_keep_to_their_number(
    case: tuple[Problem, Ints], most: int
) -> None:
    problem, start = case
    value, far = problem.hop_bytes(start), problem.hop_bytes(start)
    for ranks, hosts in best_exchanges(problem, start, most=most, deadline=Deadline()):
        value, before = problem.hop_bytes(hosts), value
        assert value < before
        assert set(np.flatnonzero(hosts != start).tolist()) == ranks
        assert len(ranks) <= most
        assert (hosts == problem.pins)[problem.pinned].all()
        assert (np.bincount(hosts, minlength=problem.hosts) <= problem.allocation.slots).all()
    assert value <= far


@given(case=placed_problems())
def test_the_first_exchange_is_the_best_of_all(case: tuple[Problem, Ints]) -> None:
    problem, start = case
    best, room = 0.0, problem.allocation.slots - np.bincount(start, minlength=problem.hosts)
    for rank in range(problem.ranks):
        for host in np.flatnonzero(room):
            hosts = start.copy()
            hosts[rank] = host
            best = max(best, problem.hop_bytes(start) - problem.hop_bytes(hosts))
        for other in range(rank):
            hosts = start.copy()
            hosts[[rank, other]] = start[[other, rank]]
            best = max(best, (problem.hop_bytes(start) - problem.hop_bytes(hosts)) / 2)
    first = next(best_exchanges(problem, start, most=2, deadline=Deadline()), None)
    if first is None:
        assert best == pytest.approx(0.0)
    else:
        gain = problem.hop_bytes(start) - problem.hop_bytes(first[1])
        assert gain / len(first[0]) == pytest.approx(best)
