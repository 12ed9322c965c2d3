"""Saving the result of one ingest in one transaction: what `Registry.save` does.

A failure leaves the registry unchanged, with one exception: very many jobs are saved in batches, and the
batches after the first have transactions of their own. All that the files can be wrong about is checked in
the first transaction, including the hosts of all jobs. If a later transaction fails (the server is gone, the
user interrupts), some jobs are saved and others are not, no successful run is recorded, and the same ingest
again adds the missing jobs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from registry.database.driver import Database, Transaction
from registry.database.record_store import Join
from registry.fabrics.observations import ObservationDraft, lock_cluster
from registry.ingest_runs.kinds import KINDS, Saving
from registry.ingest_runs.runs import RUN, SAVED, UNCHANGED, Attempt, RunResult, record_run
from registry.jobs.jobs import batches, save_jobs
from registry.model import Job
from registry.model.intake import Intake, Receipt, Saved
from registry.progress import Progress


def save_intake(
    database: Database, intake: Intake, seen: ObservationDraft | None, progress: Progress
) -> Receipt:
    """Save all data of an intake; see `registry.registry.Registry.save`.

    Parameters
    ----------
    seen : ObservationDraft or None
        Fabric and tables with their ids, from `registry.fabrics.observations.draft_observation`.
    """
    started, moment = time.monotonic(), datetime.now(UTC)
    attempt = attempt_of(intake, intake.started_at or moment)
    first, *others = batches(intake.jobs) or [()]

    def save_first(transaction: Transaction) -> Receipt:
        receipt = save_all(transaction, intake, seen, moment, progress)
        if not others:
            _record(transaction, intake, receipt, attempt)
        return receipt

    receipt = database.write(save_first)
    for number, batch in enumerate(others, start=1):

        def save_more(
            transaction: Transaction,
            before: Receipt = receipt,
            batch: Sequence[Job] = batch,
            last: bool = number == len(others),
        ) -> Receipt:
            after = _save_more_jobs(transaction, intake, before, batch, moment)
            if last:
                _record(transaction, intake, after, attempt)
            return after

        progress("saving jobs", sum(map(len, (first, *others[: number - 1]))), len(intake.jobs))
        receipt = database.write(save_more)
    if intake.jobs:
        progress("saving jobs", len(intake.jobs), len(intake.jobs))
    return replace(receipt, seconds=time.monotonic() - started)


def attempt_of(intake: Intake, started_at: datetime) -> Attempt:
    """Return the log entry of the ingest that read an intake."""
    return Attempt(
        started_at=started_at,
        begun=time.monotonic() if intake.begun is None else intake.begun,
        cluster=intake.cluster,
        formats=tuple(intake.source.split(", ")) if intake.source else (),
        files=intake.files,
        digest=intake.digest,
        key=intake.key,
        warnings=intake.warnings,
    )


def save_all(
    transaction: Transaction,
    intake: Intake,
    seen: ObservationDraft | None,
    moment: datetime,
    progress: Progress,
) -> Receipt:
    """Save all kinds of data of an intake; of the jobs only the first batch."""
    saving = Saving(
        transaction=transaction,
        intake=intake,
        observation=seen,
        seq=lock_cluster(transaction, intake.cluster) if intake.cluster else 0,
        moment=moment,
        progress=progress,
        receipt=Receipt(cluster=intake.cluster, warnings=intake.warnings),
    )
    present = intake.kinds()
    for kind in KINDS:
        if kind.name in present:
            saved = kind.save(saving)
            saving.receipt = replace(
                saving.receipt,
                saved={**saving.receipt.saved, kind.name: saved},
                warnings=(*saving.receipt.warnings, *saved.warnings),
            )
    return saving.receipt


def _save_more_jobs(
    transaction: Transaction, intake: Intake, receipt: Receipt, jobs: Sequence[Job], moment: datetime
) -> Receipt:
    """Save a later batch of the jobs and return the receipt with their number added."""
    cluster = intake.cluster or ""
    seq = lock_cluster(transaction, cluster)
    new = save_jobs(transaction, cluster, jobs, intake.observed_at or moment, seq)
    jobs_saved = replace(receipt.saved["jobs"], new=receipt.new("jobs") + new)
    return replace(receipt, saved={**receipt.saved, "jobs": jobs_saved})


def _record(transaction: Transaction, intake: Intake, receipt: Receipt, attempt: Attempt) -> None:
    """Record the run and link it to what it added, unless it read no files and changed nothing."""
    changed = any(saved.new for saved in receipt.saved.values())
    if not (changed or intake.files):
        return
    result = RunResult(
        outcome=SAVED if changed else UNCHANGED,
        seconds=attempt.seconds,
        jobs=receipt.new("jobs"),
        snapshot=receipt.snapshot or "",
        routing=receipt.routing or "",
        profiles=receipt.ids("profiles"),
        observed_at=intake.data_at,
    )
    if receipt.unknown_hosts or receipt.unknown_devices:
        attempt = replace(attempt, key="")  # the same files again are read again, and warned about
    run = record_run(transaction, attempt, result)
    for kind in KINDS:
        new = sorted(set(receipt.saved.get(kind.name, Saved()).new_ids))
        if kind.label and new:
            # a new counter sweep may be gone already: summarised by hours or days
            statement = RUN.join_statement(Join("RECORDED", kind.label))
            transaction.run_columns(statement, {"id": [run] * len(new), "other": new})
