"""One call's harvest on its way into the graph: what `Registry.save` does in its transaction.

There is one, and what fails leaves nothing, but for very many jobs: those of `registry.jobs.jobs.batches`
after the first follow in transactions of their own. What the files can be wrong about is found in the
first, where the hosts of all jobs are looked up. Where a later one does not come about (the server is
gone, the user stops), whole jobs are there and others are not, no good run is recorded, and the same call
again adds the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from registry.counters.sweeps import Retention, roll_up, save_sweep
from registry.database.bulk_writes import ProgressTransaction
from registry.database.driver import Database, Transaction
from registry.fabrics.intended import save_wiring
from registry.fabrics.layouts import match_hosts, save_layouts
from registry.fabrics.observations import (
    ObservationDraft,
    ObservationResult,
    content_as_of,
    lock_cluster,
    no_fabric,
    read_content,
    save_observation,
)
from registry.fabrics.timeline import FOREVER
from registry.ingest_runs.runs import SAVED, UNCHANGED, Attempt, RunResult, record_run
from registry.jobs.allocations import require_hosts
from registry.jobs.jobs import batches, save_jobs
from registry.model import CounterSweep, Fabric, Job
from registry.model.intake import Intake, Receipt
from registry.profiles import save_profile
from registry.progress import Progress
from registry.records.placements.records import PRESENT, PlacementRecord
from registry.records.placements.saving import save_placement
from registry.records.traces import save_trace
from registry.version import code_version

CLOCK_SKEW = timedelta(minutes=10)
"""How far ahead a time may be before it is called odd."""

_RECORDED_OBSERVATION = """
MATCH (r:IngestRun {id: $run})
MATCH (o:Observation {id: $observation})
CREATE (r)-[:RECORDED]->(o)
"""

_RECORDED_PROFILES, _RECORDED_TRACES, _RECORDED_PLACEMENTS, _RECORDED_SWEEPS = (
    f"""
