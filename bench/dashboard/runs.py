"""Generate a few simulated runs and circuit plans on the dashboard's measured machine.

A few running jobs are replayed from each of their placements on the present fabric. Some hosts with running
jobs get an optical switch, and plans for what runs there from several seeds. The machine has no such switch:
this is so that the pages of runs and of circuits have something to show.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from bench.dashboard.placements import CLUSTER, Era
from mapping.circuits.paper_seeds import chordal_ring, ring
from mapping.questions.circuits import (
    CircuitPlanRequest,
    CircuitSearchOptions,
    circuit_case,
    plan_circuits,
    save_circuits,
)
from mapping.simulation.messages import Options, from_profile
from mapping.simulation.simulate import simulate
from registry.registry import Registry
from registry.store.circuit_plans import OpticalSwitch
from registry.store.placement_rows import StoredPlacement
from registry.store.running_jobs import RunningJob
from registry.store.simulations import SimulationRecord
from registry.units import code_version

REPLAYED = 4
"""Running jobs that are simulated."""
RANKS = 128
"""Most ranks of these."""
ROUNDS, EVERY = 4, 20
PACKET_BYTES = 16_384
"""Large ones: what is measured is how runs are shown."""
OPTICAL_HOSTS = 128
"""On the optical switch at most; whole jobs only."""
DEGREE, CHORD = 6, 11
SPEED = 2.5e10
PLANS = 5
TRIALS = 20


def write_simulations(registry: Registry, era: Era, now: datetime) -> int:
    """Simulate all placements of some running jobs on the latest fabric; return the number of runs."""
    running = registry.running(CLUSTER, now)
    stored = registry.profiles.read_many({one.stored.profile or "" for one in running.jobs} - {""})
    known = [one for one in running.jobs if one.stored.profile in stored]
    small = [one for one in known if stored[one.stored.profile or ""].profile.ranks <= RANKS]
    options = Options(packet_bytes=PACKET_BYTES)
    runs = 0
    for job in small[:REPLAYED]:
        messages = from_profile(stored[job.stored.profile or ""].profile, ROUNDS)
        for placed in _placements(registry, job, era):
            start = time.monotonic()
            run = simulate(era.fabric, placed.placement, messages, options=replace(options, every=EVERY))
            record = SimulationRecord(
                placement=placed.id,
                content=era.content,
                tables=era.tables,
                profile=placed.profile or "",
                simulation=run,
                parameters={"rounds": ROUNDS, "packet_bytes": PACKET_BYTES, "every": EVERY},
                wall_seconds=time.monotonic() - start,
                code_version=code_version(),
            )
            registry.simulations.save(record)
            runs += 1
    return runs


def write_plans(registry: Registry, now: datetime) -> int:
    """Put some running jobs' hosts on an optical switch and plan its circuits; return the number of plans."""
    hosts = _hosts(registry, now)
    if len(hosts) < 3:
        return 0
    present = chordal_ring(len(hosts), CHORD) if len(hosts) >= 2 * CHORD else ring(len(hosts))
    switch = OpticalSwitch(
        cluster=CLUSTER,
        hosts=hosts,
        max_degree=DEGREE,
        max_edges=DEGREE * len(hosts) // 2,
        link_speed=SPEED,
        circuits=tuple((a, b) for a, b in present.pairs.tolist()),
    )
    registry.optical.save(switch)
    case = circuit_case(registry, CircuitPlanRequest(cluster=CLUSTER, at=now))
    for seed in range(PLANS):
        options = CircuitSearchOptions(trials=TRIALS, seed=seed, reconfiguration_seconds=1.0)
        save_circuits(registry, plan_circuits(case, options))
    return PLANS


def _placements(registry: Registry, job: RunningJob, era: Era) -> Iterator[StoredPlacement]:
    for info in registry.placements.history(CLUSTER, job=job.stored.job.id):
        if info.snapshot == era.content:
            yield registry.placements.read(info.id)


def _hosts(registry: Registry, now: datetime) -> tuple[str, ...]:
    """Return hosts of running jobs with a known profile, as long as they fit."""
    found: list[str] = []
    for one in registry.running(CLUSTER, now).jobs:
        hosts = one.stored.job.hosts
        if one.stored.profile and len(found) + len(hosts) <= OPTICAL_HOSTS:
            found += [host for host in hosts if host not in found]
    return tuple(sorted(found))
