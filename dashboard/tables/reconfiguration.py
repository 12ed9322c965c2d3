"""Proposed circuits of optical switches as plain tables. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from registry import units
from registry.model.circuit_plan import CircuitPlan
from registry.records.circuit_plan_records import (
    CircuitPlanInfo,
    CircuitPlanRecord,
    StoredCircuitPlan,
)

KEPT, REMOVED, INSERTED = STATES = ("stays", "take away", "put in")
"""What becomes of a circuit."""
PRESENT, PROPOSED, UPPER_BOUND = "as it is set", "proposed", "certified upper bound"


def plans_table(infos: Sequence[CircuitPlanInfo]) -> pd.DataFrame:
    """Plans, one row each; throughput in profiles a second, empty where it is not known or has no limit."""
    return pd.DataFrame(
        {
            "plan": [one.id for one in infos],
            "saved at (UTC)": _moments(one.recorded_at for one in infos),
            "cluster": [one.cluster or "" for one in infos],
            "for": [about(one) for one in infos],
            "hosts": [one.nodes for one in infos],
            "circuits": [one.circuits for one in infos],
            "take away": _numbers(one.removed for one in infos),
            "put in": _numbers(one.inserted for one in infos),
            "as it is set (1/s)": _numbers(one.present_throughput for one in infos),
            "proposed (1/s)": _numbers(one.throughput for one in infos),
            "upper bound (1/s)": _numbers(one.upper_bound for one in infos),
            "gain (times)": _numbers(one.gain for one in infos),
            "pays after (s)": _numbers(one.break_even_seconds for one in infos),
            "applied at (UTC)": _moments(one.applied_at for one in infos),
            "search": [one.method for one in infos],
            "complete": [one.complete for one in infos],
        }
    )


def about(info: CircuitPlanInfo) -> str:
    """What a plan is for."""
    names = ", ".join(info.profile_names)
    jobs = len(info.jobs)
    return f"{jobs} running job{'s' if jobs != 1 else ''}: {names}" if jobs else names


def option_text(info: CircuitPlanInfo) -> str:
    """A plan in a list to choose from."""
    gain = "" if info.gain is None else f"{info.gain:.3g} ×"
    parts = (info.cluster or "", about(info), gain, units.moment_text(info.recorded_at), info.id)
    return " · ".join(part for part in parts if part)


def throughputs(plan: CircuitPlan) -> pd.DataFrame:
    """Throughput before and after, and what nothing exceeds: columns ``series``, ``value``, ``shown``.

    What is not known, or has no limit, is left out.
    """
    values = {
        PRESENT: plan.present_throughput,
        PROPOSED: plan.throughput,
        UPPER_BOUND: plan.upper_bound,
    }
    known = {series: value for series, value in values.items() if math.isfinite(value)}
    return pd.DataFrame(
        {
            "series": list(known),
            "value": list(known.values()),
            "shown": [f"{value:.4g} profiles/s" for value in known.values()],
        }
    )


def trail_table(plan: CircuitPlan) -> pd.DataFrame:
    """Iterations of the search: columns ``iteration``, ``throughput``, ``best`` and ``bottleneck``.

    Throughput without limit is empty.
    """
    values, best = (np.where(np.isfinite(it), it, np.nan) for it in (plan.trail_throughput, plan.best))
    return pd.DataFrame(
        {
            "iteration": plan.number,
            "throughput": values,
            "best": best,
            "bottleneck": list(plan.bottleneck),
        }
    )


def circuits_table(record: CircuitPlanRecord) -> pd.DataFrame:
    """All circuits that are proposed, and those to take away; the busiest first, ties by nodes.

    Returns
    -------
    DataFrame
        Columns ``a``, ``b`` (hosts, or numbers of nodes), ``what`` (of `STATES`; ``put in`` where the present
        circuits are not known), ``bytes`` (of one profile), ``busy`` (part of the time, at the proposed
        throughput), ``a node`` and ``b node`` (numbers).
    """
    plan = record.plan
    present = set(plan.present)
    states = [KEPT if pair in present else INSERTED for pair in plan.circuits]
    pairs = [*plan.circuits, *plan.removed]
    load = np.r_[plan.link_load, np.zeros(len(plan.removed))]
    busy = load * (plan.throughput / plan.link_speed) if math.isfinite(plan.throughput) else 0.0 * load
    table = pd.DataFrame(
        {
            "a": [record.node_name(a) for a, _ in pairs],
            "b": [record.node_name(b) for _, b in pairs],
            "what": [*states, *[REMOVED] * len(plan.removed)],
            "bytes": load,
            "busy": busy,
            "a node": [a for a, _ in pairs],
            "b node": [b for _, b in pairs],
        }
    )
    return table.sort_values(["bytes", "a node", "b node"], ascending=[False, True, True], ignore_index=True)


def moves_table(record: CircuitPlanRecord) -> pd.DataFrame:
    """Circuits to move, those to take away first: columns ``what``, ``a``, ``b``."""
    plan = record.plan
    moves = [(REMOVED, pair) for pair in plan.removed] + [(INSERTED, pair) for pair in plan.inserted]
    return pd.DataFrame(
        {
            "what": [what for what, _ in moves],
            "a": [record.node_name(pair[0]) for _, pair in moves],
            "b": [record.node_name(pair[1]) for _, pair in moves],
        }
    )


def ways_table(record: CircuitPlanRecord, most: int) -> pd.DataFrame:
    """Flows that cross circuits, those of most bytes first, at most so many; ties in the plan's order.

    Returns
    -------
    DataFrame
        Columns ``one``, ``other`` (ranks, or hosts under ranks that stay), ``bytes`` (of one profile),
        ``circuits`` (that it crosses) and ``way`` (hosts that it leads over). Empty where ways are not known.
    """
    routes = record.plan.routes
    if routes is None:
        return pd.DataFrame({name: [] for name in ("one", "other", "bytes", "circuits", "way")})
    crossing = routes.crossing
    rows = crossing[np.argsort(-routes.bytes[crossing], kind="stable")][:most]
    ends = (routes.one[rows].tolist(), routes.other[rows].tolist())
    named = [[record.node_name(node) for node in end] if routes.of_nodes else end for end in ends]
    ways = record.plan.ways(rows)
    return pd.DataFrame(
        {
            "one": named[0],
            "other": named[1],
            "bytes": routes.bytes[rows],
            "circuits": np.diff(routes.first)[rows],
            "way": [" ".join(map(record.node_name, way)) for way in ways],
        }
    )


def facts(stored: StoredCircuitPlan) -> dict[str, str]:
    """What a page tells of a plan in large."""
    plan = stored.plan
    known = not math.isnan(plan.present_throughput)
    moved = f"{len(plan.removed):,} away, {len(plan.inserted):,} in" if known else f"{len(plan.source):,} in"
    return {
        "Throughput": _text(plan.throughput, " profiles/s", unlimited="without limit"),
        "Gain": _text(plan.gain, " ×", unlimited="without limit"),
        "Circuits to move": moved,
        "Pays after": pays_after(plan),
    }


def pays_after(plan: CircuitPlan) -> str:
    """When moving the circuits has paid for itself, in words."""
    if math.isnan(plan.break_even_seconds):
        return "not known"
    if math.isinf(plan.break_even_seconds):
        return "never"
    return units.text(plan.break_even_seconds, units.SECONDS)


def _text(value: float, unit: str, *, unlimited: str) -> str:
    if math.isnan(value):
        return "not known"
    return unlimited if math.isinf(value) else f"{value:.4g}{unit}"


def _numbers(values: Iterable[float | None]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]


def _moments(values: Iterable[datetime | None]) -> pd.DatetimeIndex:
    """To the second, without the zone: UTC."""
    told = [None if value is None else value.astimezone(UTC).replace(tzinfo=None) for value in values]
    return pd.DatetimeIndex(np.asarray(told, "datetime64[s]"))
