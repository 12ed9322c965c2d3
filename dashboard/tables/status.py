"""Tables of the data sources and of the ingest runs. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from shlex import quote
from typing import NamedTuple

import pandas as pd

from dashboard.state.viewer import Viewer
from dashboard.tables.columns import in_utc
from registry import units
from registry.pages.ingests import Ingests
from registry.store.ingest_runs import (
    FAILING,
    FRESH,
    NEVER,
    NO_ALARM,
    NO_CLUSTER,
    OLD,
    STALE,
    RunInfo,
    SourceState,
    age_text,
    freshness,
)

SIGNS = {FRESH: "●", OLD: "◔", FAILING: "▲", NEVER: "▲", NO_CLUSTER: "○"}
"""Signs of the states of a source: shapes, so that no colour is needed."""
NO_DATA = "no data"
DAY_STATES = (FRESH, OLD, FAILING, NO_DATA)
"""States of a source on a day."""
MOST_FILES = 3
"""Maximum number of files in a command that reads a source again."""


class Attention(NamedTuple):
    """A source that needs attention.

    Attributes
    ----------
    state : str
        One of `registry.store.ingest_runs.STATES`.
    source : str
        Its format and cluster.
    cause : str
        What is wrong, in one line.
    command : str
        Command that reads it again.
    """

    state: str
    source: str
    cause: str
    command: str


def source_text(cluster: str, format: str) -> str:
    """Return the name of a source: ``sacct · hpc1``."""
    return " · ".join(part for part in (format or "unknown format", cluster) if part)


def attention(
    sources: Sequence[SourceState], runs: Sequence[RunInfo], now: datetime, viewer: Viewer
) -> list[Attention]:
    """Return the sources that need attention, failures first, then the oldest data.

    Parameters
    ----------
    runs : sequence of RunInfo
        Runs, newest first; the command names the files of the last run of the source.
    """
    found = []
    for source in sources:
        state, words = freshness(source, now)
        if state in NO_ALARM:
            continue
        last = next((run for run in runs if _is_of(run, source)), None)
        one = Attention(
            state,
            source_text(source.cluster, source.format),
            viewer.message(words),
            _again(source, last, viewer),
        )
        found.append(((state == OLD, -(source.age(now) or timedelta.max).total_seconds()), one))
    return [one for _, one in sorted(found)]


def _is_of(run: RunInfo, source: SourceState) -> bool:
    return run.cluster == source.cluster and source.format in (run.formats or ("",))


def _again(source: SourceState, last: RunInfo | None, viewer: Viewer) -> str:
    """Return the command that reads a source again, with the files of its last run if they are known."""
    known = () if last is None or viewer.only is not None else last.files
    files = [viewer.path(path) for path in known]
    named = [quote(path) for path in files[:MOST_FILES]] + (["..."] if len(files) > MOST_FILES else [])
    cluster = ["--cluster", quote(source.cluster)] if source.cluster else []
    return " ".join(["almanac", "ingest", *cluster, *(named or ["FILE"])])


def age_grid(found: Ingests, starts: Sequence[datetime], now: datetime) -> pd.DataFrame:
    """Return the state of each source of a cluster on each day, failing sources first.

    The age is that of the latest data that were observed until the end of the day (now, on the last day),
    whenever they were ingested. A failed run counts on the day on which it ran.

    Parameters
    ----------
    starts : sequence of datetime
        Start of each day, ascending, as for `registry.pages.ingests.read_ingests`.
    """
    ends = [*starts[1:], now]
    days = {(one.cluster, one.format, one.day): one for one in found.days}
    listed = [one for one in found.sources if one.cluster and one.known]
    listed.sort(key=lambda one: (_urgency(one, now), one.cluster, one.format))
    rows = []
    for source in listed:
        before = days.get((source.cluster, source.format, 0))
        latest = None if before is None else before.observed_at
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
            day = days.get((source.cluster, source.format, number))
            if day is not None and day.observed_at is not None:
                latest = day.observed_at if latest is None else max(latest, day.observed_at)
            failed = 0 if day is None else day.failed
            age = None if latest is None else end - latest
            only_failed = failed > 0 and (day is None or day.observed_at is None)
            now_failing = number == len(starts) and _urgency(source, now) < URGENT
            rows.append(
                {
                    "source": source_text(source.cluster, source.format),
                    "day": f"{start:%d}",
                    "date": f"{start:%Y-%m-%d}",
                    "state": _state_of(age, only_failed or now_failing),
                    "text": " ".join(["✕"] * bool(failed) + ([] if age is None else [short_age(age)])),
                    "observed": "never" if latest is None else units.moment_text(latest),
                    "runs": 0 if day is None else day.runs,
                    "failed": failed,
                }
            )
    columns = ["source", "day", "date", "state", "text", "observed", "runs", "failed"]
    return pd.DataFrame(rows, columns=columns)


def _urgency(source: SourceState, now: datetime) -> int:
    return [FAILING, NEVER, OLD, FRESH, NO_CLUSTER].index(freshness(source, now).state)


URGENT = 2
"""Urgency from which on a source does not fail."""


def _state_of(age: timedelta | None, failed: bool) -> str:
    """Return the state of a source on a day, by the age of its latest data and whether it failed."""
    if failed:
        return FAILING
    if age is None:
        return NO_DATA
    return OLD if age > STALE else FRESH


def short_age(age: timedelta) -> str:
    """Return an age in few characters, for squares: ``5m`` (minutes), ``3h``, ``473d``."""
    seconds = max(age.total_seconds(), 0.0)
    for name, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size):,}{name}"
    return f"{int(seconds)}s"


def sources_table(sources: Sequence[SourceState], now: datetime, viewer: Viewer) -> pd.DataFrame:
    """Return all sources with the age of their data, stale and failing ones first."""
    if not sources:
        return pd.DataFrame()
    states = {source: freshness(source, now).state for source in sources}
    listed = sorted(sources, key=lambda source: states[source] in NO_ALARM)
    return pd.DataFrame(
        {
            "state": [f"{SIGNS[states[source]]} {states[source]}" for source in listed],
            "cluster": [source.cluster for source in listed],
            "source": [source.format or "unknown format" for source in listed],
            "observed": [_ago(source.age(now)) for source in listed],
            "observed (UTC)": in_utc(source.data_at for source in listed),
            "last read (UTC)": in_utc(source.last_good_at for source in listed),
            "last try (UTC)": in_utc(source.last_at for source in listed),
            "what is wrong": [viewer.message(source.error) for source in listed],
        }
    )


def _ago(age: timedelta | None) -> str:
    return "never" if age is None else f"{age_text(age)} ago"


def runs_table(runs: Sequence[RunInfo], viewer: Viewer) -> pd.DataFrame:
    """Return ingest runs, one row each, with their numbers of files and warnings."""
    return pd.DataFrame(
        {
            "began (UTC)": in_utc(run.at for run in runs),
            "cluster": [run.cluster for run in runs],
            "formats": [", ".join(run.formats) or "unknown" for run in runs],
            "outcome": [run.outcome for run in runs],
            "duration (s)": [float(f"{run.seconds:.3g}") for run in runs],
            "files": [len(run.files) for run in runs],
            "warnings": [len(run.warnings) for run in runs],
            "error": [viewer.message(run.error) for run in runs],
            "run": [run.id for run in runs],
        }
    )
