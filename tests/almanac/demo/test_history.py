"""The generated past of the demonstration's cluster differs from the real present by two cables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from almanac.demo import history
from almanac.demo.history import LEAF, LEAF_PORT, MOVED_AT, NIGHTS, PLANNED_PORT, PORT, SPINE, SPINE_PORT
from mapping.checks.finding import Subject
from mapping.checks.forwarding_tables import find_unreachable
from mapping.checks.wiring.differences import compare
from registry.fabrics import changes
from registry.model import Fabric, Job
from tests.support.infiniband_data import infiniband

PRESENT = infiniband("ndr-dgx-minhop")
BEFORE_MOVE = history.before_move(PRESENT)
FIRST = history.before_loss(BEFORE_MOVE)
DECLARED = datetime(2026, 1, 1, tzinfo=UTC)


def ports_in_use(fabric: Fabric, switch: str) -> set[int]:
    links = fabric.links
    return set(links.source_port[links.source == fabric.names.index(switch)].tolist())


def entries(fabric: Fabric, switch: str, port: int) -> int:
    """Return how many destinations a switch reaches by a port."""
    assert fabric.tables is not None
    guids = fabric.tables.switch_guid.tolist()
    table = fabric.tables.ports[guids.index(int(fabric.guid[fabric.names.index(switch)]))]
    return int((table == port).sum())


def test_the_moved_cable_was_in_another_port_of_its_switch() -> None:
    found = changes.compare(BEFORE_MOVE, PRESENT)
    (gone,), (come,) = found.cables_vanished, found.cables_appeared
    assert {(gone.source, gone.source_port), (gone.target, gone.target_port)} >= {(MOVED_AT, PLANNED_PORT)}
    assert {(come.source, come.source_port), (come.target, come.target_port)} >= {(MOVED_AT, PORT)}
    assert {gone.source, gone.target} == {come.source, come.target}
    assert PLANNED_PORT not in ports_in_use(PRESENT, MOVED_AT)
    assert entries(BEFORE_MOVE, MOVED_AT, PLANNED_PORT) == entries(PRESENT, MOVED_AT, PORT) > 0
    assert entries(BEFORE_MOVE, MOVED_AT, PORT) == entries(PRESENT, MOVED_AT, PLANNED_PORT) == 0


def test_the_lost_cable_took_half_of_the_routes_of_its_neighbour() -> None:
    found = changes.compare(FIRST, BEFORE_MOVE)
    (lost,) = found.cables_vanished
    ends = {(lost.source, lost.source_port), (lost.target, lost.target_port)}
    assert ends == {(SPINE, SPINE_PORT + 1), (LEAF, LEAF_PORT + 1)}
    assert not found.cables_appeared
    assert FIRST.cable_count == PRESENT.cable_count + 1
    for switch, port in ((SPINE, SPINE_PORT), (LEAF, LEAF_PORT)):
        whole = entries(PRESENT, switch, port)
        assert entries(FIRST, switch, port + 1) == whole // 2 > 0
        assert entries(FIRST, switch, port) == whole - whole // 2


def test_all_destinations_are_reached_in_the_past_too() -> None:
    for fabric in (FIRST, BEFORE_MOVE):
        assert not list(find_unreachable(Subject(fabric=fabric)))


def test_the_plan_is_the_first_wiring() -> None:
    plan = history.wiring_plan(FIRST, DECLARED)
    assert (len(plan), plan.declared_at) == (FIRST.cable_count, DECLARED)
    found = compare(plan, FIRST)
    assert (found.matching, found.vague, found.ambiguous) == (len(plan), (), {})
    assert found.empty
    now = compare(plan, PRESENT)
    (missing,), (moved,) = now.missing, now.moved
    assert {missing.near.port, missing.far.port} == {SPINE_PORT + 1, LEAF_PORT + 1}
    assert [wire.near.port for wire in (*moved.planned, *moved.found)] == [PLANNED_PORT, PORT]


def test_nightly_jobs_ran_on_the_same_hosts_at_the_same_time_of_day() -> None:
    last = Job(
        id="4711", started_at=DECLARED, ended_at=DECLARED + timedelta(minutes=9), hosts=("a",), slots=(4,)
    )
    jobs = history.nightly_jobs(last)
    assert len(jobs) == len(NIGHTS) >= 5  # fewer have no control limit
    assert [int(job.id) for job in jobs] == sorted(4711 - night for night in NIGHTS)
    for job in jobs:
        age = timedelta(days=4711 - int(job.id))
        assert timedelta(days=1) < age <= history.MONTH
        back = history.moved_job(job, age)
        assert replace(back, id="4711") == last


def test_changed_fabrics_leave_the_present_one_alone() -> None:
    assert PRESENT.tables is not None
    assert not np.array_equal(FIRST.tables.ports, PRESENT.tables.ports)  # type: ignore[union-attr]
    assert PORT in ports_in_use(PRESENT, MOVED_AT)
