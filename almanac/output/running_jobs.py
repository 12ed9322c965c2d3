"""JSON of running jobs: congestion, what-if and advice for a cluster.

Texts about running jobs: headings, links with their users, jobs that could not be included.

The screen of ``almanac today``: at most 40 lines of 80 columns, and the best action.

JSON of ports: errors, utilisation and jobs.
"""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from almanac.output.placements import compared_metrics_to_json, link_to_json
from almanac.output.printing import attributes, finite, note, renamed, time_text, visible
from almanac.output.stored_data import changes_to_json, findings_to_json
from registry import units

if TYPE_CHECKING:
    from mapping.checks.finding import Finding
    from mapping.questions.advise import Advised
    from mapping.questions.circuits import JobsOnSwitch
    from mapping.questions.live import Live
    from mapping.questions.today import SlowedJob, Today
    from mapping.traffic.job_loads import RankPairs
    from mapping.traffic.ports import ErrorGrowth, PortTable, PortUse
    from mapping.traffic.shared_load import HotLink, LinkUser, SharedLoad
    from mapping.traffic.what_if import WhatIf
    from registry.store.ingest_runs import RunInfo
    from registry.store.running_jobs import StoredAdvice


CONVENTION = (
    "Times of links: each job is assumed to send its profile once per iteration, all at the same pace."
)
MAX_NAMED_JOBS = 8
"""Maximum number of jobs that a note lists by name."""


def note_omitted_jobs(live: Live | JobsOnSwitch) -> None:
    """Print on standard error which running jobs are not included, why, and what to do about it."""
    cluster, when = live.running.snapshot.cluster, units.moment_text(live.running.at)
    if not live.running.jobs:
        note(
            f"no running jobs known on {cluster} at {when}: load the output of `scontrol show jobs -d` or "
            f"`squeue` with `almanac ingest --cluster {cluster} FILE`"
        )
        return
    if live.without_profile:
        count, total = len(live.without_profile), len(live.running.jobs)
        note(
            f"no traffic is known of {count} of {total} running jobs, which have no profile: "
            f"{_listed([one.stored.job.id for one in live.without_profile])}; attach one with "
            "`almanac job attach JOB PROFILE`"
        )
    for one in live.unloaded:
        note(f"job {one.job.stored.job.id} is not included: {one.reason}")


def heading(live: Live) -> str:
    """Return one line with cluster, time, number of jobs and routing."""
    traffic = f"{len(live.shared)} of {len(live.running.jobs)} running jobs with traffic"
    when = units.moment_text(live.running.at)
    return f"{live.running.snapshot.cluster} at {when}: {traffic}; routing: {live.routing}"


def link_name(live: Live, link: HotLink) -> str:
    """Return a link as ``--link`` accepts it: ``DEVICE:PORT``."""
    from mapping.traffic.names import link_text

    return link_text(live.fabric, link.row)


def users_text(link: HotLink, profiles: Mapping[str, str], most: int = 3) -> str:
    """Return the jobs with the largest parts of a link's traffic, with the names of their profiles by job."""
    shown = [f"{user.job} {_owner(user, profiles)}{user.part:.0%}" for user in link.users[:most]]
    rest = len(link.users) - most
    return ", ".join(shown) + (f", {rest} more" if rest > 0 else "")


def profile_names(live: Live) -> dict[str, str]:
    """Return the name that was given to the profile of each running job; empty without a profile."""
    return {one.stored.job.id: one.stored.profile_name for one in live.running.jobs}


def _owner(user: LinkUser, profiles: Mapping[str, str]) -> str:
    words = " ".join(word for word in (user.user, profiles[user.job]) if word)
    return f"({words}) " if words else ""


def _listed(jobs: list[str]) -> str:
    return ", ".join(jobs[:MAX_NAMED_JOBS]) + (", ..." if len(jobs) > MAX_NAMED_JOBS else "")


WIDTH = 80
LINES = 2
"""Lines of an entry; longer ones are cut."""
CHANGED, BROKEN, DATA, SLOWED = 6, 9, 5, 8
"""Lines of each section, without the one that counts what is left out."""
ID = 16
"""Characters of an id: enough to find the record by its beginning."""
LAUNCHER = "openmpi-rankfile"
COLLECTOR_FAILED = "CommandFailed"
"""Kind of the error that `almanac serve` records if a collector fails."""


WRONG_CLUSTER = "WrongCluster"
PASSING = ("DatabaseError", "DatabaseUnavailable", "InconsistentGraph")
"""Kinds of errors after which the same command can succeed."""


class Action(NamedTuple):
    """What to do next: the reason, and the command."""

    reason: str
    command: str


