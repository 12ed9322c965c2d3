"""Generated past of the demonstration's cluster: its earlier wiring and routes, the plan of it, nightly jobs.

The present wiring and routes are real. The past differs from them by two cables: one between two switches,
which was lost (the real fabric has one cable there where most pairs of switches have two), and one of a host,
which was moved to another port of its switch. Routes that used the lost cable use its neighbour since then.
"""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timedelta

import numpy as np

from registry.model import Fabric, IntendedWiring, Job, Links

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
