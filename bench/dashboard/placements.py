"""Generate placements, advice, simulated runs and circuit plans on the dashboard's measured machine.

The ranks of a job are placed as its scheduler orders them, by a short search, and by both with a few ranks
exchanged. What each of these costs is evaluated. Running jobs have a few placements, some of those that ended
many, as of people who try. A few running jobs are replayed from each of their placements. Some of their hosts
get an optical switch, and plans for what runs there: the machine has no such switch, this is so that the
pages of runs and of circuits have something to show.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from bench.dashboard.jobs import Planned, profiles
from bench.support.searches import searched
from mapping.circuits.paper_seeds import chordal_ring, ring
from mapping.cost.metrics import case_bounds, evaluate_on
from mapping.cost.report import baselines
from mapping.distances.cost_model import CostModel
from mapping.placement.case import PlacementCase
from mapping.questions.circuits import (
    CircuitPlanRequest,
    CircuitSearchOptions,
    circuit_case,
    plan_circuits,
    save_circuits,
)
from mapping.simulation.messages import Options, from_profile
from mapping.simulation.simulate import simulate
from registry.database.driver import Transaction
from registry.model import Allocation, Fabric, Floats, Metrics, Placement
from registry.model.placement import LoadedLinks, order_of_job
from registry.registry import Registry
from registry.store.circuit_plans import OpticalSwitch
from registry.store.observations import lock_cluster
from registry.store.placement_rows import PRESENT, PROPOSED, PlacementRecord, StoredPlacement
from registry.store.placements import placement_id, save_placements
from registry.store.running_jobs import AdviceRecord, RunningJob
from registry.store.simulations import SimulationRecord
from registry.units import code_version

CLUSTER = "large"
SEARCH_STEPS = 1500
CHAIN = "layout+congestion-descent"
BOUNDED = 256
"""Most ranks for which lower bounds are computed; for more it takes seconds a job."""
OF_RUNNING = 4
"""Placements of a running job, on each state of the fabric that it saw."""
TRIED = 160
"""Jobs that ended and have placements."""
BATCH = 400
"""Placements that are saved in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """A state of the fabric as saved, and the time since when it was observed."""

    since: datetime
    content: str
    tables: str
    fabric: Fabric


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A placement to be saved, and when it was made."""

    at: datetime
    record: PlacementRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The present placement of a running job on the latest fabric, and the best one found."""

    job: str
    present: str
    proposed: str
    moved: int
    present_loads: LoadedLinks
    proposed_loads: LoadedLinks


def write_placements(
    registry: Registry,
    eras: Sequence[Era],
    planned: Sequence[Planned],
    now: datetime,
    total: int,
    workers: int,
) -> Floats:
    """Save about `total` placements and advice; return the load of running jobs on links (float64[m])."""
    ids = [registry.profiles.read(profile.name).id for profile in profiles()]
    known, shares = _chosen(planned, total)
    tasks = [(eras, one, ids[one.profile or 0], now, share) for one, share in zip(known, shares, strict=True)]
    waiting: list[Placed] = []
    running: list[Candidates] = []
    context = multiprocessing.get_context("spawn")  # the driver has threads
    with ProcessPoolExecutor(workers, context, initializer=_keep, initargs=(tasks,)) as pool:
        for one, placed in zip(known, pool.map(_placed, range(len(tasks)), chunksize=4), strict=True):
            waiting += placed
            if one.job.ended_at is None:
                running.append(_candidates(one, placed, eras[-1]))
            if len(waiting) >= BATCH:
                _save(registry, waiting)
                waiting.clear()
    _save(registry, waiting)
    return _advise(registry, eras[-1].fabric, running, now)


def placements_of(
    eras: Sequence[Era], one: Planned, profile_id: str, now: datetime, count: int
) -> list[Placed]:
    """Return placements of a job during its run: present, found, and both with some ranks swapped."""
    assert one.job.started_at is not None
    start, end = one.job.started_at, one.job.ended_at or now
    states = [era for era in eras if era.since <= start][-1:]
    if one.job.ended_at is None and states != [eras[-1]]:
        states.append(eras[-1])
    placed: list[Placed] = []
    for number, era in enumerate(states):
        until = states[number + 1].since if number + 1 < len(states) else end
        placed += _on(era, one, profile_id, max(start, era.since), min(end, until), count)
    return placed


def _on(
    era: Era, one: Planned, profile_id: str, begin: datetime, until: datetime, count: int
) -> Iterator[Placed]:
    """Make `count` placements on one state of the fabric."""
    profile = profiles()[one.profile or 0]
    allocation = Allocation.of(era.fabric, one.job.hosts, one.job.slots)
    costs = CostModel(routing="tables")
    case = PlacementCase(fabric=era.fabric, profile=profile, allocation=allocation, costs=costs)
    in_order, random = baselines(case)
    bounds = case_bounds(case) if profile.ranks <= BOUNDED else None
    draw = np.random.default_rng([int(one.job.id), int(era.since.timestamp())])
    moments = [begin + (until - begin) * part for part in sorted(draw.uniform(0.01, 0.99, count).tolist())]
    variants = _variants(one, era, allocation, count, draw)
    for number, (moment, placement) in enumerate(zip(moments, variants, strict=True)):
        record = PlacementRecord(
            cluster=CLUSTER,
            content=era.content,
            routing=era.tables,
            profile=profile_id,
            job=one.job.id,
            placement=placement,
            evaluation=evaluate_on(case, placement, bounds),
            in_order=Metrics.of(in_order),
            random=random,
            code_version=code_version(),
            role=PRESENT if number == 0 else PROPOSED,
        )
        yield Placed(at=moment, record=record)


