"""Output of circuit plans: tables, CSV of circuits and of routes.

JSON of optical switches and circuit plans.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from almanac.output.printing import attributes, finite, print_table, renamed, say, whole
from almanac.output.running_jobs import fabric_to_json, omitted_jobs_to_json
from registry import units
from registry.csv_text import csv_text

if TYPE_CHECKING:
    from mapping.questions.circuits import CircuitPlanReport, JobsOnSwitch
    from registry.model import CircuitPlan
    from registry.model.circuit_plan import Circuits
    from registry.store.circuit_plans import CircuitPlanInfo, OpticalSwitch
    from registry.store.profiles import StoredProfile


def circuit_plan_to_json(planned: CircuitPlanReport) -> dict[str, Any]:
    """Return the keys of a circuit plan in the document of ``almanac reconfigure``."""
    plan, hosts = planned.plan, planned.case.hosts
    known = not math.isnan(plan.present_throughput)
    return {
        "circuit_plan": planned.record_id,
        **attributes(plan, "nodes", "max_degree", "max_edges", "link_speed"),
        "paper": plan.method == "paper",
        "start_topology": planned.options.parameters.get("start"),
        "seed": plan.seed,
        "complete": plan.complete,
        "hosts": list(hosts),
        "throughput": finite(plan.throughput),
        "compute_throughput": finite(plan.compute_throughput),
        "communication_throughput": finite(plan.communication_throughput),
        "upper_bound": {**asdict(planned.bound), "throughput": finite(planned.bound.throughput)},
        "improvement": finite(planned.improvement),
        "circuits": [
            {"a": a, "b": b, "bytes": load}
            for (a, b), load in zip(
                named_circuits(plan.circuits, hosts), plan.link_load.tolist(), strict=True
            )
        ],
        "node_of_rank": plan.node_of_vertex.tolist(),
        "trail": _iterations(planned),
        "present": _moves(planned) if known else None,
    }


def _iterations(planned: CircuitPlanReport) -> list[dict[str, Any]]:
    numbers = ("throughput", "compute_throughput", "communication_throughput", "best")
    return [
        renamed(one, inserted="added", links="circuit_count", seconds="wall_seconds")
        | {name: finite(getattr(one, name)) for name in numbers}
        for one in planned.trail
    ]


def _moves(planned: CircuitPlanReport) -> dict[str, Any]:
    """Return the circuits to move, the gain, and after what time it exceeds the cost of moving them."""
    plan, hosts = planned.plan, planned.case.hosts
    return {
        "throughput": finite(plan.present_throughput),
        "removed": named_circuits(plan.removed, hosts),
        "added": named_circuits(plan.inserted, hosts),
        "gain": finite(plan.gain),
        "seconds_saved": planned.seconds_saved,
        "break_even_profiles": finite(planned.break_even_profiles),
        "break_even_seconds": finite(plan.break_even_seconds),
    }


def jobs_on_switch_to_json(on: JobsOnSwitch, profiles: Sequence[StoredProfile]) -> dict[str, Any]:
    """Return the first keys of ``almanac reconfigure --cluster``: the fabric and its running jobs."""
    return {
        **fabric_to_json(on),
        **omitted_jobs_to_json(on),
        "jobs": [
            {
                "job": job.stored.job.id,
                "user": job.stored.job.user,
                "application": job.application,
                "profile": stored.profile.name,
                "ranks": stored.profile.ranks,
            }
            for job, stored in zip(on.jobs, profiles, strict=True)
        ],
    }


def circuit_plan_info_to_json(info: CircuitPlanInfo) -> dict[str, Any]:
    """Return a row of ``almanac history circuits``."""
    return renamed(
        info,
        id="circuit_plan",
        profiles="profile_ids",
        profile_names="profiles",
        jobs="job_ids",
        circuits="circuit_count",
        removed="removed_count",
        inserted="added_count",
        upper_bound="upper_bound_throughput",
        bound="upper_bound_name",
    )


def optical_switch_to_json(switch: OpticalSwitch) -> dict[str, Any]:
    """Return the document of ``almanac cluster optical``."""
    return {
        "cluster": switch.cluster,
        "hosts": list(switch.hosts),
        **attributes(switch, "max_degree", "max_edges", "link_speed", "compute_seconds"),
        "circuits": named_circuits(switch.circuits, switch.hosts) if switch.circuits else None,
        "circuit_plan": switch.plan or None,
        "stored_at": switch.at,
    }


def named_circuits(circuits: Circuits, hosts: Sequence[str]) -> list[tuple[int | str, int | str]]:
    """Return circuits with the names of their hosts, or with numbers if nodes have no names."""
    return [(hosts[a], hosts[b]) if hosts else (a, b) for a, b in circuits]


CIRCUIT_COLUMNS = ("a", "b")
"""Columns of a file of circuits: two nodes, by number from 0 or by name."""
ROUTE_COLUMNS = ("one", "other", "bytes", "route")
"""Columns of a file of routes: two ranks (or two hosts, if ranks stay), bytes, nodes separated by blanks."""
BUSIEST = 10
"""Circuits that are printed."""


def circuit_csv(circuits: Circuits, hosts: Sequence[str] = ()) -> str:
    """Return CSV text of circuits that `almanac.placing_options.read_circuits` reads."""
    return csv_text(CIRCUIT_COLUMNS, named_circuits(circuits, hosts))


def route_csv(plan: CircuitPlan, hosts: Sequence[str] = ()) -> str:
    """Return CSV text with the route between each pair of ranks, or of hosts if ranks stay.

    Traffic within a node has no row.
    """
    routes = plan.routes
    assert routes is not None
    flows = routes.crossing
    ends = tuple(zip(routes.one[flows].tolist(), routes.other[flows].tolist(), strict=True))
    pairs = named_circuits(ends, hosts if routes.of_nodes else ())
    rows = []
    for (one, other), size, way in zip(pairs, routes.bytes[flows].tolist(), plan.ways(flows), strict=True):
        nodes = " ".join(hosts[node] if hosts else str(node) for node in way)
        rows.append((one, other, whole(size), nodes))
    return csv_text(ROUTE_COLUMNS, rows)


def show_circuit_plan(title: str, fields: dict[str, Any]) -> None:
    """Print a circuit plan as tables.

    Args:
        fields: JSON document of the plan.
    """
    bound, limits = fields["upper_bound"], f"at most {fields['max_edges']}, {fields['max_degree']} per node"
    rows = [
        ["throughput", _rate_text(fields["throughput"]), ""],
        ["limit by computing", _rate_text(fields["compute_throughput"]), ""],
        ["limit by circuits", _rate_text(fields["communication_throughput"]), ""],
        ["certified upper bound", _rate_text(bound["throughput"]), f"{bound['name']}: {bound['proof']}"],
        [
            "relative to first topology",
            _ratio_text(fields["improvement"]),
            f"{len(fields['trail']) - 1} steps",
        ],
        ["circuits", str(len(fields["circuits"])), limits],
    ]
    print_table(title, ["", "value", "limit or proof"], rows)
    busiest = sorted(fields["circuits"], key=lambda one: -one["bytes"])[:BUSIEST]
    print_table(
        "busiest circuits",
        ["circuit", "bytes per profile"],
        [[f"{one['a']} - {one['b']}", units.text(one["bytes"], units.BYTES)] for one in busiest],
    )
    if fields["present"] is not None:
        show_circuit_moves(fields["present"])
    state = "" if fields["complete"] else " (interrupted: the best so far)"
    say(f"saved as {fields['circuit_plan']}{state}")


def show_circuit_moves(moves: dict[str, Any]) -> None:
    """Print the circuits to move, and the gain.

    Args:
        moves: Key ``present`` of a plan's JSON document.
    """
    if moves["seconds_saved"] <= 0.0:
        say("keep the present circuits: no better ones were found")
        return
    for key in ("removed", "added"):
        circuits = ", ".join(f"{a} - {b}" for a, b in moves[key])
        say(f"{key} ({len(moves[key])}): {circuits or 'none'}")
    say(f"{_ratio_text(moves['gain'])} the present throughput")
    if moves["break_even_profiles"] is not None:
        say(
            f"moving the circuits pays off after {moves['break_even_profiles']:.6g} profiles, "
            f"{units.text(moves['break_even_seconds'], units.SECONDS)}"
        )


def _rate_text(value: float | None) -> str:
    return "no limit" if value is None else f"{value:.6g} profiles/s"


def _ratio_text(value: float | None) -> str:
    return "no limit" if value is None else f"{value:.3f} times"
