"""Saving the result of one ingest in one transaction: what `Registry.save` does.

A failure leaves the registry unchanged, with one exception: very many jobs are saved in batches, and the
batches after the first have transactions of their own. All that the files can be wrong about is checked in
the first transaction, including the hosts of all jobs. If a later transaction fails (the server is gone, the
user interrupts), some jobs are saved and others are not, no successful run is recorded, and the same ingest
again adds the missing jobs.

Hosts and devices in the data of an ingest that the fabric lacks: one rule for all kinds of data.

What is known is saved, and a warning counts and names the rest. The data are rejected if nothing of them is
known, since they are probably of another cluster, or if the caller wants that (`Intake.strict`).

The kinds of data that an ingest can hold: how each is merged, saved and described.

A kind is one attribute of `registry.model.intake.IngestedData` and one row of `KINDS` with the same name. To
add a kind: add the attribute, and here its functions and its row. Parsers then set the attribute, and the
pipeline, the registry and the command line handle the kind by its row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from registry.database.bulk_writes import ProgressTransaction
from registry.database.driver import Database, Transaction
from registry.database.stored_kinds import Join
from registry.errors import AlmanacError, InputError, UnknownName
from registry.model import CounterSweep, Fabric, HostOrder, IntendedWiring, Job, Trace, join_wiring
from registry.model.host_names import doubtful, same_hosts
from registry.model.hosts import HostLayout
from registry.model.intake import Intake, Receipt, Saved
from registry.progress import Progress
from registry.store.allocations import join_new_hosts, known_hosts, unknown_host, unseen_hosts
from registry.store.counters import Retention, roll_up, save_sweep
from registry.store.ingest_runs import RUN, SAVED, UNCHANGED, Attempt, RunResult, record_run
from registry.store.intended import replaced_cables, save_wiring
from registry.store.jobs import batches, save_jobs
from registry.store.layouts import match_hosts, save_layouts
from registry.store.observations import ObservationDraft, fabric_valid_at, lock_cluster, save_observation
from registry.store.placement_rows import PRESENT, PlacementRecord
from registry.store.placements import save_placement
from registry.store.profiles import save_profile, save_trace
from registry.store.timeline import FOREVER, content_as_of
from registry.units import code_version, counted, moment_text

NAMES_SHOWN = 5
"""Names that a warning lists."""

Data = TypeVar("Data")


class Known(NamedTuple, Generic[Data]):
    """The data that can be saved, the names of all that the fabric lacks, and warnings about those."""

    data: Data
    unknown: tuple[str, ...]
    warnings: tuple[str, ...]


def warn_or_reject(
    unknown: Sequence[str], text: str, *, reject: bool, error: Callable[[], AlmanacError]
) -> tuple[str, ...]:
    """Return the warning about unknown names; none if all names are known.

    Args:
        text: Text of the warning.
        reject: True to raise the error instead.
    """
    if unknown and reject:
        raise error()
    return (f"{text} (--strict rejects the files)",) if unknown else ()


def first_names(names: Sequence[str]) -> str:
    """Return the first names and the number of the others."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{more}"


def known_placements(
    orders: Sequence[HostOrder], fabric: Fabric, *, strict: bool
) -> Known[tuple[HostOrder, ...]]:
    """Return the placements with all ranks on hosts of the fabric.

    A placement is stored by vertices of a fabric and compared by the cost of all its ranks, so that one
    without the hosts of some ranks is of no use.
    """
    hosts = {fabric.names[vertex] for vertex in fabric.hosts.tolist()}
    same = {order: same_hosts(order.hosts, hosts) for order in orders}
    lacking = {order: set(order.hosts) - same[order].keys() for order in orders}
    placed = tuple(order for order in orders if not lacking[order])
    left_out = [order for order in orders if lacking[order]]
    unknown = tuple(sorted(set().union(*lacking.values())))
    warnings = warn_or_reject(
        unknown,
        f"{len(left_out)} of {len(orders)} placements have ranks on hosts that the fabric lacks and are not "
        f"saved: {first_names([order.name for order in left_out])}; hosts: {first_names(unknown)}",
        reject=strict or not placed,
        error=lambda: UnknownName("host", unknown[0], sorted(hosts), path=left_out[0].name or None),
    )
    taken = {name: host for order in placed for name, host in same[order].items()}
    return Known(placed, unknown, (*doubtful(taken), *warnings))