def best_action(today: Today) -> Action | None:
    """Return the most urgent action that the stored data support; None if there is nothing to do.

    In this order: problems that disconnect hosts, data that are missing, what vanished, a better placement,
    other problems of the fabric, a search for better placements.
    """
    cluster = shlex.quote(today.cluster)
    worst = [one for one in today.findings if str(one.severity) != "note"]
    if worst and str(worst[0].severity) == "error":
        return _look_at(worst[0], cluster)
    run = next((run for run in today.failed if not today.sources.keys().isdisjoint(run.formats)), None)
    if run is not None:
        return _repeat(run, cluster)
    if not today.scanned:
        command = f"ibnetdiscover | almanac ingest --cluster {cluster} -"
        return Action(f"scan the fabric, the last scan is of {_last_scan(today)}:", command)
    missed = next((one for one in worst if one.check == "vanished"), None)
    if missed is not None:
        return _look_at(missed, cluster)
    if today.advice:
        best = today.advice[0]
        reason = (
            f"job {best.job}: with {best.moved} ranks moved its worst link is {best.gain:.2f} times less "
            "busy; the file for its next start:"
        )
        target = shlex.quote(f"rankfile.{best.job}")
        proposed = (best.proposed or "")[:ID]
        return Action(reason, f"almanac export {proposed} {LAUNCHER}={target}")
    if worst:
        return _look_at(worst[0], cluster)
    if today.slowed and today.advised < len(today.live.shared):
        return Action("search better placements of the running jobs:", f"almanac advise jobs {cluster}")
    return None


def _repeat(run: RunInfo, cluster: str) -> Action:
    """Return the action after a failed ingest.

    It is repeated only if that can help: one of its files was changed since, or the database failed.
    """
    if run.error_kind == COLLECTOR_FAILED:
        reason = f"repair the collector {', '.join(run.files)} of almanac serve: {run.error}"
        return Action(reason, "almanac serve --check")
    reason = f"an ingest failed: {run.error}"
    command = f"almanac ingest --cluster {cluster} {shlex.join(run.files[:3])}"
    paths = [Path(file) for file in run.files]
    if all(path.exists() for path in paths):
        if run.error_kind == WRONG_CLUSTER:
            return Action(f"{reason}; if it is another cluster, dismiss the failure:", _dismiss(run))
        if run.error_kind in PASSING or max(path.stat().st_mtime for path in paths) > run.at.timestamp():
            return Action(reason, command)
        return Action(f"{reason}; repair the file and ingest it, or dismiss the failure:", _dismiss(run))
    return Action(f"{reason}; its files are gone, so dismiss the failure:", _dismiss(run))


def _dismiss(run: RunInfo) -> str:
    return f"almanac ingest-run delete {run.id[:ID]}"


def _look_at(finding: Finding, cluster: str) -> Action:
    command = finding.remedy or f"almanac cluster check {cluster} --only {finding.check} --all"
    reason = finding.text if finding.remedy else f"look at {finding.subject} ({finding.heading})"
    return Action(reason, command)


def today_lines(today: Today) -> list[str]:
    """Return the lines of the screen."""
    cluster = shlex.quote(today.cluster)
    when = f"{units.moment_text(today.at)}, since {units.moment_text(today.since)}"
    action = best_action(today)
    lines = _entry(f"{today.cluster} at {when}", "", most=1)
    lines += ["", *_section("Changed", _changes(today), _changes_command(today), CHANGED)]
    lines += ["", *_section("Broken", _findings(today.findings), f"almanac cluster check {cluster}", BROKEN)]
    lines += _section("Data", list(_sources(today)), "almanac doctor", DATA)
    lines += ["", *_section("Slowed jobs", list(_jobs(today)), f"almanac congestion {cluster}", SLOWED)]
    if action is None:
        lines += ["", "Best action: none; nothing needs attention"]
    else:
        lines += ["", *_entry(f"Best action: {action.reason}", ""), f"  {visible(action.command)}"]
    return lines


def _changes_command(today: Today) -> str:
    """Return the command that prints all changes, from the first scan if none is from before the period."""
    first = None if today.changes is None else today.changes.start
    since = today.since.replace(microsecond=0)
    start = since if first is None or first < since else first
    return f"almanac cluster changes {shlex.quote(today.cluster)} --from {time_text(start)}"


def _section(title: str, entries: Sequence[str], command: str, most: int) -> list[str]:
    """Return a heading with its summary (the first entry), what fits, and the command for the rest."""
    lines = _entry(f"{title}: {entries[0]}", "")
    for number, text in enumerate(entries[1:], start=1):
        block = _entry(text, "  ")
        if len(lines) + len(block) > most:
            return [*lines, f"  and {len(entries) - number:,} more: {visible(command)}"]
        lines += block
    return lines


