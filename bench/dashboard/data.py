"""Generate the database for measuring the dashboard: 10,000 hosts, 1,000 jobs, 20,000 placements, 30 days.

Run ``python -m bench.dashboard.data HOME`` in the project's folder to write it into the embedded server's
data folder HOME; ``--pods``, ``--jobs`` and ``--placements`` make it smaller. All of it is generated from a
seed and written by the registry's own functions; what placements cost is evaluated, never drawn.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from bench.dashboard.jobs import DAYS, Planned, month, profiles
from bench.dashboard.machine import Machine, cable_ends, damaged, machine, story
from bench.dashboard.placements import CLUSTER, Era, write_placements, write_plans, write_simulations
from registry.database.driver import Transaction
from registry.database.embedded_server import ensure_server
from registry.errors import InvalidValue
from registry.model import CounterSweep, Fabric, Floats
from registry.model.intake import Intake
from registry.progress import silent
from registry.registry import Registry
from registry.store.ingest_runs import FAILED, SAVED, UNCHANGED, Attempt, RunResult, record_run
from registry.store.observations import draft_observation
from registry.store.saving import save_all

PODS, JOBS, PLACEMENTS = 25, 1000, 20_000
SWEEP_SECONDS = 900
PEAK_SHARE = 0.85
"""Of its capacity that the hottest link is measured to carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Size of the database; `placements` are spread evenly over the jobs with a profile."""

    pods: int = PODS
    leaves: int = 20
    jobs: int = JOBS
    placements: int = PLACEMENTS
    seed: int = 0


def main() -> None:
    """Write the database and print how long each step took."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("home", type=Path)
    for name in ("pods", "leaves", "jobs", "placements", "seed"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Sizes(), name))
    parser.add_argument("--workers", type=int, default=2)
    given = vars(parser.parse_args())
    home, workers = given.pop("home"), given.pop("workers")
    ensure_server(home, idle_seconds=600.0, progress=silent)
    with Registry.open(home=home) as registry:
        write(registry, Sizes(**given), workers=workers, on_step=_print_step)


def write(
    registry: Registry,
    sizes: Sizes,
    *,
    now: datetime | None = None,
    workers: int = 2,
    on_step: Callable[[str, float], None] = lambda step, seconds: None,
) -> None:
    """Fill an empty registry."""
    now = now or datetime.now(UTC).replace(second=0, microsecond=0)
    whole = machine(sizes.pods, sizes.leaves, sizes.leaves)
    clock = time.perf_counter()

    def lap(step: str) -> None:
        nonlocal clock
        on_step(step, time.perf_counter() - clock)
        clock = time.perf_counter()

    eras = write_fabrics(registry, whole, sizes, now)
    lap("fabrics")
    planned = month(
        now, [f"n{index:05d}" for index in range(len(whole.fabric.hosts))], sizes.jobs, sizes.seed
    )
    write_jobs(registry, planned, now)
    lap("jobs and profiles")
    load = write_placements(registry, eras, planned, now, sizes.placements, workers)
    lap("placements and advice")
    write_counters(registry, eras[-1].fabric, load, now, sizes.seed)
    lap("counters")
    write_simulations(registry, eras[-1], now)
    lap("simulated runs")
    write_plans(registry, now)
    lap("plans of circuits")
    write_runs(registry, eras, now, sizes.seed)
    lap("runs")


def write_fabrics(registry: Registry, whole: Machine, sizes: Sizes, now: datetime) -> list[Era]:
    """Save every state of the fabric, observed when it began and every third morning after."""
    eras: list[Era] = []
    states = story(sizes.pods, sizes.leaves)
    for damage, later in zip(states, (*states[1:], None), strict=True):
        fabric = damaged(whole, damage)
        since, until = now - damage.before_now, now if later is None else now - later.before_now
        recent = [now - timedelta(minutes=50)] if later is None else []
        for at in (*_mornings(since, until), *recent):
            intake = Intake(
                cluster=CLUSTER,
                observed_at=at,
                fabric=fabric,
                tables=fabric.tables,
                source="ibnetdiscover, opensm-lfts",
            )
            content, routing = _save(registry, intake, at, ("fabric.txt", "lfts.dump"), 9.0)
        eras.append(Era(since=since, content=content, tables=routing, fabric=fabric))
    return [_as_stored(registry, era) for era in eras]


def write_jobs(registry: Registry, planned: Sequence[Planned], now: datetime) -> None:
    """Save the month's jobs as accounting reports them, the profiles, and which job ran which."""
    for number, profile in enumerate(profiles()):
        at = now - timedelta(days=DAYS) + timedelta(minutes=number)
        _save(registry, Intake(profiles=(profile,), source="edges"), at, (f"{profile.name}.csv",), 0.4)
    jobs = tuple(one.job for one in planned)
    intake = Intake(cluster=CLUSTER, jobs=jobs, observed_at=now, source="slurm-sacct")
    _save(registry, intake, now - timedelta(minutes=4), ("sacct.json",), 2.5)
    ids = [registry.profiles.read(profile.name).id for profile in profiles()]
    for one in planned:
        if one.profile is not None:
            registry.jobs.attach(one.job.id, ids[one.profile], CLUSTER)