def known_layouts(
    layouts: Sequence[HostLayout], fabric: Fabric, *, strict: bool
) -> Known[dict[str, HostLayout]]:
    """Return the layouts of hosts of the fabric, by host."""
    match = match_hosts(layouts, fabric)
    unknown = tuple(error.name for error in match.unknown)
    warnings = warn_or_reject(
        unknown,
        f"{len(unknown)} of {len(layouts)} layouts are of hosts that the fabric lacks and are not saved: "
        f"{first_names(unknown)}",
        reject=strict or not match.known,
        error=lambda: match.unknown[0],
    )
    return Known(match.known, unknown, (*match.warnings, *warnings))


def known_sweeps(
    sweeps: Sequence[CounterSweep], fabric_at: Callable[[datetime], Fabric], *, strict: bool
) -> Known[tuple[CounterSweep, ...]]:
    """Return the sweeps that have a device of the fabric, by time, with GUIDs in place of LIDs.

    Ports of other devices are kept if they have a GUID, since a later scan may contain them. Without a GUID
    they are left out: LIDs are given to other devices in time.

    Args:
        fabric_at: Returns the fabric valid at a time.
    """
    known, devices, unknown = list[CounterSweep](), set[str](), dict[str, None]()
    for sweep in sorted(sweeps, key=lambda sweep: sweep.at):
        fabric = fabric_at(sweep.at)
        lacking = sweep.unknown_devices(fabric)
        unknown |= dict.fromkeys(lacking)
        devices.update(sweep.devices)
        if len(lacking) < len(sweep.devices) or not len(sweep):
            known.append(sweep.with_guids(fabric))
    names = tuple(unknown)
    without_guid = any(name.startswith("LID") for name in names)
    fate = "those with a LID only are left out" if without_guid else "they are saved by their GUIDs"
    if len(known) < len(sweeps):
        fate += f", as are {len(sweeps) - len(known)} of {len(sweeps)} sweeps without any known device"
    count = f"the fabric lacks {len(names)} of {len(devices)} devices with counters"
    warnings = warn_or_reject(
        names,
        f"{count}: {first_names(names)}; {fate}",
        reject=strict or not known,
        error=lambda: UnknownName(*names[0].split(), remedy=f"{count}: are these counters of this cluster?"),
    )
    return Known(tuple(known), names, warnings)


CLOCK_SKEW = timedelta(minutes=10)
"""Times further in the future than this get a warning."""

SAME_SWEEP = timedelta(minutes=1)
"""Sweeps at most this far apart are joined if they hold different counters."""


@dataclass(slots=True, kw_only=True)
class Saving:
    """One transaction that saves an intake."""

    transaction: Transaction
    intake: Intake
    observation: ObservationDraft | None
    """The intake's fabric and tables with their ids."""
    seq: int
    """Number of this writer among all writers of the cluster; 0 without a cluster."""
    moment: datetime
    """Time of saving, UTC."""
    progress: Progress
    receipt: Receipt
    """Result so far."""

    @property
    def cluster(self) -> str:
        """Name of the intake's cluster; the intake guarantees it for all kinds that need one."""
        return self.intake.cluster or ""

    def fabric(self, time: datetime) -> tuple[str, Fabric]:
        """See `fabric_valid_at`."""
        return fabric_valid_at(self.transaction, self.cluster, time)


Parts = Sequence[tuple[str, Any]]
"""The values of one kind from all sources, each with the path of its source."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of data that an ingest can hold."""

    name: str
    """Attribute of `IngestedData`."""
    merge: Callable[[Parts], Any]
    """Returns the intake's value from those of all sources (`Parts`)."""
    save: Callable[[Saving], Saved]
    """Saves the intake's value; called only if there is one."""
    describe: Callable[[Intake, Receipt | None], Iterable[str]]
    """Yields lines for people; without a receipt, what would be saved."""
    label: str = ""
    """Label of the stored nodes. The ingest run is linked to the new ones; empty: it is not."""


def describe(intake: Intake, receipt: Receipt | None) -> list[str]:
    """Return the lines that describe an ingest for people, kind by kind; no receipt after a dry run."""
    rows = {kind.name: kind for kind in KINDS}
    return [line for name in intake.kinds() for line in rows[name].describe(intake, receipt)]


