"""The screen of ``almanac today``: at most 40 lines of 80 columns, and the best action."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from almanac.output.printing import time_text, visible
from almanac.output.running_jobs import link_name
from registry import units
from registry.store.changes import in_words, summary

if TYPE_CHECKING:
    from mapping.checks.finding import Finding
    from mapping.questions.today import SlowedJob, Today
    from registry.store.ingest_runs import RunInfo

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
