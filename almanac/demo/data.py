"""Generated data of the demonstration, which completes its real files so that every page has content.

All of it is saved with the source "made for the demonstration": jobs with times relative to a moment; two
applications by formula; port counters of the last hour, which agree with the predicted traffic of the running
jobs up to random noise, with errors at one port; and a small cluster with an optical switch and two jobs.
Measured runs of the last nightly job have this text as their launcher. The past of the cluster is in
`almanac.demo.data`.

Generated past of the demonstration's cluster: its earlier wiring and routes, the plan of it, nightly jobs.

The present wiring and routes are real. The past differs from them by two cables: one between two switches,
which was lost (the real fabric has one cable there where most pairs of switches have two), and one of a host,
which was moved to another port of its switch. Routes that used the lost cable use its neighbour since then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta

import numpy as np

from mapping.traffic.names import reverse_rows
from registry.model import CounterSweep, Fabric, Floats, ForwardingTables, IntendedWiring, Job, Links, Profile
from registry.model.job import MeasuredRun
from registry.store.circuit_plans import OpticalSwitch

MONTH = timedelta(days=30)
"""Age of the first scan and of the plan."""
BEFORE_LOSS, LOST, MOVED = timedelta(hours=26), timedelta(hours=20), timedelta(hours=3)
"""Ages of the last scan with the lost cable, of the first without it, and of the one after the move."""
NIGHTS = range(28, 0, -2)
"""Days from each nightly job to the last one: a job runs every second night."""

SPINE, SPINE_PORT = "MF0;A10-P1-IBSPINE-04:MQM9701/U1", 33
LEAF, LEAF_PORT = "MF0;B09-P1-IBLEAF-01-05:MQM9701/U1", 39
"""Ends of the cable whose neighbour, in the next port of both switches, was lost."""
MOVED_AT, PORT, PLANNED_PORT = "MF0;A09-P1-IBLEAF-01-02:MQM9701/U1", 7, 5
"""Switch, present port and planned port of the moved cable."""


def before_move(fabric: Fabric) -> Fabric:
    """Return the fabric with the moved cable in its planned port."""
    links, tables = fabric.links, fabric.tables
    assert tables is not None
    switch = fabric.names.index(MOVED_AT)
    near = (links.source == switch) & (links.source_port == PORT)
    far = (links.target == switch) & (links.target_port == PORT)
    ports = tables.ports.copy()
    row = ports[_table(fabric, switch)]
    row[row == PORT] = PLANNED_PORT
    return replace(
        fabric,
        links=replace(
            links,
            source_port=np.where(near, PLANNED_PORT, links.source_port),
            target_port=np.where(far, PLANNED_PORT, links.target_port),
        ),
        tables=replace(tables, ports=ports),
    )


def before_loss(fabric: Fabric) -> Fabric:
    """Return the fabric with the lost cable, which takes every second route of the one beside it."""
    links, tables = fabric.links, fabric.tables
    assert tables is not None
    ends = ((fabric.names.index(SPINE), SPINE_PORT), (fabric.names.index(LEAF), LEAF_PORT))
    beside = np.zeros(len(links), np.bool_)
    ports = tables.ports.copy()
    for switch, port in ends:
        beside |= (links.source == switch) & (links.source_port == port)
        row = ports[_table(fabric, switch)]
        row[np.flatnonzero(row == port)[1::2]] = port + 1
    lost = links.take(np.flatnonzero(beside))
    lost = replace(lost, source_port=lost.source_port + 1, target_port=lost.target_port + 1)
    columns = (column.name for column in fields(Links))
    both = {name: np.concatenate([getattr(links, name), getattr(lost, name)]) for name in columns}
    return replace(fabric, links=Links(**both), tables=replace(tables, ports=ports))


def wiring_plan(fabric: Fabric, declared_at: datetime) -> IntendedWiring:
    """Return the cables of a fabric as a plan that is valid from a time."""
    links = fabric.links
    once = np.flatnonzero(links.source < links.target)

    def ends(*columns: np.ndarray) -> tuple[tuple[str, ...], tuple[str, ...]]:
        rows = zip(*(column[once].tolist() for column in columns), strict=True)
        devices, ports = zip(*(_planned_end(fabric, *row) for row in rows), strict=True)
        return devices, ports

    source, source_port = ends(links.source, links.source_adapter, links.source_port)
    target, target_port = ends(links.target, links.target_adapter, links.target_port)
    return IntendedWiring(
        source=source,
        source_port=source_port,
        target=target,
        target_port=target_port,
        kind=("",) * len(once),
        declared_at=declared_at,
    )


def nightly_jobs(last: Job) -> tuple[Job, ...]:
    """Return the jobs of the nights before a job, on the same hosts; the earliest first."""
    return tuple(
        replace(moved_job(last, -timedelta(days=night)), id=str(int(last.id) - night)) for night in NIGHTS
    )


def moved_job(job: Job, by: timedelta) -> Job:
    """Return the job with its times moved."""
    times = ("submitted_at", "started_at", "ended_at")
    known = {name: moment for name in times if (moment := getattr(job, name)) is not None}
    return replace(job, **{name: moment + by for name, moment in known.items()})


def _planned_end(fabric: Fabric, vertex: int, adapter: int, port: int) -> tuple[str, str]:
    """Return the device and the port of an end as a plan writes them: ``node01`` and ``HCA-1/P1``."""
    device = fabric.names[vertex]
    described = fabric.adapters.names[adapter] if adapter >= 0 else ""
    known = described.startswith(f"{device} ")
    return device, f"{described.removeprefix(device).strip()}/P{port}" if known else f"P{port}"


def _table(fabric: Fabric, switch: int) -> int:
    """Return the row of a switch's forwarding table."""
    assert fabric.tables is not None
    return int(np.searchsorted(fabric.tables.switch_guid, fabric.guid[switch]))