def _entry(text: str, indent: str, most: int = LINES) -> list[str]:
    """Return a text in at most so many lines."""
    return textwrap.wrap(
        visible(text).replace("\n", " "),
        WIDTH,
        initial_indent=indent,
        subsequent_indent="    ",
        max_lines=most,
        placeholder=" ...",
        break_on_hyphens=False,
    )


def _changes(today: Today) -> list[str]:
    from registry.store.changes import in_words, summary

    if not today.scanned:
        return [f"unknown, no scan since then; the last one is of {_last_scan(today)}"]
    if today.changes is None:
        return ["unknown, there is no earlier scan"]
    first = today.changes.start
    since = f"since the first scan, of {units.moment_text(first)}: " if first and first > today.since else ""
    return [since + summary(today.changes), *in_words(today.changes)]


def _findings(findings: Sequence[Finding]) -> list[str]:
    """Return the numbers of findings, then those of each check with the first one.

    Notes are only counted if there is anything worse.
    """
    severities = Counter(str(one.severity) for one in findings)
    numbers = [units.counted(count, name) for name, count in severities.items()]
    lines = [", ".join(numbers) or "no problems found"]
    for (severity, heading), group in groupby(findings, key=lambda one: (str(one.severity), one.heading)):
        first, *others = group
        if severity != "note" or len(severities) == 1:
            lines.append(f"{severity}, {heading} ({1 + len(others):,}): {first.text}")
    return lines


def _sources(today: Today) -> Iterator[str]:
    """Yield the number of problems with the data, then each."""
    count = len(today.failed)
    failed = f"{units.counted(count, 'ingest')} failed" if count else "no ingest failed"
    yield failed + (
        f", {units.counted(len(today.sources), 'source')} stale or failing" if today.sources else ""
    )
    for name, one in today.sources.items():
        yield f"{name}: {one.words}"


def _jobs(today: Today) -> Iterator[str]:
    """Yield how many jobs are slowed, each of them, and what is not known."""
    live = today.live
    running = len(live.running.jobs)
    if not running:
        yield "no running jobs are known"
        return
    unknown = len(live.without_profile) + len(live.unloaded)
    lacking = f"; nothing is known of {unknown:,} without a profile or placement" if unknown else ""
    missing = "" if today.advised or not len(live.shared) else "; no advice computed"
    judged = running - unknown - today.unjudged
    if today.unjudged and not judged:
        slowed = f"unknown for {today.unjudged:,} of {running:,} running jobs"
    else:
        slowed = f"{len(today.slowed):,} of {running:,} running jobs"
        slowed += f", unknown for {today.unjudged:,}" if today.unjudged else ""
    yield f"{slowed}{lacking}{missing}"
    if today.unjudged:
        yield "unknown without the time of an iteration: almanac job attach JOB PROFILE --iteration-seconds"
    for one in today.slowed:
        yield _slowed_text(today, one)


def _slowed_text(today: Today, one: SlowedJob) -> str:
    profile = today.live.job(one.load.job).stored.profile_name or one.load.application
    owner = ", ".join(word for word in (one.load.user, profile) if word)
    others = [user.job for user in one.link.users if user.job != one.load.job]
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    gain = next((f"; advice gains {own.gain:.2f}" for own in today.advice if own.job == one.load.job), "")
    return (
        f"job {one.load.job}{f' ({owner})' if owner else ''}: an iteration takes {one.slowdown:.2f} times as "
        f"long as alone: {link_name(today.live, one.link)}, with job {', '.join(others[:3])}{more}{gain}"
    )


def _last_scan(today: Today) -> str:
    return units.moment_text(today.live.running.snapshot.observed_at)


USER_KEYS = ("job", "user", "application", "bytes", "part")
"""Attributes of a job's part of a link's traffic."""


def fabric_to_json(live: Live | JobsOnSwitch) -> dict[str, Any]:
    """Return the keys that name the fabric and its time."""
    snapshot = live.running.snapshot
    return {
        "cluster": snapshot.cluster,
        "at": live.running.at,
        "snapshot": snapshot.id,
        "observed_at": snapshot.observed_at,
    }


def omitted_jobs_to_json(live: Live | JobsOnSwitch) -> dict[str, Any]:
    """Return the number of running jobs, and those that are not included."""
    return {
        "running_job_count": len(live.running.jobs),
        "without_profile": [one.stored.job.id for one in live.without_profile],
        "left_out": [{"job": one.job.stored.job.id, "reason": one.reason} for one in live.unloaded],
    }


