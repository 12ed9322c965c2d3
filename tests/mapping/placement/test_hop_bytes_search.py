"""The gain of an exchange of two ranks, and the exchange itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.placement.kernels.hop_bytes_search import exchange_gain, swap_into
from mapping.placement.problem.problem import Problem
from registry.model import Ints
from tests.support.search_problems import brute_hop_bytes, placed_problems


@given(case=placed_problems(), data=st.data())
def test_a_gain_is_the_difference_of_exact_sums(case: tuple[Problem, Ints], data: st.DataObject) -> None:
    problem, start = case
    assignment = problem.assign_slots(start)
    guest = problem.guest(directed=len(problem.hops.code) == 2)
    rank = data.draw(st.integers(0, problem.ranks - 1))
    slot = data.draw(st.integers(0, len(problem.slot_host) - 1))
    here, there = int(start[rank]), int(problem.slot_host[slot])
    gain = exchange_gain(
        guest, problem.hops, assignment, rank, int(assignment.rank_of_slot[slot]), here, there
    )
    swap_into(assignment, rank, slot)
    change = brute_hop_bytes(problem, assignment.host_of_rank) - brute_hop_bytes(problem, start)
    if here != there:
        assert gain == pytest.approx(change, abs=1e-9)
