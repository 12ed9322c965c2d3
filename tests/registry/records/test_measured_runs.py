"""Measured runs: stored once, with the other jobs of the cluster and the estimates of their placements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from registry.errors import InvalidValue
from registry.maintenance.verify import verify
from registry.records.measured_runs import measured_run_id
from registry.registry import Registry
from tests.support.busy_cluster import fill, job
from tests.support.fat_tree import at
from tests.support.full_cluster import FullCluster, measured_run


def test_a_run_is_read_back(registry: Registry) -> None:
    fill(registry, job("1", 2, hosts=("node03", "node00")), job("2", 4, hosts=("node01",)))
    run = measured_run(job="1", exit_code=-15, step_seconds=None, steps=0)
    identity = registry.measured_runs.save(run)
    (found,) = registry.measured_runs.list("toy", "cg")
    assert registry.measured_runs.read(identity) == found
    assert found.id == identity == measured_run_id(found)
    assert {name: getattr(found, name) for name in run.__slots__} == {
        name: getattr(run, name) for name in run.__slots__
    }
    assert found.other_jobs == ("2",)
    assert (found.rank_order, found.congestion_seconds) == ("", None)
    assert registry.measured_runs.list("toy", "lu") == ()
    assert verify(registry.database).findings == ()


def test_the_load_of_other_jobs_is_stored_if_it_is_known(registry: Registry) -> None:
    fill(registry)
    known = registry.measured_runs.save(measured_run(), 0.25)
    unknown = registry.measured_runs.save(measured_run(wall_seconds=1.0))
    assert registry.measured_runs.read(known).other_load == 0.25
    assert {one.id: one.other_load for one in registry.measured_runs.list()} == {known: 0.25, unknown: None}


def test_other_jobs_are_those_that_ran_meanwhile(registry: Registry) -> None:
    fill(registry, job("1", 2, hosts=("node03",)), job("2", 8, hosts=("node01",)))
    identity = registry.measured_runs.save(measured_run(started_at=at(6), wall_seconds=60))
    assert registry.measured_runs.read(identity).other_jobs == ("1",)
    identity = registry.measured_runs.save(measured_run(started_at=at(6), wall_seconds=121))
    assert registry.measured_runs.read(identity).other_jobs == ("1", "2")


def test_a_placed_run_has_the_estimates_of_its_placement(registry: Registry, full: FullCluster) -> None:
    (found,) = registry.measured_runs.list()
    info = next(one for one in registry.placements.history() if one.id == full.proposed)
    assert info.congestion_seconds is not None
    assert found.placement == full.proposed
    assert found.congestion_seconds == info.congestion_seconds
    assert len(found.rank_order) == 16


@pytest.mark.parametrize("changed", [{"slots": (1,)}, {"wall_seconds": float("nan")}, {"step_seconds": -1.0}])
def test_a_run_has_possible_values(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        replace(measured_run(), **changed)