def heading_to_json(live: Live) -> dict[str, Any]:
    """Return the first keys of a document on running jobs."""
    return {
        **fabric_to_json(live),
        "routing": live.routing,
        "rails": live.costs.rails,
        **omitted_jobs_to_json(live),
    }


def congestion_to_json(
    live: Live, links: Sequence[HotLink], pairs: Mapping[str, RankPairs] | None, top: int
) -> dict[str, Any]:
    """Return the document of ``almanac congestion``.

    Args:
        links: Links to list.
        pairs: Pairs of ranks on the one link that was asked for, by job.
        top: Maximum number of pairs of ranks.
    """
    worst, profiles = live.shared.worst_shared_link(), profile_names(live)
    return {
        **heading_to_json(live),
        "evaluated": list(live.evaluated),
        "links": [_link(link, link_name(live, link), profiles) for link in links],
        "jobs": slowdowns_to_json(live),
        "worst_pair": None if worst is None else _pair(worst, link_name(live, worst), profiles),
        **({} if pairs is None else {"rank_pairs": rank_pairs_to_json(pairs, top)}),
    }


def slowdowns_to_json(live: Live) -> list[dict[str, Any]]:
    """Return the jobs with traffic, largest slowdown first, and last those whose slowdown is unknown."""
    from mapping.traffic.names import link_text
    from mapping.traffic.shared_load import interference

    found, profiles = interference(live.shared), profile_names(live)
    seconds = zip(found.alone_seconds.tolist(), found.together_seconds.tolist(), strict=True)
    links = zip(found.worst_link.tolist(), found.share.tolist(), strict=True)
    rows = [
        {
            **attributes(load, "job", "user", "application"),
            "profile": profiles[load.job],
            "placement": load.placement or None,
            "iteration_seconds": load.iteration_seconds,
            "iteration_from": load.iteration_from or None,
            "alone_seconds": alone,
            "together_seconds": finite(together),
            "slowdown": finite(slowdown),
            "link": None if row < 0 else link_text(live.fabric, row),
            "share": share,
        }
        for load, (alone, together), slowdown, (row, share) in zip(
            live.shared.jobs, seconds, found.slowdowns.tolist(), links, strict=True
        )
    ]
    return sorted(rows, key=lambda row: -(row["slowdown"] or 0.0))


def rank_pairs_to_json(pairs: Mapping[str, RankPairs], top: int) -> list[dict[str, Any]]:
    """Return the pairs of ranks of all jobs, most bytes first."""
    rows = [
        {"job": job, "sender": sender, "receiver": receiver, "bytes": size}
        for job, found in pairs.items()
        for sender, receiver, size in zip(
            found.sender.tolist(), found.receiver.tolist(), found.bytes.tolist(), strict=True
        )
    ]
    return sorted(rows, key=lambda row: -row["bytes"])[:top]


def what_if_to_json(live: Live, found: WhatIf, top: int) -> dict[str, Any]:
    """Return the document of ``almanac whatif``, with at most `top` links."""
    return {
        **heading_to_json(live),
        "routing_after": found.rule,
        "change": asdict(found.change),
        "before": totals_to_json(found.before),
        "unchanged": totals_to_json(found.unchanged),
        "after": totals_to_json(found.after),
        "links": changed_links_to_json(found, profile_names(live), top),
        "jobs": [asdict(one) for one in found.jobs_by_effect()],
    }


def totals_to_json(shared: SharedLoad) -> dict[str, float]:
    """Return the congestion of all links, and of those between switches."""
    seconds, inner = shared.seconds, shared.fabric.network_link
    return {
        "congestion_seconds": float(seconds.max(initial=0.0)),
        "network_congestion_seconds": float(seconds[inner].max(initial=0.0)),
    }


def changed_links_to_json(found: WhatIf, profiles: Mapping[str, str], top: int) -> list[dict[str, Any]]:
    """Return the busiest links after the change, with their times before and with the new routing only."""
    from mapping.traffic.names import link_text

    before, unchanged = found.before.seconds, found.unchanged.seconds
    rows = []
    for link in found.after.hottest(top):
        old_row = int(found.row_before[link.row])
        fields = _link(link, link_text(found.after.fabric, link.row), profiles)
        sides = {"before_seconds": before, "unchanged_seconds": unchanged}
        rows.append(
            {**fields, **{key: None if old_row < 0 else float(side[old_row]) for key, side in sides.items()}}
        )
    return rows