def concatenated(parts: Parts) -> tuple[Any, ...]:
    """Return the values of all sources in one tuple."""
    return tuple(value for _, values in parts for value in values)


def only_one(what: str) -> Callable[[Parts], Any]:
    """Return a merge that accepts the value of one source and raises `InputError` for two."""

    def merge(parts: Parts) -> Any:
        given = [(path, value) for path, value in parts if value is not None]
        if len(given) > 1:
            reason = f"a second {what} in one ingest, the first is in {given[0][0]}: ingest them one by one"
            raise InputError(reason, path=given[1][0])
        return given[0][1] if given else None

    return merge


def _saved(rows: Sequence[tuple[str, bool]], **more: Any) -> Saved:
    """Return the result for things saved with their id and whether they are new."""
    new = tuple(identity for identity, is_new in rows if is_new)
    return Saved(ids=tuple(identity for identity, _ in rows), new_ids=new, new=len(new), **more)


def _save_observation(saving: Saving) -> Saved:
    """Save fabric and tables: together they are one observation."""
    seen = saving.observation
    if seen is None or saving.receipt.snapshot is not None:
        return Saved()
    counted = ProgressTransaction(saving.transaction, saving.progress, "saving the fabric")
    hosts = [] if seen.fabric is None else [seen.fabric.names[v] for v in seen.fabric.hosts.tolist()]
    new_hosts = unseen_hosts(saving.transaction, saving.cluster, hosts)
    entered = save_observation(counted, seen, saving.seq)
    join_new_hosts(saving.transaction, saving.cluster, new_hosts)
    counted.finish()
    saving.receipt = replace(
        saving.receipt,
        snapshot=entered.content,
        new_content=entered.new_content,
        new_observation=entered.new_observation,
        routing=None if seen.routing is None else seen.routing.id,
        new_routing=entered.new_routing,
        links_opened=entered.links_opened,
        links_closed=entered.links_closed,
        size="" if seen.fabric is None else seen.fabric.size,
    )
    return _saved([(entered.observation, entered.new_observation)], warnings=tuple(_hiding(saving, seen.at)))


def _hiding(saving: Saving, at: datetime) -> Iterator[str]:
    """Yield a warning for a scan of the future, and for one of now that a scan of the future hides."""
    if at > saving.moment + CLOCK_SKEW:
        yield (
            f"the scan of {moment_text(at)} is in the future and hides later ones until then: check the "
            "clocks, and delete it with `almanac observation delete`"
        )
        return
    last = content_as_of(saving.transaction, saving.cluster, FOREVER)
    if last is not None and last[0] > at > saving.moment - CLOCK_SKEW:
        yield (
            f"this scan of {moment_text(at)} is not the latest, as one of {moment_text(last[0])} is stored: "
            "check the clocks of the machines that scan"
        )


def _describe_fabric(intake: Intake, receipt: Receipt | None) -> Iterator[str]:
    """Yield the size of the fabric, and what changed."""
    fabric = intake.fabric
    if fabric is None or intake.observed_at is None:
        return
    if receipt is None:
        news = ""
    elif not receipt.new_observation:
        news = "; already stored, nothing added"
    elif not receipt.new_content:
        news = "; wiring unchanged"
    else:
        news = f"; link directions: {receipt.links_opened} new, {receipt.links_closed} removed"
    size = (receipt and receipt.size) or fabric.size
    yield f"fabric of {intake.cluster} observed at {moment_text(intake.observed_at)}: {size}{news}"


def _describe_tables(intake: Intake, receipt: Receipt | None) -> Iterator[str]:
    if intake.tables is not None:
        known = "" if receipt is None or receipt.new_routing else " (already stored)"
        yield f"forwarding tables of {len(intake.tables.switch_guid)} switches{known}"


def join_sweeps(parts: Parts) -> tuple[CounterSweep, ...]:
    """Return the sweeps in order of time, those that complete each other joined.

    Tools print traffic and errors separately, port by port: such files are one sweep. Two files with the
    same counter of the same port are two sweeps, however close they are.
    """
    joined: list[CounterSweep] = []
    for sweep in sorted(concatenated(parts), key=lambda sweep: sweep.at):
        close = joined and sweep.at - joined[-1].at <= SAME_SWEEP
        both = joined[-1].joined(sweep) if close else None
        if both is None:
            joined.append(sweep)
        else:
            joined[-1] = both
    return tuple(joined)


