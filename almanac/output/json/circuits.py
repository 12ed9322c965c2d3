"""JSON of optical switches and circuit plans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from almanac.output.json.running_jobs import fabric_to_json, omitted_jobs_to_json
from almanac.output.printing import finite

if TYPE_CHECKING:
    from mapping.service.circuit_search import CircuitPlanReport
    from mapping.service.circuits import OnSwitch
    from registry.model import CircuitPlan
    from registry.model.circuit_plan import Circuits
    from registry.records.optical_switches import OpticalSwitch


def circuit_plan_to_json(planned: CircuitPlanReport, hosts: Sequence[str], identity: str) -> dict[str, Any]:
    """Return the keys of a circuit plan in the document of ``almanac reconfigure``.

    Parameters
    ----------
    hosts : sequence of str
        Names of the nodes; empty if they have only numbers.
    identity : str
        Id of the saved plan.
    """
    plan, search = planned.plan, planned.search
    known = not math.isnan(plan.present_throughput)
    return {
        "configuration": identity,
        **{name: getattr(plan, name) for name in ("nodes", "max_degree", "max_edges", "link_speed")},
        "paper": plan.method == "paper",
        "start": search.parameters.get("start"),
        "seed": plan.seed,
        "complete": plan.complete,
        "hosts": list(hosts),
        "throughput": finite(plan.throughput),
        "compute_throughput": finite(plan.compute_throughput),
        "communication_throughput": finite(plan.communication_throughput),
        "upper_bound": {**asdict(planned.bound), "throughput": finite(planned.bound.throughput)},
        "improvement": finite(_improvement(plan)),
        "circuits": [
            {"a": a, "b": b, "bytes": load}
            for (a, b), load in zip(
                named_circuits(plan.circuits, hosts), plan.link_load.tolist(), strict=True
            )
        ],
        "node_of_rank": plan.node_of_vertex.tolist(),
        "trail": _iterations(planned),
        "present": _moves(plan, hosts) if known else None,
    }


def _improvement(plan: CircuitPlan) -> float:
    """Return the throughput relative to that of the first topology."""
    first = float(plan.trail_throughput[0])
    return 1.0 if plan.throughput == first else plan.throughput / first


def _iterations(planned: CircuitPlanReport) -> list[dict[str, Any]]:
    numbers = ("throughput", "compute_throughput", "communication_throughput", "best")
    return [
        {**asdict(one), **{name: finite(getattr(one, name)) for name in numbers}} for one in planned.trail
    ]


def _moves(plan: CircuitPlan, hosts: Sequence[str]) -> dict[str, Any]:
    """Return the circuits to move, the gain, and after what time it exceeds the cost of moving them."""
    saved = 1.0 / plan.present_throughput - 1.0 / plan.throughput
    profiles = plan.reconfiguration_seconds / saved if saved > 0.0 else math.nan
    return {
        "throughput": finite(plan.present_throughput),
        "removed": named_circuits(plan.removed, hosts),
        "added": named_circuits(plan.inserted, hosts),
        "gain": finite(plan.gain),
        "seconds_saved": saved,
        "break_even_profiles": finite(profiles),
        "break_even_seconds": finite(plan.break_even_seconds),
    }


def jobs_on_switch_to_json(on: OnSwitch) -> dict[str, Any]:
    """Return the first keys of ``almanac reconfigure --cluster``: the fabric and its running jobs."""
    return {
        **fabric_to_json(on),
        **omitted_jobs_to_json(on),
        "jobs": [
            {
                "job": job.stored.job.id,
                "user": job.stored.job.user,
                "application": job.application,
                "profile": profile.name,
                "ranks": ranks,
            }
            for job, profile, ranks in zip(on.jobs, on.profiles, on.ranks, strict=True)
        ],
    }


def optical_switch_to_json(switch: OpticalSwitch) -> dict[str, Any]:
    """Return the document of ``almanac cluster optical``."""
    return {
        "cluster": switch.cluster,
        "hosts": list(switch.hosts),
        "max_degree": switch.max_degree,
        "max_edges": switch.max_edges,
        "link_speed": switch.link_speed,
        "compute_seconds": switch.compute_seconds,
        "circuits": named_circuits(switch.circuits, switch.hosts) if switch.circuits else None,
        "configuration": switch.plan or None,
        "told_at": switch.at,
    }


def named_circuits(circuits: Circuits, hosts: Sequence[str]) -> list[tuple[int | str, int | str]]:
    """Return circuits with the names of their hosts, or with numbers if nodes have no names."""
    return [(hosts[a], hosts[b]) if hosts else (a, b) for a, b in circuits]
