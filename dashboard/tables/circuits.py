"""Tables of circuit plans for optical switches. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from dashboard.tables.columns import in_utc, numbers
from registry import units
from registry.model.circuit_plan import CircuitPlan
from registry.store.circuit_plans import CircuitPlanInfo, CircuitPlanRecord, StoredCircuitPlan

UNCHANGED, REMOVED, INSERTED = STATES = ("stays", "remove", "add")
"""What happens to a circuit."""
PRESENT, PROPOSED, UPPER_BOUND = "present", "proposed", "certified upper bound"


def plans_table(infos: Sequence[CircuitPlanInfo]) -> pd.DataFrame:
    """Return plans, one row each; throughput in profiles per second, empty if unknown or unlimited."""
    return pd.DataFrame(
        {
            "plan": [one.id for one in infos],
            "saved at (UTC)": in_utc(one.recorded_at for one in infos),
            "cluster": [one.cluster or "" for one in infos],
            "for": [about(one) for one in infos],
            "hosts": [one.nodes for one in infos],
            "circuits": [one.circuits for one in infos],
            "removed": numbers(one.removed for one in infos),
            "added": numbers(one.inserted for one in infos),
            "present (1/s)": numbers(one.present_throughput for one in infos),
            "proposed (1/s)": numbers(one.throughput for one in infos),
            "upper bound (1/s)": numbers(one.upper_bound for one in infos),
            "gain (times)": numbers(one.gain for one in infos),
            "pays after (s)": numbers(one.break_even_seconds for one in infos),
            "applied at (UTC)": in_utc(one.applied_at for one in infos),
            "search": [one.method for one in infos],
            "complete": [one.complete for one in infos],
        }
    )


def about(info: CircuitPlanInfo) -> str:
    """Return the jobs or applications that a plan is made for."""
    names = ", ".join(info.profile_names)
    jobs = len(info.jobs)
    return f"{jobs} running job{'s' if jobs != 1 else ''}: {names}" if jobs else names


def option_text(info: CircuitPlanInfo) -> str:
    """Return the text of a plan in a list to choose from."""
    gain = "" if info.gain is None else f"{info.gain:.3g} ×"
    parts = (info.cluster or "", about(info), gain, units.moment_text(info.recorded_at), info.id)
    return " · ".join(part for part in parts if part)


def throughputs(plan: CircuitPlan) -> pd.DataFrame:
    """Return throughput before and after and its upper bound: columns ``series``, ``value``, ``shown``.

    Unknown and unlimited values are left out.
    """
    values = {PRESENT: plan.present_throughput, PROPOSED: plan.throughput, UPPER_BOUND: plan.upper_bound}
    rows = [
        (series, value, f"{units.figures(value)} profiles/s")
        for series, value in values.items()
        if math.isfinite(value)
    ]
    return pd.DataFrame(rows, columns=["series", "value", "shown"])


def trail_table(plan: CircuitPlan) -> pd.DataFrame:
    """Return the iterations of the search: columns ``iteration``, ``throughput``, ``best``, ``bottleneck``.

    Unlimited throughput is empty.
    """
    values, best = (np.where(np.isfinite(it), it, np.nan) for it in (plan.trail_throughput, plan.best))
    return pd.DataFrame(
        {"iteration": plan.number, "throughput": values, "best": best, "bottleneck": list(plan.bottleneck)}
    )


def circuits_table(record: CircuitPlanRecord) -> pd.DataFrame:
    """Return all proposed circuits and those to remove; busiest first, equal ones by nodes.

    ``what`` is one of `STATES`, `INSERTED` if the present circuits are not known; ``bytes`` are those of one
    profile; ``busy`` is the share of the time at the proposed throughput.
    """
    plan = record.plan
    present = set(plan.present)
    states = [UNCHANGED if pair in present else INSERTED for pair in plan.circuits]
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
    """Return the circuits to move, those to remove first: columns ``what``, ``a``, ``b``."""
    plan = record.plan
    moves = [(REMOVED, pair) for pair in plan.removed] + [(INSERTED, pair) for pair in plan.inserted]
    rows = [(what, record.node_name(a), record.node_name(b)) for what, (a, b) in moves]
    return pd.DataFrame(rows, columns=["what", "a", "b"])


def routes_table(record: CircuitPlanRecord, most: int) -> pd.DataFrame:
    """Return up to `most` flows that cross circuits, most bytes first; equal ones in the plan's order.

    The ends are ranks, or hosts if the ranks stay. Empty if routes are not known.
    """
    routes = record.plan.routes
    if routes is None:
        return pd.DataFrame({name: [] for name in ("one", "other", "bytes", "circuits", "route")})
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
            "route": [" ".join(map(record.node_name, way)) for way in ways],
        }
    )


def facts(stored: StoredCircuitPlan) -> dict[str, str]:
    """Return the main numbers of a plan as text, by title."""
    plan = stored.plan
    known = not math.isnan(plan.present_throughput)
    moves = len(plan.removed) + len(plan.inserted) if known else len(plan.source)
    return {
        "Profiles/s": _text(plan.throughput, "", unlimited="without limit"),
        "Gain": _text(plan.gain, " ×", unlimited="without limit"),
        "Moves": f"{moves:,}",
        "Pays after": pays_after(plan),
    }


def pays_after(plan: CircuitPlan) -> str:
    """Return as text after what time moving the circuits has paid for itself."""
    if math.isnan(plan.break_even_seconds):
        return "not known"
    if math.isinf(plan.break_even_seconds):
        return "never"
    return units.short(plan.break_even_seconds, units.SECONDS)


def _text(value: float, unit: str, *, unlimited: str) -> str:
    if math.isnan(value):
        return "not known"
    return unlimited if math.isinf(value) else f"{units.figures(value)}{unit}"