SOURCE = "made for the demonstration"
STARTED = timedelta(minutes=65)
"""Age of the running job that started last: before the first sweep of port counters."""
SWEEP, SWEEPS = timedelta(minutes=15), 5
"""Time between two sweeps of port counters, and their number."""
ERRORS = (9, 4)
"""Symbol errors and receive errors between two sweeps at the port of the moved cable."""
BUSY = 0.6
"""Utilisation of the busiest link."""
OPTICAL_SIDES = (4, 4)
"""Sides of the torus that the circuits of the optical switch form."""
OPTICAL_DEGREE = 4
"""Maximum number of circuits at a host."""
OPTICAL_SPEED = 25e9
"""Bytes/s of a circuit: 200 Gbit/s."""

MEASURED = {
    "": (62.1, 61.4, 62.9, 61.8),
    "found": (56.9, 57.8, 57.3, 56.6),
    "random": (65.8, 66.9),
}
"""Seconds of the measured runs by placement, in order first: other work hides most of the estimated gain, and
two runs are too few for a verdict."""


def recent_jobs(jobs: Sequence[Job], moment: datetime) -> tuple[Job, ...]:
    """Return jobs with names that show that they are made, the latest started `STARTED` before a moment."""
    latest = max(job.started_at for job in jobs if job.started_at is not None)
    by = moment - STARTED - latest
    return tuple(replace(moved_job(job, by), name=f"demo-{job.name}", source=SOURCE) for job in jobs)


def applications() -> tuple[Profile, ...]:
    """Return one training step on 64 accelerators, and forty iterations of LULESH on 64 ranks."""
    from ingest.generate.collectives import AiLayout, ai_layout
    from ingest.generate.stencils import lulesh

    training = ai_layout(AiLayout(
        tensor=4, data=8, pipeline=2, tensor_bytes=2e7, data_bytes=6e6, pipeline_bytes=1e6, domain=4,
        keep_inside=False,
    ))  # fmt: skip
    shock = lulesh(4, iterations=40)
    return tuple(
        replace(profile, name=name, source="generated")
        for profile, name in ((training, "demo-training-64"), (shock, "demo-lulesh-64"))
    )


def measured_runs(first: MeasuredRun, placements: Mapping[str, str]) -> tuple[MeasuredRun, ...]:
    """Return the runs of `MEASURED`, one after the other.

    Args:
        first: What all runs have in common, and the time of the first one.
        placements: Id of each placement by its name.
    """
    at, runs = first.started_at, []
    for name, times in MEASURED.items():
        for seconds in times:
            placement = placements[name] if name else None
            runs.append(replace(first, placement=placement, started_at=at, wall_seconds=seconds))
            at += timedelta(seconds=seconds + 1.0)
    return tuple(runs)