def write_counters(registry: Registry, fabric: Fabric, load: Floats, now: datetime, seed: int) -> None:
    """Save three sweeps of counters: predicted traffic of running jobs with noise, and storage traffic."""
    draw = np.random.default_rng([seed, 1])
    links = fabric.links
    guid, port = cable_ends(fabric)
    back = np.lexsort((links.source_port, links.source, links.target_port, links.target))
    total = draw.integers(1 << 36, 1 << 44, len(links))
    waited = draw.integers(0, 1 << 30, len(links))
    for number in range(3):
        at = now - timedelta(seconds=SWEEP_SECONDS * (2 - number) + 60)
        sweep = CounterSweep(
            at=at,
            guid=guid,
            port=port,
            names=("xmit_bytes", "rcv_bytes", "xmit_packets", "rcv_packets", "xmit_wait"),
            values=np.stack((total, total[back], total // 2048, total[back] // 2048, waited), axis=1),
        )
        intake = Intake(cluster=CLUSTER, counters=(sweep,), source="perfquery")
        _save(registry, intake, at, ("counters.txt",), 3.0)
        rate = _rates(load, links.capacity, draw)
        total = total + (rate * SWEEP_SECONDS).astype(np.int64)
        waited = waited + (1e6 * SWEEP_SECONDS * np.maximum(rate / links.capacity - 0.5, 0)).astype(np.int64)


def write_runs(registry: Registry, eras: Sequence[Era], now: datetime, seed: int) -> None:
    """Save the other runs of cron: scans and accounting without news, and some that failed."""
    draw = np.random.default_rng([seed, 2])
    errors = (
        InvalidValue("opensm-lfts.dump", "line 51123: the switch 0x2c9000001a2b0 has no table"),
        TimeoutError("sacct: error: slurm_persist_conn_open: failed to send persistent connection"),
    )

    def work(transaction: Transaction) -> None:
        for hours in range(24 * 7, 0, -1):
            at = now - timedelta(hours=hours, minutes=int(draw.integers(5)))
            for formats, file, about in (
                (("ibnetdiscover", "opensm-lfts"), "fabric.txt", 6.0),
                (("slurm-sacct",), "sacct.json", 1.5),
            ):
                failed = draw.random() < 0.03
                attempt = Attempt(started_at=at, cluster=CLUSTER, formats=formats, files=(file,))
                result = RunResult(
                    outcome=FAILED if failed else UNCHANGED,
                    seconds=float(about * draw.lognormal(0.0, 0.3)),
                    error=errors[len(formats) == 1] if failed else None,
                    snapshot="" if failed or len(formats) == 1 else eras[-1].content,
                )
                record_run(transaction, attempt, result)

    registry.database.write(work)


def _save(
    registry: Registry, intake: Intake, at: datetime, files: tuple[str, ...], seconds: float
) -> tuple[str, str]:
    """Save an intake with a given time and return the ids of the fabric and its tables."""
    seen = draft_observation(intake)
    attempt = Attempt(
        started_at=at, cluster=intake.cluster, formats=tuple(intake.source.split(", ")), files=files
    )

    def work(transaction: Transaction) -> tuple[str, str]:
        receipt = save_all(transaction, intake, seen, at, silent)
        content, routing = receipt.snapshot or "", receipt.routing or ""
        result = RunResult(
            outcome=SAVED,
            seconds=seconds,
            jobs=receipt.new("jobs"),
            snapshot=content,
            routing=routing,
            profiles=receipt.ids("profiles"),
        )
        record_run(transaction, attempt, result)
        return content, routing

    return registry.database.write(work)


def _as_stored(registry: Registry, era: Era) -> Era:
    """Return the era with the fabric as the registry returns it, whose vertices the placements index."""
    stored = registry.fabrics.read(CLUSTER, era.since)
    assert stored.id == era.content
    return Era(since=era.since, content=era.content, tables=era.tables, fabric=stored.fabric)


def _mornings(since: datetime, until: datetime) -> Iterator[datetime]:
    yield since
    morning = since.replace(hour=6, minute=0) + timedelta(days=1)
    while morning < until:
        yield morning
        morning += timedelta(days=3)


def _rates(load: Floats, capacity: Floats, draw: np.random.Generator) -> Floats:
    """Return the measured bytes/s of links (float64[m]); the busiest is in use `PEAK_SHARE` of the time."""
    worst = float((load / capacity).max(initial=0.0)) or 1.0
    jobs = load / worst * PEAK_SHARE * draw.lognormal(0.0, 0.2, len(load))
    storage = capacity * draw.gamma(0.6, 0.02, len(load))
    return np.minimum(jobs + storage, 0.98 * capacity)


def _print_step(step: str, seconds: float) -> None:
    print(f"{seconds:8.1f} s  {step}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
