"""The registry: one database with all that is known of fabrics, profiles, jobs and placements."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from registry.database import Database, Transaction
from registry.fabrics import Fabrics
from registry.intake import Intake, Receipt
from registry.jobs import Jobs, save_jobs
from registry.local.server import IDLE_SECONDS, ensure_server
from registry.placements import PlacementRecord, Placements, save_placement
from registry.profiles import Profiles, save_profile
from registry.progress import Progress, silent
from registry.schema import check_version, current_version, is_empty, migrate
from registry.version import code_version
from registry.wiring.observations import (
    Seen,
    Sighting,
    content_as_of,
    enter,
    no_fabric,
    read_content,
    sighting,
    take_cluster,
)
from registry.wiring.timeline import FOREVER

_CREATE_RUN = """
CREATE (r:IngestRun {id: $run, cluster: $cluster, at: $at, source: $source, files: $files,
                     digest: $digest, warnings: $warnings, jobs: $jobs, seconds: $seconds,
                     outcome: $outcome})
"""

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


class Registry:
    """An open registry; a context manager that closes its connections.

    Attributes
    ----------
    database : Database
    fabrics : Fabrics
    profiles : Profiles
    jobs : Jobs
    placements : Placements
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.fabrics = Fabrics(database)
        self.profiles = Profiles(database)
        self.jobs = Jobs(database)
        self.placements = Placements(database)

    @classmethod
    def open(
        cls,
        uri: str | None = None,
        *,
        user: str | None = None,
        password: str | None = None,
        name: str | None = None,
        home: Path | None = None,
        idle_seconds: float | None = None,
        progress: Progress = silent,
    ) -> Self:
        """Connect to a server, and make the schema where the database is empty.

        Parameters
        ----------
        uri : str, optional
            Bolt address of a server; the local one of this user, started on demand, unless told.
        user, password, name : str, optional
            Credentials and database of a server named by `uri`.
        home : Path, optional
            Data folder of the local server; see `default_home`.
        idle_seconds : float, optional
            How long the local server outlives its last use, where this call starts it.

        Raises
        ------
        DatabaseUnavailable
        SchemaVersionError
            The database holds a schema of another version.
        """
        if uri is None:
            address = ensure_server(
                default_home() if home is None else home,
                idle_seconds=IDLE_SECONDS if idle_seconds is None else idle_seconds,
                progress=progress,
            )
            uri, user, password, name = address.uri, address.user, address.password, address.name
        database = Database.connect(uri, user=user, password=password, name=name)
        try:
            if current_version(database) == 0 and is_empty(database):
                migrate(database)
            check_version(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def save(self, intake: Intake, progress: Progress = silent) -> Receipt:
        """Save all of an intake in one transaction, or nothing.

        What is there already adds nothing: an unchanged repeat leaves no trace, not even an
        ``IngestRun``.

        Raises
        ------
        UnknownName
            A job's or placement's host that the cluster does not have, or tables of a cluster of
            which no fabric was seen until then; with the closest names.
        """
        started = time.monotonic()
        moment = datetime.now(UTC)
        seen = sighting(intake)

        def work(transaction: Transaction) -> Receipt:
            saving = _Saving(transaction, intake, moment, progress)
            receipt = replace(saving.save(seen), seconds=time.monotonic() - started)
            if saving.changed:
                saving.record(receipt)
            return receipt

        return self.database.write(work)

    def close(self) -> None:
        """Close the connections; a local server goes on until it is idle."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def default_home() -> Path:
    """Data folder of this user's local server: ALMANAC_HOME, or else in the XDG data folder."""
    from platformdirs import user_data_path

    told = os.environ.get("ALMANAC_HOME")
    return Path(told).expanduser() if told else user_data_path("almanac")


@dataclass(slots=True)
class _Saving:
    """One attempt to save an intake."""

    transaction: Transaction
    intake: Intake
    moment: datetime
    progress: Progress
    changed: bool = False
    observation: str | None = None
    new_profiles: tuple[str, ...] = ()
    new_placements: tuple[str, ...] = ()

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
        receipt = Receipt(
            cluster=intake.cluster,
            profiles=profiles,
            new_profiles=len(self.new_profiles),
            jobs=jobs,
            placements=placements,
            warnings=intake.warnings,
        )
        self.changed = bool(jobs or self.new_profiles or self.new_placements)
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
        at = self.intake.observed_at or FOREVER
        # a launcher's file may be older than the first scan of its cluster
        found = content_as_of(self.transaction, cluster, at)
        found = found or content_as_of(self.transaction, cluster, FOREVER)
        fabric = None if found is None else read_content(self.transaction, found[1])
        if found is None or fabric is None:
            raise no_fabric(self.transaction, cluster, FOREVER)
        saved = []
        for order in orders:
            record = PlacementRecord(
                cluster=cluster, content=found[1], placement=order.on(fabric), code_version=code_version()
            )
            saved.append(save_placement(self.transaction, record, self.moment))
        self.new_placements = tuple(identity for identity, new in saved if new)
        return tuple(identity for identity, _ in saved)

    def record(self, receipt: Receipt) -> None:
        """Remember this run, and what it added."""
        intake, moment = self.intake, self.moment
        text = "\n".join((intake.cluster or "", intake.source, intake.digest, moment.isoformat()))
        run = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.transaction.run(
            _CREATE_RUN,
            run=run,
            cluster=intake.cluster or "",
            at=moment,
            source=intake.source,
            files=list(intake.files),
            digest=intake.digest,
            warnings=list(intake.warnings),
            jobs=receipt.jobs,
            seconds=receipt.seconds,
            outcome="saved",
        )
        if self.observation is not None:
            self.transaction.run(_RECORDED_OBSERVATION, run=run, observation=self.observation)
        self.transaction.run_columns(_RECORDED_PROFILES, {"id": sorted(set(self.new_profiles))}, run=run)
        self.transaction.run_columns(_RECORDED_PLACEMENTS, {"id": sorted(set(self.new_placements))}, run=run)