def counters(fabric: Fabric, link_bytes: Floats, moment: datetime) -> tuple[CounterSweep, ...]:
    """Return sweeps of port counters of the hour before a moment.

    Between them the links carried the predicted bytes, with noise; the port of the moved cable counts errors.

    Args:
        link_bytes (float64[m]): Bytes of all running jobs per iteration; the length of an iteration follows
            from `BUSY`.
    """
    draw = np.random.default_rng(4711)
    links, seconds = fabric.links, SWEEP.total_seconds()
    own = np.append(fabric.adapters.guid, np.uint64(0))
    guid = np.where(links.source_adapter >= 0, own[links.source_adapter], fabric.guid[links.source])
    back = np.concatenate([reverse_rows(fabric, np.array([row])) for row in range(len(links))])
    worst = float((link_bytes / links.capacity).max())
    mean = BUSY / worst * link_bytes * draw.lognormal(0.0, 0.25, len(links))
    mean += links.capacity * draw.gamma(0.5, 0.01, len(links))  # traffic of no known job
    rate = np.minimum(mean * draw.lognormal(0.0, 0.1, (SWEEPS, len(links))), 0.97 * links.capacity)
    rate[0] = 0.0  # the first sweep only begins the count
    waiting = seconds * 1e6 * np.maximum(rate / links.capacity - 0.4, 0.0)
    sent = draw.integers(1 << 34, 1 << 42, len(links)) + np.cumsum(seconds * rate, axis=0).astype(np.int64)
    wait = draw.integers(0, 1 << 24, len(links)) + np.cumsum(waiting, axis=0).astype(np.int64)
    faulty = (links.source == fabric.names.index(MOVED_AT)) & (links.source_port == PORT)
    errors = [[number * each * faulty for each in ERRORS] for number in range(SWEEPS)]
    return tuple(
        CounterSweep(
            at=moment - (SWEEPS - 1 - number) * SWEEP,
            guid=guid,
            port=links.source_port,
            names=("xmit_bytes", "rcv_bytes", "xmit_wait", "symbol_errors", "rcv_errors"),
            values=np.stack((sent[number], sent[number][back], wait[number], *errors[number]), axis=1),
        )
        for number in range(SWEEPS)
    )


def optical_cluster() -> tuple[Fabric, ForwardingTables]:
    """Return sixteen hosts on two leaf and two spine switches, which the optical switch connects, too."""
    from ingest.writers import as_fabric, fat_tree, forwarding_tables

    hosts = int(np.prod(OPTICAL_SIDES))
    devices = fat_tree(leaves=2, hosts_per_leaf=hosts // 2, spines=2, cables=2)
    return as_fabric(devices), forwarding_tables(devices)


def optical_jobs(fabric: Fabric, at: datetime, jobs: Sequence[str]) -> tuple[Job, ...]:
    """Return jobs of 64 ranks that run at a time, each on an equal part of the optical cluster's hosts."""
    each = len(fabric.hosts) // len(jobs)
    names = [fabric.names[host] for host in fabric.hosts.tolist()]
    return tuple(
        Job(
            id=job,
            name=f"demo-optical-{job}",
            user="dave",
            account="optics",
            state="RUNNING",
            submitted_at=at - timedelta(hours=1),
            started_at=at - timedelta(minutes=30),
            hosts=tuple(names[number * each : (number + 1) * each]),
            slots=(64 // each,) * each,
            ranks=64,
            source=SOURCE,
        )
        for number, job in enumerate(jobs)
    )


def optical_switch(cluster: str, fabric: Fabric) -> OpticalSwitch:
    """Return a switch that connects all hosts of the optical cluster as a torus, which suits other jobs."""
    from mapping.circuits.paper_seeds import torus

    pairs = [(a, b) for a, b in torus(*OPTICAL_SIDES).pairs.tolist()]
    return OpticalSwitch(
        cluster=cluster,
        hosts=tuple(fabric.names[host] for host in fabric.hosts.tolist()),
        max_degree=OPTICAL_DEGREE,
        max_edges=len(pairs),
        link_speed=OPTICAL_SPEED,
        circuits=tuple(pairs),
    )
