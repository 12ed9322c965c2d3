"""Gains of pair exchanges, by hand and against exact sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.kernels.random_numbers import state_from
from mapping.placement.kernels import hop_bytes_search
from mapping.placement.kernels.pair_gain import Course, cost_at, exchange_at_random, exchange_gain, partners
from tests.support.search_problems import Placed, brute_hop_bytes, placed_problems

GROUP = np.arange(3, dtype=np.int32)
LINE = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
"""Three hosts in a line."""
TABLE = partners(3, np.array([0, 2], np.int32), np.array([2, 1], np.int32), np.array([10.0, 3.0]))
"""Rank 0 sends 10 bytes to rank 2, which sends 3 to rank 1."""


def test_costs_of_a_rank_and_gains_of_exchanges_count_both_directions() -> None:
    assert TABLE.indptr.tolist() == [0, 1, 2, 4]
    assert TABLE.partner.tolist() == [2, 2, 0, 1]
    assert TABLE.sent.tolist() == [10, 0, 0, 3]
    assert TABLE.received.tolist() == [0, 3, 10, 0]
    hosts = np.array([0, 1, 2], np.int32)
    assert cost_at(TABLE, GROUP, LINE, hosts, 2, 2, -1, -1) == 10 * 2 + 3 * 1
    assert cost_at(TABLE, GROUP, LINE, hosts, 2, 1, 1, 2) == 10 * 1 + 3 * 1  # with rank 1 on host 2
    assert exchange_gain(TABLE, GROUP, LINE, hosts, 2, 1, 1) == 23 - 13
    assert exchange_gain(TABLE, GROUP, LINE, hosts, 0, -1, 2) == 20 - 0  # to the host of rank 2


def test_random_exchanges_end_on_a_shortest_line() -> None:
    slots = np.arange(3, dtype=np.int32)
    assignment = hop_bytes_search.SlotAssignment(
        slots, np.arange(4), slots.copy(), slots.copy(), slots.copy(), np.zeros(3, np.bool_)
    )
    saved = np.zeros(200)
    done, failures = exchange_at_random(
        TABLE, GROUP, LINE, assignment, Course(0, 40, 1e-9), state_from(np.random.default_rng(0)), saved
    )
    assert failures == 40
    assert saved[:done].sum() == 10
    assert abs(int(assignment.host_of_rank[0]) - int(assignment.host_of_rank[2])) == 1
    assert (assignment.rank_of_slot[assignment.slot_of_rank] == slots).all()


@given(case=placed_problems(), data=st.data())
def test_a_gain_is_the_difference_of_exact_sums(case: Placed, data: st.DataObject) -> None:
    problem, start = case
    assignment = problem.assign_slots(start)
    guest = problem.guest(directed=len(problem.hops.code) == 2)
    rank = data.draw(st.integers(0, problem.ranks - 1))
    slot = data.draw(st.integers(0, len(problem.slot_host) - 1))
    here, there = int(start[rank]), int(problem.slot_host[slot])
    other = int(assignment.rank_of_slot[slot])
    gain = hop_bytes_search.exchange_gain(guest, problem.hops, assignment, rank, other, here, there)
    hop_bytes_search.swap_into(assignment, rank, slot)
    change = brute_hop_bytes(problem, assignment.host_of_rank) - brute_hop_bytes(problem, start)
    if here != there:
        assert gain == pytest.approx(change, abs=1e-9)