def _variants(
    one: Planned, era: Era, allocation: Allocation, count: int, draw: np.random.Generator
) -> Iterator[Placement]:
    """Return the scheduler's placement, a search's, and both with some pairs of ranks swapped."""
    present = order_of_job(one.job).on(era.fabric)
    found = searched(
        era.fabric,
        profiles()[one.profile or 0],
        allocation,
        routing="tables",
        strategies=(CHAIN,),
        steps=SEARCH_STEPS,
        seed=int(one.job.id),
        workers=1,
    )
    yield from (present, found)
    for number in range(2, count):
        base = found if draw.random() < 0.8 else present
        hosts = base.host_of_rank.copy()
        pairs = int(draw.geometric(0.25))
        for a, b in draw.integers(base.ranks, size=(pairs, 2)).tolist():
            hosts[a], hosts[b] = hosts[b], hosts[a]
        yield Placement(
            host_of_rank=hosts,
            allocation=allocation,
            strategy=base.strategy,
            objective="congestion",
            routing="tables",
            parameters={"exchanged pairs": pairs},
            seed=number,
            seconds=0.1,
            steps=SEARCH_STEPS,
        )


def _candidates(one: Planned, placed: Sequence[Placed], era: Era) -> Candidates:
    present, *others = (each.record for each in placed if each.record.content == era.content)
    best = min(others, key=_worst)
    moved = best.placement.host_of_rank != present.placement.host_of_rank
    return Candidates(
        job=one.job.id,
        present=placement_id(present),
        proposed=placement_id(best),
        moved=int(moved.sum()),
        present_loads=_loads(present),
        proposed_loads=_loads(best),
    )


def _advise(registry: Registry, fabric: Fabric, running: Sequence[Candidates], now: datetime) -> Floats:
    """Save the gain of remapping each running job, given the others; return the load of all."""
    capacity = fabric.links.capacity
    total = np.zeros(len(capacity))
    for one in running:
        total[one.present_loads.link] += one.present_loads.bytes
    records = []
    for one in running:
        here, there = one.present_loads, one.proposed_loads
        others = total.copy()
        others[here.link] -= here.bytes
        present = float((total[here.link] / capacity[here.link]).max(initial=0.0))
        carried = others[there.link] + there.bytes
        proposed = float((carried / capacity[there.link]).max(initial=0.0))
        better = proposed < present
        records.append(
            AdviceRecord(
                cluster=CLUSTER,
                job=one.job,
                at=now,
                present=one.present,
                proposed=one.proposed if better else None,
                present_seconds=present,
                proposed_seconds=proposed if better else present,
                in_background=len(running) - 1,
                moved=one.moved if better else 0,
            )
        )
    registry.advices.save(records)
    return total


def _save(registry: Registry, placed: Sequence[Placed]) -> None:
    def work(transaction: Transaction) -> None:
        lock_cluster(transaction, CLUSTER)
        save_placements(transaction, [(one.record, one.at) for one in placed])

    registry.database.write(work)


def _worst(record: PlacementRecord) -> float:
    assert record.evaluation is not None
    return record.evaluation.congestion_seconds


def _loads(record: PlacementRecord) -> LoadedLinks:
    assert record.evaluation is not None
    return LoadedLinks.of(record.evaluation.link_bytes)


def _chosen(planned: Sequence[Planned], total: int) -> tuple[list[Planned], list[int]]:
    """Return the jobs that get placements, by start time, and the number for each."""
    known = [one for one in planned if one.profile is not None]
    ended = [one for one in known if one.job.ended_at is not None and one.job.ranks <= BOUNDED]
    running = {one.job.id for one in known if one.job.ended_at is None}
    tried = {one.job.id for one in ended[:: max(1, -(-len(ended) // TRIED))]}
    chosen = [one for one in known if one.job.id in running | tried]
    shares = iter(_spread(max(total - OF_RUNNING * len(running), 2 * len(tried)), max(len(tried), 1)))
    return chosen, [OF_RUNNING if one.job.id in running else next(shares) for one in chosen]


def _spread(total: int, parts: int) -> list[int]:
    """Split `total` over the parts as evenly as whole numbers allow."""
    return [total // parts + (part < total % parts) for part in range(parts)]


_TASKS: list[tuple[Sequence[Era], Planned, str, datetime, int]] = []
"""Input of this process, sent once since fabrics are large."""


def _keep(tasks: list[tuple[Sequence[Era], Planned, str, datetime, int]]) -> None:
    _TASKS[:] = tasks


def _placed(number: int) -> list[Placed]:
    return placements_of(*_TASKS[number])


REPLAYED = 4
"""Running jobs that are simulated."""
REPLAYED_RANKS = 128
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
    small = [one for one in known if stored[one.stored.profile or ""].profile.ranks <= REPLAYED_RANKS]
    options = Options(packet_bytes=PACKET_BYTES)
    runs = 0
    for job in small[:REPLAYED]:
        messages = from_profile(stored[job.stored.profile or ""].profile, ROUNDS)
        for placed in _stored(registry, job, era):
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


def _stored(registry: Registry, job: RunningJob, era: Era) -> Iterator[StoredPlacement]:
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
