"""States of a cluster and their differences, against the same data read piece by piece."""

from __future__ import annotations

import pytest

from registry.pages.changes import Timeline, read_snapshot_diff
from registry.pages.fabric import read_fabric_history
from registry.registry import Registry
from tests.registry.pages.conftest import WHOLE, see
from tests.support.fat_tree import at, tree_tables


def timeline(registry: Registry) -> Timeline:
    line = read_fabric_history(registry.database, "toy").timeline
    assert line is not None
    return line


def test_states_are_in_order_of_time_whenever_they_were_ingested(several: Registry) -> None:
    line = timeline(several)
    observations = several.fabrics.observations("toy")
    assert [state.at for state in line.states] == [at(10), at(20), at(30), at(50)]
    assert line.last_at == at(50)
    for moment in (10, 15, 20, 30, 45, 50, 99):
        state, expected = line.as_of(at(moment)), several.fabrics.read("toy", at(moment))
        assert state is not None
        assert (state.content, state.routing) == (expected.id, expected.routing)
    assert line.as_of(at(9)) is None
    assert {state.content for state in line.states} == {one.snapshot for one in observations}


@pytest.mark.parametrize(("start", "end"), [(10, 20), (20, 30), (30, 50), (50, 10)])
def test_the_difference_of_two_states_is_that_of_their_fabrics(
    several: Registry, start: int, end: int
) -> None:
    line = timeline(several)
    before, after = line.as_of(at(start)), line.as_of(at(end))
    assert before is not None
    assert after is not None
    found = read_snapshot_diff(several.database, "toy", before, after)
    expected = several.fabrics.changes("toy", at(start), at(end))
    for name in ("cables_appeared", "cables_vanished", "capacity_changed", "switches_rerouted", "renamed"):
        assert getattr(found.changes, name) == getattr(expected, name)
    assert found.before.fabric.cable_count == several.fabrics.read("toy", at(start)).fabric.cable_count
    assert found.after.id == after.content


def test_rerouted_switches_are_listed(several: Registry) -> None:
    see(several, "toy", 60, fabric=WHOLE, tables=tree_tables(turn=1))
    line = timeline(several)
    found = read_snapshot_diff(several.database, "toy", line.states[-2], line.states[-1])
    assert found.changes.switches_rerouted == several.fabrics.changes("toy", at(50), at(60)).switches_rerouted
    assert found.changes.switches_rerouted