def _save_counters(saving: Saving) -> Saved:
    """Save the sweeps of counters in order of time, then summarise old ones."""
    intake, rows = saving.intake, list[tuple[str, bool]]()
    known = known_sweeps(intake.counters, lambda time: saving.fabric(time)[1], strict=intake.strict)
    warnings = list(known.warnings)
    for number, sweep in enumerate(known.data):
        saving.progress("saving counters", number, len(known.data))
        origin = {"source": intake.source, "digest": intake.digest}
        rows.append(save_sweep(saving.transaction, saving.cluster, sweep, saving.seq, **origin))
        when = sweep.at.isoformat()
        if not rows[-1][0]:
            warnings.append(f"counters of {when} ignored: that time is already summarised by hours or days")
        elif sweep.at > saving.moment + CLOCK_SKEW:
            warnings.append(f"counters of {when} are in the future: check the clocks of both machines")
    saved = _saved(rows, warnings=tuple(warnings), unknown_devices=known.unknown)
    if saved.new:
        roll_up(saving.transaction, saving.cluster, saving.moment, Retention())
    return replace(saved, ids=tuple(identity for identity in saved.ids if identity))


def _describe_counters(intake: Intake, receipt: Receipt | None) -> Iterator[str]:
    for sweep in intake.counters:
        yield f"port counters of {len(sweep)} ports at {moment_text(sweep.at)}"
    if receipt is not None:
        yield f"{receipt.new('counters')} of {len(intake.counters)} sweeps of port counters are new"


def _merge_intended(parts: Parts) -> IntendedWiring | None:
    """Return one plan with the cables of all files; None if no file has one."""
    plans = [plan for _, plan in parts if plan is not None]
    return join_wiring(plans) if len(plans) > 1 else next(iter(plans), None)


def _save_intended(saving: Saving) -> Saved:
    """Save the intended wiring."""
    plan = saving.intake.intended
    if plan is None or plan.declared_at is None:
        return Saved()
    where, since, origin = (saving.transaction, saving.cluster), plan.declared_at, saving.intake.source
    before, lacking = replaced_cables(*where, plan, since)
    row = save_wiring(*where, plan, since, saving.seq, origin=origin)
    lost = (
        f"the intended wiring replaces one of {before:,} cables and lacks {lacking:,} of them: give all "
        "files of a plan in one call"
    )
    return _saved([row], warnings=(lost,) if 2 * lacking > before else ())


def _describe_intended(intake: Intake, receipt: Receipt | None) -> Iterator[str]:
    if intake.intended is not None:
        known = "" if receipt is None or receipt.new("intended") else " (already stored)"
        yield f"intended wiring of {len(intake.intended)} cables{known}"


def _save_layouts(saving: Saving) -> Saved:
    """Save the layouts of hosts, each under the host of the fabric that it belongs to."""
    layouts, time = saving.intake.layouts, saving.intake.observed_at
    if time is None:
        return Saved()
    saving.progress("saving layouts of hosts", 0, len(layouts))
    _, fabric = saving.fabric(time)
    known = known_layouts(layouts, fabric, strict=saving.intake.strict)
    new = save_layouts(saving.transaction, saving.cluster, known.data, time, saving.seq)
    return Saved(new=new, unknown_hosts=known.unknown, warnings=known.warnings)


def _describe_layouts(intake: Intake, receipt: Receipt | None) -> Iterator[str]:
    news = "" if receipt is None else f", {receipt.new('layouts')} new"
    yield f"{len(intake.layouts)} layouts of hosts read{news}"


def _save_profiles(saving: Saving) -> Saved:
    rows = []
    for number, profile in enumerate(saving.intake.profiles):
        saving.progress("saving profiles", number, len(saving.intake.profiles))
        rows.append(save_profile(saving.transaction, profile, saving.moment))
    return _saved(rows)


def _describe_profiles(intake: Intake, receipt: Receipt | None) -> Iterator[str]:
    for profile in intake.profiles:
        yield f"profile {profile.name} {'would be saved' if receipt is None else 'saved'}"


def _merge_traces(parts: Parts) -> tuple[Trace | None, ...]:
    """Return the trace of each profile; an empty tuple if no profile has one."""
    traces = concatenated(parts)
    return traces if any(trace is not None for trace in traces) else ()


