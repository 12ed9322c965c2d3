"""Generated data of the demonstration, which completes its real files so that every page has content.

All of it is saved with the source "made for the demonstration": a scan of the day before, in which three
cables of the real scan are missing; two applications by formula; port counters that agree with the predicted
traffic of the running jobs up to random noise; and a small cluster with an optical switch and two jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from mapping.traffic.device_names import reverse_rows
from registry.model import CounterSweep, Fabric, Floats, ForwardingTables, Job, Profile
from registry.records.optical_switches import OpticalSwitch

SOURCE = "made for the demonstration"
EARLIER = timedelta(days=1)
"""Age of the generated scan when the real one was taken."""
COUNTED = timedelta(hours=2)
"""Time from the real scan to the first sweep of port counters."""
SWEEP = timedelta(minutes=15)
"""Time between the two sweeps."""
HOST_WITHOUT_RAIL = "b07-p1-dgx-07-c09"
"""Host that lacks one rail in the earlier scan."""
BUSY = 0.6
"""Utilisation of the busiest link."""
OPTICAL_SIDES = (4, 4)
"""Sides of the torus that the circuits of the optical switch form."""
OPTICAL_DEGREE = 4
"""Maximum number of circuits at a host."""
OPTICAL_SPEED = 25e9
"""Bytes/s of a circuit: 200 Gbit/s."""


def earlier(fabric: Fabric) -> Fabric:
    """Return the fabric of a scan without two cables between switches and one rail of a host."""
    links, switch = fabric.links, fabric.kind == 1
    between = np.flatnonzero(switch[links.source] & switch[links.target] & (links.source < links.target))
    rail = next(
        row for row, host in enumerate(links.target.tolist()) if fabric.names[host] == HOST_WITHOUT_RAIL
    )
    lost = np.array([*between[[40, 200]].tolist(), rail])
    gone = np.isin(np.arange(len(links)), [*lost, *reverse_rows(fabric, lost)])
    return _cabled_ports(replace(fabric, links=links.take(np.flatnonzero(~gone)), tables=None))


def applications() -> tuple[Profile, ...]:
    """Return one training step on 64 accelerators, and forty iterations of LULESH on 64 ranks."""
    from ingest.generate.ai_layouts import AiLayout, ai_layout
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


def counters(fabric: Fabric, link_bytes: Floats) -> tuple[CounterSweep, ...]:
    """Return two sweeps of port counters between which the links carried the predicted bytes, with noise.

    Parameters
    ----------
    link_bytes : float64[m]
        Bytes of all running jobs per period; the length of a period follows from `BUSY`.
    """
    assert fabric.observed_at is not None
    draw = np.random.default_rng(4711)
    links = fabric.links
    own = np.append(fabric.adapters.guid, np.uint64(0))
    guid = np.where(links.source_adapter >= 0, own[links.source_adapter], fabric.guid[links.source])
    back = np.concatenate([reverse_rows(fabric, np.array([row])) for row in range(len(links))])
    worst = float((link_bytes / links.capacity).max())
    rate = BUSY / worst * link_bytes * draw.lognormal(0.0, 0.25, len(links))
    rate += links.capacity * draw.gamma(0.5, 0.01, len(links))  # traffic of no known job
    rate = np.minimum(rate, 0.97 * links.capacity)
    start = draw.integers(1 << 34, 1 << 42, len(links))
    waited = draw.integers(0, 1 << 24, len(links))
    seconds = SWEEP.total_seconds()
    sweeps = []
    for number in range(2):
        sent = start + (number * seconds * rate).astype(np.int64)
        wait = waited + (number * seconds * 1e6 * np.maximum(rate / links.capacity - 0.4, 0)).astype(np.int64)
        sweeps.append(
            CounterSweep(
                at=fabric.observed_at + COUNTED + number * SWEEP,
                guid=guid,
                port=links.source_port,
                names=("xmit_bytes", "rcv_bytes", "xmit_wait"),
                values=np.stack((sent, sent[back], wait), axis=1),
            )
        )
    return tuple(sweeps)


def optical_cluster() -> tuple[Fabric, ForwardingTables]:
    """Return sixteen hosts on two leaf and two spine switches, which the optical switch connects, too."""
    from ingest.writers.generated_files import as_fabric
    from ingest.writers.infiniband import fat_tree, forwarding_tables

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
            name=f"optical-{job}",
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
    from mapping.reconfiguration.paper.seed_topology import torus

    pairs = [(a, b) for a, b in torus(*OPTICAL_SIDES).pairs.tolist()]
    return OpticalSwitch(
        cluster=cluster,
        hosts=tuple(fabric.names[host] for host in fabric.hosts.tolist()),
        max_degree=OPTICAL_DEGREE,
        max_edges=len(pairs),
        link_speed=OPTICAL_SPEED,
        circuits=tuple(pairs),
    )


def _cabled_ports(before: Fabric) -> Fabric:
    """Return the fabric without adapter ports that lost their cable, as scans list no ports that are down."""
    adapters, links = before.adapters, before.links
    own = np.flatnonzero(links.source_adapter >= 0)
    cabled = set(zip(links.source_adapter[own].tolist(), links.source_port[own].tolist(), strict=True))
    ports = zip(adapters.port_adapter.tolist(), adapters.port_number.tolist(), strict=True)
    kept = np.fromiter((port in cabled for port in ports), bool, len(adapters.port_adapter))
    names = ("port_adapter", "port_number", "port_guid", "port_lid", "port_lmc")
    return replace(
        before, adapters=replace(adapters, **{name: getattr(adapters, name)[kept] for name in names})
    )
