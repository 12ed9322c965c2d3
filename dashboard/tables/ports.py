"""Tables of ports: neighbours, utilisation, errors and their growth, also over time. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pandas as pd

from dashboard.state.viewer import OTHERS, Viewer
from dashboard.tables.columns import in_utc
from mapping.checks.finding import WORDS, Finding
from mapping.questions.live import Live
from mapping.traffic.names import short_name, short_port
from mapping.traffic.ports import WAIT, CounterGrowth, CounterHistory
from registry.model import Fabric, Floats, Longs
from registry.model.fabric import end_parts, port_name
from registry.pages.devices import RENAMED, DeviceHistory

NOT_ATTRIBUTED = "not attributed"
"""Traffic that no running job is known to cause."""
MOST_OWNERS = 6
"""Maximum number of jobs with their own part in a chart; others share one."""
OTHER_JOBS = "other jobs"
FINE, SOME, BEYOND, NOT_COUNTED = "none", "within limits", "beyond limits", "not counted"
HARMLESS = "may be harmless"
"""States of the error counters of a port; `HARMLESS`: within the bit error rate, or dropped by rule."""
_WORDS = {**WORDS, WAIT: "wait (ticks)"}


def error_state(excess: float) -> str:
    """Return the state of a port's error counters as text.

    Parameters
    ----------
    excess : float
        Largest growth over its limit; NaN if not counted.
    """
    if np.isnan(excess):
        return NOT_COUNTED
    return FINE if excess == 0 else SOME if excess <= 1 else BEYOND


def device_ports(
    fabric: Fabric, vertex: int, *, share: Floats | None, seconds: Floats | None, excess: Floats | None
) -> tuple[Longs, pd.DataFrame]:
    """Return the ports of a device with their neighbours, by port.

    Parameters
    ----------
    share : float64[m], optional
        Measured utilisation of each link.
    seconds : float64[m], optional
        Estimated time of each link.
    excess : float64[m], optional
        Errors of the sending port of each link, see `error_state`.

    Returns
    -------
    int64[k], DataFrame
        Rows of ``fabric.links`` that leave the device. Columns ``port``, ``to``, ``use`` (measured
        utilisation of the busier direction) or, without it, ``time`` (estimated, s), and ``errors``.
    """
    links = fabric.links
    rows = np.flatnonzero(links.source == vertex)
    rows = rows[np.lexsort((rows, links.source_port[rows], links.source_adapter[rows]))]
    back = _reverse(fabric, vertex, rows)
    columns: dict[str, object] = {
        "port": [end_parts(fabric, row)[1].lstrip(" :") for row in rows.tolist()],
        "to": [short_port(fabric, row, "target") for row in rows.tolist()],
    }
    if share is not None:
        columns["use"] = np.fmax(_taken(share, rows), _taken(share, back))
    elif seconds is not None:
        columns["time"] = np.fmax(_taken(seconds, rows), _taken(seconds, back))
    if excess is not None:
        columns["errors"] = [error_state(value) for value in excess[rows].tolist()]
    return rows, pd.DataFrame(columns)


def growth_table(growth: Sequence[CounterGrowth]) -> pd.DataFrame:
    """Return the growth of counters: all that grew or have a limit, those that grew first."""
    shown = sorted(growth, key=lambda one: one.growth == 0)
    return pd.DataFrame(
        {
            "counter": [_WORDS[one.counter] for one in shown],
            "new": [f"{'≥ ' if one.at_least else ''}{one.growth:,}" for one in shown],
            "per hour": [float(f"{one.per_hour:.3g}") for one in shown],
            "state": [_growth_state(one) for one in shown],
        }
    )


def _growth_state(one: CounterGrowth) -> str:
    if one.counter == WAIT:
        return ""
    if one.ports:
        return BEYOND
    return HARMLESS if one.harmless else SOME if one.growth else FINE


def ports_with_errors(fabric: Fabric, history: CounterHistory, count: int) -> list[tuple[int, str, str]]:
    """Return the ports with most new errors in relation to their limits.

    Returns
    -------
    list of (int, str, str)
        Row of the link that leaves the port (-1 for none), port, and its errors as text.
    """
    errors = history.errors
    order = np.argsort(-errors.excess, kind="stable")[:count]
    found = []
    for port in order[errors.excess[order] > 0].tolist():
        row = int(errors.link[port])
        number = int(errors.grown.port[port])
        lone = port_name(short_name(errors.device[port]), number)
        name = short_port(fabric, row, "source") if row >= 0 else lone
        grown = history.growth(np.array([port]))
        texts = [
            f"{'at least ' if one.at_least else ''}{one.growth:,} {_WORDS[one.counter]}"
            for one in sorted(grown, key=lambda one: -one.growth)
            if one.growth and one.counter != WAIT
        ]
        found.append((row, name, ", ".join(texts)))
    return found


def findings_about(findings: Sequence[Finding], names: Sequence[str]) -> list[Finding]:
    """Return the findings that name a device or port; ports are written ``DEVICE:PORT``."""
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])")
    return [finding for finding in findings if pattern.search(f"{finding.subject} {finding.text}")]


def new_errors(history: CounterHistory, ports: Longs) -> pd.DataFrame:
    """Return the new errors of some ports by time and counter: ``time`` (UTC), ``counter``, ``errors``."""
    wanted = set(ports.tolist())
    found = [one for one in history.new_errors if one.port in wanted]
    table = pd.DataFrame(
        {
            "time": in_utc(one.time for one in found),
            "counter": [_WORDS[one.counter] for one in found],
            "errors": [one.amount for one in found],
        }
    )
    return table.groupby(["time", "counter"], sort=True)["errors"].sum().reset_index()


def owners_over_time(
    history: CounterHistory, live: Live | None, row: int, viewer: Viewer, iterations_per_second: float
) -> pd.DataFrame:
    """Return the measured utilisation of a link over time, split by the jobs that cause it.

    A job's part is its estimate, at most the measured utilisation with those of the other jobs, from its
    start on. The rest is `NOT_ATTRIBUTED`.

    Parameters
    ----------
    iterations_per_second : float
        Scale of the estimate, see `mapping.traffic.shared_load.AgainstCounters`; NaN if unknown.

    Returns
    -------
    DataFrame
        Columns ``time`` (UTC, end of the interval), ``owner``, ``share`` (0 to 1).
    """
    owners = _owners(live, row, viewer, iterations_per_second)
    names = [*dict.fromkeys(name for name, _, _ in owners), NOT_ATTRIBUTED]
    lines: list[tuple[datetime, str, float]] = []
    for time, share in zip(history.times, history.share[:, row].tolist(), strict=True):
        if np.isnan(share):
            continue
        parts = dict.fromkeys(names, 0.0)
        for name, start, part in owners:
            if start is None or start < time:
                parts[name] += part
        estimated = sum(parts.values())
        scale = min(1.0, share / estimated) if estimated > 0 else 0.0
        parts = {name: part * scale for name, part in parts.items()}
        parts[NOT_ATTRIBUTED] = max(share - sum(parts.values()), 0.0)
        lines += [(time, name, part) for name, part in parts.items()]
    return pd.DataFrame(
        {
            "time": in_utc(time for time, _, _ in lines),
            "owner": [name for _, name, _ in lines],
            "share": [part for _, _, part in lines],
        }
    )


def _owners(
    live: Live | None, row: int, viewer: Viewer, iterations_per_second: float
) -> list[tuple[str, datetime | None, float]]:
    """Return name, start and estimated share of the jobs on a link; hidden ones share a name."""
    if live is None or np.isnan(iterations_per_second):
        return []
    capacity = float(live.fabric.links.capacity[row])
    found = []
    for number, user in enumerate(live.shared.links([row])[0].users):
        if not viewer.sees(user.user):
            name = OTHERS
        else:
            name = f"job {user.job}" if number < MOST_OWNERS else OTHER_JOBS
        start = live.job(user.job).stored.job.started_at
        found.append((name, start, iterations_per_second * user.bytes / capacity))
    return found


def events_table(history: DeviceHistory) -> pd.DataFrame:
    """Return the changes of a device, newest first: ``time (UTC)`` and ``what changed``."""
    texts = []
    for event in history.events:
        if event.kind == RENAMED:
            texts.append(f"renamed to {event.peer}")
            continue
        near = f"port {event.port}: " if event.port >= 0 else ""
        far = f"{event.peer}:{event.peer_port}" if event.peer_port >= 0 else event.peer
        texts.append(f"{near}cable to {far} {event.kind}")
    return pd.DataFrame({"time (UTC)": in_utc(event.at for event in history.events), "what changed": texts})


def _reverse(fabric: Fabric, vertex: int, rows: Longs) -> Longs:
    """Return the other direction of each link that leaves a device; -1 if there is none."""
    links = fabric.links
    arriving = np.flatnonzero(links.target == vertex)
    far = (links.source, links.source_port, links.source_adapter)
    near = (links.target, links.target_port, links.target_adapter)
    known = {
        tuple(ends): row
        for row, ends in zip(
            arriving.tolist(), np.stack([c[arriving] for c in (*near, *far)], axis=1).tolist(), strict=True
        )
    }
    wanted = np.stack([c[rows] for c in (*far, *near)], axis=1).tolist()
    return np.asarray([known.get(tuple(ends), -1) for ends in wanted], np.int64)


def _taken(values: Floats, rows: Longs) -> Floats:
    """Return the values of some links; NaN for -1."""
    found: Floats = np.append(values, np.nan)[rows]
    return found