UNWIND range(0, size($id) - 1) AS i
MATCH (r:IngestRun {{id: $run}})
MATCH (n:{label} {{id: $id[i]}})
CREATE (r)-[:RECORDED]->(n)
"""
    for label in ("Profile", "Trace", "Placement", "CounterSweep")
)

_RECORDED_INTENDED = """
MATCH (r:IngestRun {id: $run})
MATCH (w:IntendedWiring {id: $wiring})
CREATE (r)-[:RECORDED]->(w)
"""


def save_intake(
    database: Database, intake: Intake, seen: ObservationDraft | None, progress: Progress
) -> Receipt:
    """Save all of an intake; see `registry.registry.Registry.save`.

    Parameters
    ----------
    database : Database
    intake : Intake
    seen : ObservationDraft or None
        What it saw, from `registry.fabrics.observations.sighting`.
    progress : Progress

    Raises
    ------
    UnknownName
    """
    started, moment = time.monotonic(), datetime.now(UTC)
    recorded = attempt_of(intake, intake.started_at or moment)
    first, *others = batches(intake.jobs) or [()]

    def begin(transaction: Transaction) -> tuple[Saving, Receipt]:
        saving = Saving(transaction, intake, moment, progress)
        receipt = saving.save(seen, first)
        if not others and (saving.changed or intake.files):
            saving.record(receipt, recorded)
        return saving, receipt

    saving, receipt = database.write(begin)
    for number, batch in enumerate(others, start=1):
        last = number == len(others)

        def go_on(
            transaction: Transaction,
            before: Receipt = receipt,
            batch: Sequence[Job] = batch,
            last: bool = last,
        ) -> Receipt:
            later = replace(saving, transaction=transaction)
            after = replace(before, jobs=before.jobs + later.save_more(batch))
            later.changed = saving.changed or after.jobs > 0
            if last and (later.changed or intake.files):
                later.record(after, recorded)
            return after

        progress("saving jobs", sum(map(len, (first, *others[: number - 1]))), len(intake.jobs))
        receipt = database.write(go_on)
    if intake.jobs:
        progress("saving jobs", len(intake.jobs), len(intake.jobs))
    return replace(receipt, seconds=time.monotonic() - started)


def attempt_of(intake: Intake, started_at: datetime) -> Attempt:
    """The call that an intake was read by."""
    return Attempt(
        started_at=started_at,
        cluster=intake.cluster,
        formats=tuple(intake.source.split(", ")) if intake.source else (),
        files=intake.files,
        digest=intake.digest,
        key=intake.key,
        warnings=intake.warnings,
    )


@dataclass(slots=True)
class Saving:
    """One attempt to save an intake."""

    transaction: Transaction
    intake: Intake
    moment: datetime
    progress: Progress
    changed: bool = False
    observation: str | None = None
    new_profiles: tuple[str, ...] = ()
    new_traces: tuple[str, ...] = ()
    new_placements: tuple[str, ...] = ()
    new_sweeps: tuple[str, ...] = ()
    new_intended: str | None = None
    new_layouts: int = 0
    warnings: tuple[str, ...] = ()

    def save(self, seen: ObservationDraft | None, first_jobs: Sequence[Job]) -> Receipt:
        """Save all but the jobs behind the first ones, whose hosts are looked up all the same."""
        intake = self.intake
        seq = lock_cluster(self.transaction, intake.cluster) if intake.cluster else 0
        entered = None
        if seen is not None:
            counted = ProgressTransaction(self.transaction, self.progress, "saving the fabric")
            entered = save_observation(counted, seen, seq)
            counted.finish()
        profiles = self._save_profiles()
        traces = self._save_traces(profiles)
        jobs = 0
        if intake.cluster and intake.jobs:
            self.progress("saving jobs", 0, len(intake.jobs))
            hosts = {host for job in intake.jobs for host in job.hosts}
            require_hosts(self.transaction, intake.cluster, hosts)
            jobs = self._save_jobs(intake.cluster, first_jobs, seq)
        placements = self._save_placements()
        sweeps = self._save_sweeps(seq)
        intended = self._save_intended(seq)
        self._save_layouts(seq)
        receipt = Receipt(
            cluster=intake.cluster,
            profiles=profiles,
            new_profiles=len(self.new_profiles),
            traces=traces,
            new_traces=len(self.new_traces),
            jobs=jobs,
            placements=placements,
            sweeps=sweeps,
            new_sweeps=len(self.new_sweeps),
            intended=intended,
            new_intended=self.new_intended is not None,
            layouts=len(intake.layouts),
            new_layouts=self.new_layouts,
            warnings=(*intake.warnings, *self.warnings),
        )
        new = (
            self.new_profiles,
            self.new_traces,
            self.new_placements,
            self.new_sweeps,
            self.new_intended,
            self.new_layouts,
        )
        self.changed = bool(jobs) or any(new)
        return receipt if seen is None or entered is None else self._with_fabric(receipt, seen, entered)

    def save_more(self, jobs: Sequence[Job]) -> int:
        """Save some of the jobs behind the first ones; the number of those that told something new."""
        cluster = self.intake.cluster
        if cluster is None:
            return 0
        return self._save_jobs(cluster, jobs, lock_cluster(self.transaction, cluster))

    def _save_jobs(self, cluster: str, jobs: Sequence[Job], seq: int) -> int:
        return save_jobs(self.transaction, cluster, jobs, self.intake.observed_at or self.moment, seq)

    def _with_fabric(self, receipt: Receipt, seen: ObservationDraft, entered: ObservationResult) -> Receipt:
        if entered.new_observation:
            self.changed = True
            self.observation = entered.observation
        return replace(
            receipt,
            snapshot=entered.content,
            new_content=entered.new_content,
            new_observation=entered.new_observation,
            routing=None if seen.routing is None else seen.routing.id,
            new_routing=entered.new_routing,
            links_opened=entered.links_opened,
            links_closed=entered.links_closed,
        )

    def _save_profiles(self) -> tuple[str, ...]:
        saved = []
        for number, profile in enumerate(self.intake.profiles):
            self.progress("saving profiles", number, len(self.intake.profiles))
            saved.append(save_profile(self.transaction, profile, self.moment))
        self.new_profiles = tuple(identity for identity, new in saved if new)
        return tuple(identity for identity, _ in saved)

    def _save_traces(self, profiles: Sequence[str]) -> tuple[str, ...]:
        saved = [
            save_trace(self.transaction, profile, trace, self.moment)
            for profile, trace in zip(profiles, self.intake.traces, strict=False)
            if trace is not None
        ]
        self.new_traces = tuple(identity for identity, new in saved if new)
        return tuple(identity for identity, _ in saved)

    def _save_placements(self) -> tuple[str, ...]:
        cluster, orders = self.intake.cluster, self.intake.placements
        if cluster is None or not orders:
            return ()
        content, fabric = self._fabric(cluster, self.intake.observed_at or FOREVER)
        saved = []
        for order in orders:
            record = PlacementRecord(
                cluster=cluster,
                content=content,
                job=order.job or None,
                placement=order.on(fabric),
                code_version=code_version(),
                role=PRESENT,
            )
            saved.append(save_placement(self.transaction, record, self.moment))
        self.new_placements = tuple(identity for identity, new in saved if new)
        return tuple(identity for identity, _ in saved)

    def _fabric(self, cluster: str, at: datetime) -> tuple[str, Fabric]:
        """Id and fabric as of a time; the last one where what is saved is older than the first scan."""
        found = content_as_of(self.transaction, cluster, at)
        found = found or content_as_of(self.transaction, cluster, FOREVER)
        fabric = None if found is None else read_content(self.transaction, found[1])
        if found is None or fabric is None:
            raise no_fabric(self.transaction, cluster, FOREVER)
        return found[1], fabric

    def _save_sweeps(self, seq: int) -> tuple[str, ...]:
        cluster, intake = self.intake.cluster, self.intake
        if cluster is None or not intake.counters:
            return ()
        saved = []
        for number, sweep in enumerate(sorted(intake.counters, key=lambda sweep: sweep.at)):
            self.progress("saving counters", number, len(intake.counters))
            _, fabric = self._fabric(cluster, sweep.at)
            named = sweep.with_guids(fabric)
            told = {"source": intake.source, "digest": intake.digest}
            saved.append(save_sweep(self.transaction, cluster, named, seq, **told))
            self.warnings += _clock_warnings(sweep, saved[-1][0], self.moment)
        self.new_sweeps = tuple(identity for identity, new in saved if new)
        if self.new_sweeps:
            roll_up(self.transaction, cluster, self.moment, Retention())
        return tuple(identity for identity, _ in saved if identity)

    def _save_intended(self, seq: int) -> str | None:
        cluster, plan = self.intake.cluster, self.intake.intended
        if cluster is None or plan is None or plan.declared_at is None:
            return None
        identity, new = save_wiring(
            self.transaction, cluster, plan, plan.declared_at, seq, origin=self.intake.source
        )
        self.new_intended = identity if new else None
        return identity

    def _save_layouts(self, seq: int) -> None:
        cluster, intake = self.intake.cluster, self.intake
        if cluster is None or intake.observed_at is None or not intake.layouts:
            return
        self.progress("saving layouts of hosts", 0, len(intake.layouts))
        _, fabric = self._fabric(cluster, intake.observed_at)
        hosts, warnings = match_hosts(intake.layouts, fabric)
        self.new_layouts = save_layouts(
            self.transaction, cluster, hosts, intake.layouts, intake.observed_at, seq
        )
        self.warnings += warnings

    def record(self, receipt: Receipt, attempt: Attempt) -> None:
        """Remember this run, and what it added."""
        outcome = SAVED if self.changed else UNCHANGED
        seconds = (datetime.now(UTC) - attempt.started_at).total_seconds()
        result = RunResult(
            outcome=outcome,
            seconds=seconds,
            jobs=receipt.jobs,
            snapshot=receipt.snapshot or "",
            routing=receipt.routing or "",
            profiles=receipt.profiles,
        )
        run = record_run(self.transaction, attempt, result)
        if self.observation is not None:
            self.transaction.run(_RECORDED_OBSERVATION, run=run, observation=self.observation)
        self.transaction.run_columns(_RECORDED_PROFILES, {"id": sorted(set(self.new_profiles))}, run=run)
        self.transaction.run_columns(_RECORDED_TRACES, {"id": sorted(set(self.new_traces))}, run=run)
        self.transaction.run_columns(_RECORDED_PLACEMENTS, {"id": sorted(set(self.new_placements))}, run=run)
        # rolled up sweeps are gone again
        self.transaction.run_columns(_RECORDED_SWEEPS, {"id": sorted(set(self.new_sweeps))}, run=run)
        if self.new_intended is not None:
            self.transaction.run(_RECORDED_INTENDED, run=run, wiring=self.new_intended)


def _clock_warnings(sweep: CounterSweep, saved: str, now: datetime) -> tuple[str, ...]:
    """What is odd about the time of a sweep."""
    if not saved:
        return (f"the counters of {sweep.at.isoformat()} lie in a time that is rolled up: they are left out",)
    if sweep.at > now + CLOCK_SKEW:
        return (f"the counters are of {sweep.at.isoformat()}, which is yet to come: is a clock wrong?",)
    return ()
