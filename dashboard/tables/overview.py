"""Lists of the overview: busiest links, jobs to act on, events of a day. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from dashboard.state.viewer import OTHERS, Viewer
from mapping.checks.finding import Finding, Severity
from mapping.traffic.job_loads import Regression
from mapping.traffic.names import link_text, short_link, short_names, shortened
from mapping.traffic.shared_load import HotLink, SharedLoad
from registry.model import Floats
from registry.store.changes import Changes, in_words
from registry.store.ingest_runs import FAILING, NO_ALARM, SourceState, freshness
from registry.store.running_jobs import RunningJob
from registry.units import counted

NOT_ATTRIBUTED = "not attributed"
"""Owners of a link on which no running job is known to send."""


class BusyLink(NamedTuple):
    """A link with its load.

    Attributes
    ----------
    row : int
        Row of ``fabric.links``.
    short, full : str
        Both ends by short names; name for the address and for commands.
    part : float
        Utilisation if it is known, else time over that of the busiest link, 0 to 1.
    seconds : float
        Estimated time of the link per iteration.
    jobs : str
        Jobs that send over it, most bytes first.
    """

    row: int
    short: str
    full: str
    part: float
    seconds: float
    jobs: str


def busiest_links(shared: SharedLoad, share: Floats | None, count: int, viewer: Viewer) -> list[BusyLink]:
    """Return the links with the highest utilisation, or estimated time if no utilisation is given.

    Parameters
    ----------
    share : float64[m] or None
        Utilisation of each link, NaN if unknown.
    """
    fabric, seconds = shared.fabric, shared.seconds
    names = short_names(fabric)
    part = seconds / max(float(seconds.max(initial=0.0)), np.finfo(float).tiny) if share is None else share
    rows = np.argsort(-np.nan_to_num(part), kind="stable")[:count]
    rows = rows[np.nan_to_num(part[rows]) > 0]
    return [
        BusyLink(
            row=link.row,
            short=short_link(fabric, link.row, names),
            full=link_text(fabric, link.row),
            part=float(part[link.row]),
            seconds=link.load.seconds,
            jobs=_owners(link, viewer),
        )
        for link in shared.links(rows)
    ]


def _owners(link: HotLink, viewer: Viewer) -> str:
    """Return the jobs of a link as text; jobs that the viewer may not see are not named."""
    names = dict.fromkeys(user.job if viewer.sees(user.user) else OTHERS for user in link.users)
    return ", ".join(names) or NOT_ATTRIBUTED


@dataclass(frozen=True, slots=True, kw_only=True)
class JobToAct:
    """A running job, and what can be gained by placing it again.

    Attributes
    ----------
    key : str
        ``CLUSTER/ID``.
    label : str
        Id, application and user.
    seconds : float or None
        Time of its worst link now, per iteration, with the traffic of other jobs; None if not searched.
    gain : float or None
        That time over the time with the better placement that was found; 1 if none was found; None if not
        searched.
    distance : float or None
        Time of its worst link alone over the certified lower bound for its hosts; None if unknown.
    moves : int
        Ranks that move to the better placement.
    profile : bool
        False if its traffic is not known.
    """

    key: str
    label: str
    seconds: float | None
    gain: float | None
    distance: float | None
    moves: int
    profile: bool


def jobs_to_act(jobs: Sequence[RunningJob], viewer: Viewer) -> list[JobToAct]:
    """Return the visible running jobs, largest gain first, then those not searched, then without profile."""
    listed = []
    for one in jobs:
        job, advice = one.stored.job, one.advice
        if not viewer.sees(job.user):
            continue
        parts = (job.id, one.application or job.name, viewer.name(job.user))
        listed.append(
            JobToAct(
                key=one.stored.id,
                label=" · ".join(part for part in parts if part),
                seconds=None if advice is None else advice.present_seconds,
                gain=None if advice is None else advice.gain,
                distance=_distance(one),
                moves=0 if advice is None else advice.moved,
                profile=one.stored.profile is not None,
            )
        )
    return sorted(listed, key=lambda one: (not one.profile, one.gain is None, -(one.gain or 0.0)))


def _distance(job: RunningJob) -> float | None:
    """Return how many times the best possible a running job's worst link takes, or None."""
    present = job.present
    if present is None or present.metrics is None or not present.bound_seconds:
        return None
    return present.metrics.congestion_seconds / present.bound_seconds


class Event(NamedTuple):
    """Something that happened or is wrong.

    Attributes
    ----------
    time : datetime or None
        When it happened or was seen first; None if that is not known.
    severity : Severity or None
        None if nothing is wrong.
    word, text : str
        Kind of the event, and its description.
    where : str
        ``changes``, ``fabric``, ``trends`` or ``data``: where it is shown.
    """

    time: datetime | None
    severity: Severity | None
    word: str
    text: str
    where: str


def events(
    findings: Sequence[Finding],
    regressions: Sequence[Regression],
    changes: Sequence[str],
    sources: Sequence[SourceState],
    now: datetime,
    scanned: datetime,
) -> list[Event]:
    """Return what needs attention, worst first: failed sources, findings, regressions, changes.

    Parameters
    ----------
    scanned : datetime
        Time of the scan that has the findings and the changes.
    """
    listed = [
        Event(scanned, one.severity, str(one.severity), shortened(one.text), "fabric")
        for one in sorted(findings, key=lambda one: -one.severity)
    ]
    for source in sources:
        state = freshness(source, now).state
        if state not in NO_ALARM:
            severity = Severity.ERROR if state == FAILING else Severity.WARNING
            text = f"{source.format or 'unknown format'}: {source.error or 'no new data'}"
            listed.append(Event(source.last_at, severity, state, text, "data"))
    for one in regressions:
        text = f"{one.application} {one.ratio / one.centre:.3g} times its usual distance from best"
        if one.changed:
            text += f": {', '.join(one.changed)}"
        listed.append(Event(one.recorded_at, Severity.WARNING, "regression", text, "trends"))
    listed += [Event(scanned, None, "changed", shortened(line), "changes") for line in changes]
    return sorted(listed, key=lambda one: -(one.severity or 0))


def changes_lines(changes: Changes, rerouted: bool) -> list[str]:
    """Return the changes as lines of text."""
    lines = in_words(changes)
    return [*lines, "the forwarding tables changed"] if rerouted and not changes.switches_rerouted else lines


def health(findings: Sequence[Finding]) -> tuple[Severity | None, str]:
    """Return the worst severity, or None without findings, and the numbers of errors and warnings."""
    count = {severity: sum(one.severity == severity for one in findings) for severity in Severity}
    named = [counted(count[one], str(one)) for one in reversed(Severity) if count[one]]
    worst = next((one for one in reversed(Severity) if count[one]), None)
    return worst, ", ".join(named) or "no findings"