def cluster_advice_to_json(live: Live, advised: Sequence[Advised], complete: bool) -> dict[str, Any]:
    """Return the document of ``almanac advise jobs``."""
    profiles = profile_names(live)
    return {
        **heading_to_json(live),
        "complete": complete,
        "jobs": [_advised(one, profiles) for one in advised],
    }


def today_to_json(today: Today) -> dict[str, Any]:
    """Return the document of ``almanac today``."""
    action, slowed = best_action(today), {one.load.job: one.link for one in today.slowed}
    return {
        **heading_to_json(today.live),
        "at": today.at,
        "since": today.since,
        "changes": None if today.changes is None else changes_to_json(today.cluster, today.changes),
        "findings": findings_to_json(today.findings),
        "sources": [
            {"name": name, "state": one.state, "seen": one.words} for name, one in today.sources.items()
        ],
        "failed_runs": [attributes(run, "at", "files", "error") for run in today.failed],
        "jobs": [
            {**row, "link": link_name(today.live, slowed[row["job"]])}
            for row in slowdowns_to_json(today.live)
            if row["job"] in slowed
        ],
        "advice": [
            {
                **attributes(one, "job", "at"),
                "present_placement": one.present,
                "proposed_placement": one.proposed,
                **attributes(one, "gain", "moved"),
            }
            for one in today.advice
        ],
        "action": None if action is None else action._asdict(),
    }


def stored_advice_to_json(advice: StoredAdvice) -> dict[str, Any]:
    """Return saved advice with the keys of ``almanac advise jobs``, and its time."""
    fields = renamed(advice, present="present_placement", proposed="proposed_placement")
    del fields["cluster"], fields["id"]
    return {**fields, "gain": advice.gain}


def _advised(one: Advised, profiles: Mapping[str, str]) -> dict[str, Any]:
    fields = renamed(one.advice, present="present_placement", proposed="proposed_placement")
    del fields["cluster"], fields["at"]
    return {
        **fields,
        "user": one.user,
        "application": one.application,
        "profile": profiles[one.advice.job],
        "gain": one.advice.gain,
        "present_metrics": compared_metrics_to_json(one.before),
        "proposed_metrics": compared_metrics_to_json(one.after),
    }


def _link(link: HotLink, name: str, profiles: Mapping[str, str]) -> dict[str, Any]:
    users = [_user(user, profiles) for user in link.users]
    return {"link": name, "network": link.network, **link_to_json(link.load), "users": users}


def _pair(link: HotLink, name: str, profiles: Mapping[str, str]) -> dict[str, Any]:
    first, second = (_user(user, profiles) for user in link.users[:2])
    return {"link": name, "first": first, "second": second}


def _user(user: LinkUser, profiles: Mapping[str, str]) -> dict[str, Any]:
    return {**attributes(user, *USER_KEYS), "profile": profiles[user.job]}


SHARES = (
    *("sent_share", "received_share", "estimated_sent_share", "estimated_received_share"),
    *("estimated_sent_seconds", "estimated_received_seconds", "sent_bytes", "received_bytes"),
)
"""Attributes of a port that are null if unknown."""


def ports_to_json(live: Live, table: PortTable, top: int) -> dict[str, Any]:
    """Return the document of ``almanac ports``, with at most `top` ports."""
    errors, rates = table.errors, table.rates
    total = table.is_since_reset
    return {
        **heading_to_json(live),
        "errors_since": None if errors is None or total else errors.grown.start,
        "errors_until": None if errors is None else errors.grown.end,
        "use_since": None if rates is None else rates.start,
        "use_until": None if rates is None else rates.end,
        "since_reset": total,
        "counted": 0 if errors is None else len(errors.grown),
        "with_errors": 0 if errors is None else int((errors.amount > 0).any(axis=1).sum()),
        "over_limit": 0 if errors is None or total else int(errors.over.any(axis=1).sum()),
        "ports": [_port(port, total=total) for port in table.top(top)],
    }


def _port(port: PortUse, *, total: bool) -> dict[str, Any]:
    return {
        "link": port.name,
        "to": port.to or None,
        **attributes(port, "device", "port"),
        "errors": {error.counter: _error(error, total=total) for error in port.errors},
        **{name: finite(getattr(port, name)) for name in SHARES},
        **attributes(port, "at_least"),
        "job_ids": list(port.jobs),
    }


def _error(error: ErrorGrowth, *, total: bool) -> dict[str, Any]:
    rate, limit = (None, None) if total else (error.per_hour, finite(error.limit))
    fields = attributes(error, "growth", "at_least", "saturated")
    return {**fields, "per_hour": rate, "error_limit": limit}