def _save_traces(saving: Saving) -> Saved:
    """Save each trace under its profile, which is saved already."""
    pairs = zip(saving.receipt.ids("profiles"), saving.intake.traces, strict=True)
    return _saved(
        [
            save_trace(saving.transaction, profile, trace, saving.moment)
            for profile, trace in pairs
            if trace is not None
        ]
    )


def _describe_traces(intake: Intake, receipt: Receipt | None) -> Iterator[str]:
    if count := sum(trace is not None for trace in intake.traces):
        news = "" if receipt is None else f", {receipt.new('traces')} new"
        yield f"{counted(count, 'trace')} read{news}"


def _save_first_jobs(saving: Saving) -> Saved:
    """Save the first batch of the jobs, after checking the hosts of all of them."""
    jobs = saving.intake.jobs
    saving.progress("saving jobs", 0, len(jobs))
    hosts = {host for job in jobs for host in job.hosts}
    known = known_hosts(saving.transaction, saving.cluster, hosts)
    unknown = tuple(name for name in sorted(hosts) if name not in known)
    lacking = set(unknown)
    affected = sum(not lacking.isdisjoint(job.hosts) for job in jobs)
    lacks = f"the fabric lacks {len(unknown)} of the {len(hosts)} hosts of these jobs"
    warnings = warn_or_reject(
        unknown,
        f"{affected} of {len(jobs)} jobs ran on hosts that the fabric lacks: {first_names(unknown)}; the "
        "jobs are saved, without these hosts in the graph",
        reject=saving.intake.strict or len(unknown) == len(hosts),
        error=lambda: unknown_host(saving.transaction, saving.cluster, unknown[0], lacks),
    )
    time = saving.intake.observed_at or saving.moment
    new = save_jobs(saving.transaction, saving.cluster, batches(jobs)[0], time, saving.seq)
    return Saved(new=new, unknown_hosts=unknown, warnings=(*doubtful(known), *warnings))


def _describe_jobs(intake: Intake, receipt: Receipt | None) -> Iterator[str]:
    news = "" if receipt is None else f", {receipt.new('jobs')} new or changed"
    yield f"{counted(len(intake.jobs), 'job')} read{news}"


def _save_placements(saving: Saving) -> Saved:
    """Save the placements on the fabric valid at the time of the observation."""
    snapshot, fabric = saving.fabric(saving.intake.observed_at or FOREVER)
    known = known_placements(saving.intake.placements, fabric, strict=saving.intake.strict)
    rows = []
    for order in known.data:
        record = PlacementRecord(
            cluster=saving.cluster,
            content=snapshot,
            job=order.job or None,
            placement=order.on(fabric),
            code_version=code_version(),
            role=PRESENT,
        )
        rows.append(save_placement(saving.transaction, record, saving.moment))
    return _saved(rows, unknown_hosts=known.unknown, warnings=known.warnings)


def _describe_placements(intake: Intake, receipt: Receipt | None) -> Iterator[str]:
    if receipt is None:
        yield from (f"placement of {len(order.hosts)} ranks read" for order in intake.placements)
    else:
        yield from (f"placement {identity} saved" for identity in receipt.ids("placements"))


KINDS = (
    Kind("fabric", only_one("fabric"), _save_observation, _describe_fabric, "Observation"),
    Kind("tables", only_one("set of forwarding tables"), _save_observation, _describe_tables, "Observation"),
    Kind("profiles", concatenated, _save_profiles, _describe_profiles, "Profile"),
    Kind("traces", _merge_traces, _save_traces, _describe_traces, "Trace"),
    Kind("jobs", concatenated, _save_first_jobs, _describe_jobs),
    Kind("placements", concatenated, _save_placements, _describe_placements, "Placement"),
    Kind("counters", join_sweeps, _save_counters, _describe_counters, "CounterSweep"),
    Kind("intended", _merge_intended, _save_intended, _describe_intended, "IntendedWiring"),
    Kind("layouts", concatenated, _save_layouts, _describe_layouts),
)
"""All kinds, in the order of saving: fabrics first, since jobs, placements and counters need their hosts."""


def save_intake(
    database: Database, intake: Intake, seen: ObservationDraft | None, progress: Progress
) -> Receipt:
    """Save all data of an intake; see `registry.registry.Registry.save`.

    Args:
        seen: Fabric and tables with their ids, from `registry.store.observations.draft_observation`.
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
