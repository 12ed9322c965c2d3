"""One call's harvest on its way into the graph: what `Registry.save` does inside its transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from registry.counter_sweeps import Retention, roll_up, save_sweep
from registry.database import Transaction
from registry.intake import Intake, Receipt
from registry.intended import save_wiring
from registry.jobs import save_jobs
from registry.layouts import save_layouts, seat
from registry.model import CounterSweep, Fabric
from registry.placements import PlacementRecord, save_placement
from registry.profiles import save_profile
from registry.progress import Progress
from registry.runs import SAVED, UNCHANGED, Attempt, record_run
from registry.version import code_version
from registry.wiring.observations import (
    Seen,
    Sighting,
    content_as_of,
    enter,
    no_fabric,
    read_content,
    take_cluster,
)
from registry.wiring.timeline import FOREVER

CLOCK_SKEW = timedelta(minutes=10)
"""How far ahead a time may be before it is called odd."""

_RECORDED_OBSERVATION = """
MATCH (r:IngestRun {id: $run})
MATCH (o:Observation {id: $observation})
CREATE (r)-[:RECORDED]->(o)
"""

_RECORDED_PROFILES = """
UNWIND range(0, size($id) - 1) AS i
MATCH (r:IngestRun {id: $run})
MATCH (p:Profile {id: $id[i]})
CREATE (r)-[:RECORDED]->(p)
"""

_RECORDED_PLACEMENTS = """
UNWIND range(0, size($id) - 1) AS i
MATCH (r:IngestRun {id: $run})
MATCH (p:Placement {id: $id[i]})
CREATE (r)-[:RECORDED]->(p)
"""

_RECORDED_SWEEPS = """
UNWIND range(0, size($id) - 1) AS i
MATCH (r:IngestRun {id: $run})
MATCH (s:CounterSweep {id: $id[i]})
CREATE (r)-[:RECORDED]->(s)
"""

_RECORDED_INTENDED = """
MATCH (r:IngestRun {id: $run})
MATCH (w:IntendedWiring {id: $wiring})
CREATE (r)-[:RECORDED]->(w)
"""


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
    new_placements: tuple[str, ...] = ()
    new_sweeps: tuple[str, ...] = ()
    new_intended: str | None = None
    new_layouts: int = 0
    warnings: tuple[str, ...] = ()

    def save(self, seen: Sighting | None) -> Receipt:
        intake = self.intake
        seq = take_cluster(self.transaction, intake.cluster) if intake.cluster else 0
        self.progress("saving the fabric", 0, 1)
        entered = None if seen is None else enter(self.transaction, seen, seq)
        self.progress("saving the fabric", 1, 1)
        profiles = self._save_profiles()
        jobs = 0
        if intake.cluster and intake.jobs:
            as_of = intake.observed_at or self.moment
            jobs = save_jobs(self.transaction, intake.cluster, intake.jobs, as_of, seq)
        placements = self._save_placements()
        sweeps = self._save_sweeps(seq)
        intended = self._save_intended(seq)
        self._save_layouts(seq)
        receipt = Receipt(
            cluster=intake.cluster,
            profiles=profiles,
            new_profiles=len(self.new_profiles),
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
            self.new_placements,
            self.new_sweeps,
            self.new_intended,
            self.new_layouts,
        )
        self.changed = bool(jobs) or any(new)
        return receipt if seen is None or entered is None else self._with_fabric(receipt, seen, entered)

    def _with_fabric(self, receipt: Receipt, seen: Sighting, entered: Seen) -> Receipt:
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

    def _save_placements(self) -> tuple[str, ...]:
        cluster, orders = self.intake.cluster, self.intake.placements
        if cluster is None or not orders:
            return ()
        content, fabric = self._fabric(cluster, self.intake.observed_at or FOREVER)
        saved = []
        for order in orders:
            record = PlacementRecord(
                cluster=cluster, content=content, placement=order.on(fabric), code_version=code_version()
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
        hosts, warnings = seat(intake.layouts, fabric)
        self.new_layouts = save_layouts(
            self.transaction, cluster, hosts, intake.layouts, intake.observed_at, seq
        )
        self.warnings += warnings

    def record(self, receipt: Receipt, attempt: Attempt) -> None:
        """Remember this run, and what it added."""
        outcome = SAVED if self.changed else UNCHANGED
        seconds = (datetime.now(UTC) - attempt.started_at).total_seconds()
        run = record_run(
            self.transaction,
            attempt,
            outcome,
            seconds=seconds,
            jobs=receipt.jobs,
            snapshot=receipt.snapshot or "",
            routing=receipt.routing or "",
            profiles=receipt.profiles,
        )
        if self.observation is not None:
            self.transaction.run(_RECORDED_OBSERVATION, run=run, observation=self.observation)
        self.transaction.run_columns(_RECORDED_PROFILES, {"id": sorted(set(self.new_profiles))}, run=run)
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
