"""Exchanges that lead from one placement to another, and the nearest of equal placements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.deadline import Deadline
from mapping.placement.moves.path_relinking import nearest, relink
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from registry.model import Allocation, Fabric, Ints, Profile
from tests.support.search_problems import pinned, placed_problems, problem_on


@given(case=placed_problems(), seed=st.integers(0, 5), by_load=st.booleans())
def test_exchanges_lead_to_the_target_and_each_prefix_fits(
    case: tuple[Problem, Ints], seed: int, by_load: bool
) -> None:
    problem, start = case
    slots = np.random.default_rng(seed).permutation(len(problem.slot_host))[: problem.ranks]
    target = problem.slot_host[slots]
    reached = start
    path = relink(problem, start, target, by_load=by_load, most=problem.ranks, deadline=Deadline())
    for ranks, hosts in path:
        assert (np.bincount(hosts, minlength=problem.hosts) <= problem.allocation.slots).all()
        assert set(np.flatnonzero(hosts != start).tolist()) <= ranks
        reached = hosts
    assert reached.tolist() == target.tolist()


@given(case=pinned(), seed=st.integers(0, 5))
def test_the_nearest_of_equal_placements_costs_the_same_and_moves_no_more(
    case: tuple[Problem, Ints], seed: int
) -> None:
    problem, start = case
    slots = np.random.default_rng(seed).permutation(len(problem.slot_host))[: problem.ranks]
    target = problem.apply_pins(problem.slot_host[slots])
    found = nearest(problem, start, target)
    assert (found != start).sum() <= (target != start).sum()
    assert (found == problem.pins)[problem.pinned].all()
    assert score(problem, found).hop_bytes == pytest.approx(score(problem, target).hop_bytes)


def test_hosts_on_one_switch_are_not_exchanged_for_nothing() -> None:
    hosts, switch = list(range(6)), 6
    fabric = Fabric.from_arcs(
        [*(f"h{i}" for i in hosts), "s"],
        hosts + [switch] * 6,
        [switch] * 6 + hosts,
        1.0,
        slots=[1] * 6 + [0],
        forwards=[False] * 6 + [True],
    )
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [1.0, 1.0, 1.0], ranks=6)
    problem = problem_on(fabric, profile, Allocation.of(fabric, hosts), "shortest-paths")
    start = np.arange(6, dtype=np.int32)
    assert nearest(problem, start, start[::-1].copy()).tolist() == start.tolist()
