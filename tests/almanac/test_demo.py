"""Data of the demonstration: its generated past and present, saved once, and kernels compiled meanwhile."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from almanac import precompile
from almanac.demo import data as generated_data
from almanac.demo import data as history
from almanac.demo import demo as fill
from almanac.demo.data import (
    BUSY,
    ERRORS,
    LEAF,
    MOVED_AT,
    NIGHTS,
    PLANNED_PORT,
    PORT,
    SOURCE,
    SPINE,
    STARTED,
    SWEEP,
    SWEEPS,
)
from almanac.demo.demo import CLUSTER, ON_CIRCUITS, OPTICAL, stored_moment
from almanac.precompile import precompiled_kernels
from mapping.checks.checks import find_link_errors, find_unreachable
from mapping.checks.finding import Subject
from mapping.checks.wiring import compare
from mapping.kernels.compiling import COMPILING
from registry.model import Fabric, Job, growth, total
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store import changes
from registry.store.counters import rates_of
from tests.almanac.conftest import Almanac
from tests.support.infiniband_data import infiniband

PRESENT = infiniband("ndr-dgx-minhop")
BEFORE_MOVE = history.before_move(PRESENT)
FIRST = history.before_loss(BEFORE_MOVE)
DECLARED = datetime(2026, 1, 1, tzinfo=UTC)


def ports_in_use(fabric: Fabric, switch: str) -> set[int]:
    links = fabric.links
    return set(links.source_port[links.source == fabric.names.index(switch)].tolist())


def entries(fabric: Fabric, switch: str, port: int) -> int:
    assert fabric.tables is not None
    guids = fabric.tables.switch_guid.tolist()
    table = fabric.tables.ports[guids.index(int(fabric.guid[fabric.names.index(switch)]))]
    return int((table == port).sum())


def test_the_moved_cable_was_in_another_port_and_the_lost_one_had_half_of_the_routes() -> None:
    found = changes.compare(BEFORE_MOVE, PRESENT)
    (gone,), (come,) = found.cables_vanished, found.cables_appeared
    assert {(gone.source, gone.source_port), (gone.target, gone.target_port)} >= {(MOVED_AT, PLANNED_PORT)}
    assert {(come.source, come.source_port), (come.target, come.target_port)} >= {(MOVED_AT, PORT)}
    assert {gone.source, gone.target} == {come.source, come.target}
    assert PLANNED_PORT not in ports_in_use(PRESENT, MOVED_AT)
    assert entries(BEFORE_MOVE, MOVED_AT, PLANNED_PORT) == entries(PRESENT, MOVED_AT, PORT) > 0
    assert entries(BEFORE_MOVE, MOVED_AT, PORT) == entries(PRESENT, MOVED_AT, PLANNED_PORT) == 0
    found = changes.compare(FIRST, BEFORE_MOVE)
    (lost,) = found.cables_vanished
    ends = {(lost.source, lost.source_port), (lost.target, lost.target_port)}
    assert ends == {(SPINE, history.SPINE_PORT + 1), (LEAF, history.LEAF_PORT + 1)}
    assert not found.cables_appeared
    assert FIRST.cable_count == PRESENT.cable_count + 1
    for switch, port in ((SPINE, history.SPINE_PORT), (LEAF, history.LEAF_PORT)):
        whole = entries(PRESENT, switch, port)
        assert entries(FIRST, switch, port + 1) == whole // 2 > 0
        assert entries(FIRST, switch, port) == whole - whole // 2


def test_all_destinations_are_reached_in_the_past_too_and_the_present_is_left_alone() -> None:
    assert PRESENT.tables is not None
    assert FIRST.tables is not None
    assert not np.array_equal(FIRST.tables.ports, PRESENT.tables.ports)
    assert PORT in ports_in_use(PRESENT, MOVED_AT)
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
    assert {missing.near.port, missing.far.port} == {history.SPINE_PORT + 1, history.LEAF_PORT + 1}
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


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_the_last_running_job_started_before_the_counters() -> None:
    early, late = (datetime(2020, 1, 1, hour, tzinfo=UTC) for hour in (8, 9))
    jobs = (Job(id="1", name="a", started_at=early, ended_at=late), Job(id="2", name="b", started_at=late))
    first, second = generated_data.recent_jobs(jobs, NOON)
    assert second.started_at == NOON - STARTED
    assert (first.started_at, first.ended_at) == (NOON - STARTED - timedelta(hours=1), NOON - STARTED)
    assert (first.submitted_at, second.ended_at) == (None, None)
    assert (first.name, first.source) == ("demo-a", generated_data.SOURCE)


def test_counters_of_the_last_hour_grow_with_the_predicted_traffic() -> None:
    links = PRESENT.links
    load = np.where(PRESENT.network_link, links.capacity, 0.0)
    sweeps = generated_data.counters(PRESENT, load, NOON)
    assert [sweep.at for sweep in sweeps] == [NOON - back * SWEEP for back in range(SWEEPS - 1, -1, -1)]
    assert sweeps[-1].at - sweeps[0].at == timedelta(hours=1)
    rates = rates_of(PRESENT, sweeps)
    assert rates is not None
    assert np.nanmax(rates.share) <= 0.97 + 1e-9
    assert abs(np.median(rates.share[PRESENT.network_link]) - BUSY) < 0.05
    assert np.nanmedian(rates.share[~PRESENT.network_link]) < 0.05


def test_only_the_port_of_the_moved_cable_counts_errors_whatever_the_moment() -> None:
    load = np.ones(len(PRESENT.links))
    grown = total(list(growth(generated_data.counters(PRESENT, load, NOON))))
    symbol, received = (SWEEPS - 1) * ERRORS[0], (SWEEPS - 1) * ERRORS[1]
    (finding,) = find_link_errors(Subject(fabric=PRESENT, counters=grown))
    assert str(finding.severity) == "warning"
    for words in (f"{MOVED_AT}:{PORT} ", f"{symbol} symbol errors", f"{received} receive errors"):
        assert words in finding.text
    load = np.ones(len(PRESENT.links))
    later = NOON + timedelta(days=100)
    both = (generated_data.counters(PRESENT, load, moment) for moment in (NOON, later))
    for one, other in zip(*both, strict=True):
        assert other.at - one.at == later - NOON
        assert np.array_equal(one.values, other.values)


MOMENT = datetime(2026, 3, 1, tzinfo=UTC)


def test_the_optical_cluster_is_saved_once_and_deleted(registry: Registry) -> None:
    for _ in range(2):
        fill._save_optical_cluster(registry, MOMENT)
    switch = registry.optical.read(OPTICAL)
    assert (len(switch.circuits or ()), switch.max_edges, switch.max_degree) == (32, 32, 4)
    assert {stored.job.id for stored in registry.jobs.list(OPTICAL)} == set(ON_CIRCUITS)
    (info,) = registry.fabrics.clusters()
    assert (info.name, info.observations, info.hosts) == (OPTICAL, 1, 16)
    for _ in range(2):
        fill.delete_demonstration(registry)
    assert not registry.fabrics.clusters()
    assert not registry.jobs.list(OPTICAL)


def test_the_moment_is_that_of_the_first_made_scan(registry: Registry) -> None:
    fabric = infiniband("torus-4x4x4-dor")
    assert stored_moment(registry) is None
    scans = ((timedelta(days=400), "ibnetdiscover"), (timedelta(hours=1), SOURCE))
    for age, source in scans:
        registry.save(Intake(cluster=CLUSTER, observed_at=MOMENT - age, fabric=fabric, source=source))
    assert stored_moment(registry) == MOMENT - timedelta(hours=1) + history.MONTH
    registry.save(Intake(cluster=CLUSTER, observed_at=MOMENT - history.MONTH, fabric=fabric, source=SOURCE))
    assert stored_moment(registry) == MOMENT


def test_waiting_ends_when_the_kernels_are_compiled(processes: None) -> None:
    phases: list[str] = []
    with precompiled_kernels(lambda phase, *_: phases.append(phase)) as wait:
        wait()
        wait()
    assert set(phases) <= {COMPILING}


def test_the_end_of_the_block_does_not_wait(monkeypatch: pytest.MonkeyPatch, processes: None) -> None:
    monkeypatch.setattr(precompile, "_last_of_demonstration", endless)
    with pytest.raises(KeyboardInterrupt), precompiled_kernels():
        raise KeyboardInterrupt


def test_the_kernels_of_circuits_and_simulations_are_compiled() -> None:
    precompile._last_of_demonstration()
    from mapping.circuits.kernels.local_update import refine
    from mapping.simulation.kernels.packet_simulation import run_packets

    kernels: tuple[Any, ...] = (refine, run_packets)
    for kernel in kernels:
        assert kernel.signatures


def endless() -> None:
    time.sleep(3600)  # longer than a test may take


def nothing() -> None:
    pass


def failing() -> None:
    raise SystemExit(3)


def test_parts_are_compiled_in_processes_and_those_that_fail_are_returned(processes: None) -> None:
    reports: list[tuple[float, float | None]] = []
    parts = (nothing, failing, nothing)
    failed = precompile.warm(lambda phase, done, total=None, best=None: reports.append((done, total)), parts)
    assert failed == ("failing",)
    assert (reports[0], reports[-1]) == ((0, 3), (3, 3))


def test_every_part_compiles_and_the_doctor_reports_what_failed(
    offline: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in precompile.PARTS:
        part()
    for failed, code, state in (((), 0, "ok"), (("flits",), 1, "failed")):
        monkeypatch.setattr(precompile, "warm", lambda progress, failed=failed: failed)
        call = offline("doctor", "--warm", "--json")
        assert (call.code, call.json[0]["state"]) == (code, state)
    assert "give either --warm or --launchers" in offline("doctor", "--warm", "--launchers").err
