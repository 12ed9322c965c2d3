"""Circuit plans searched with several seeds, on this machine or on a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from mapping.cluster import Cluster
from mapping.service.circuit_search import CircuitPlanReport, CircuitSearchOptions, plan_circuits
from mapping.service.circuits import CircuitPlanCase
from registry.progress import Progress, silent


def plan_circuits_of_seeds(
    case: CircuitPlanCase,
    options: CircuitSearchOptions,
    seeds: int,
    progress: Progress = silent,
    cluster: Cluster | None = None,
) -> CircuitPlanReport:
    """Search circuits with the seed of the options and the following ones; return the best plan.

    Its `seed` is the one with which it was found. Errors and interrupts as of `plan_circuits`.

    Parameters
    ----------
    cluster : Cluster, optional
        Search with all seeds there at the same time; default: one after the other.
    """
    several = [replace(options, seed=options.seed + number) for number in range(seeds)]
    reports: dict[int, CircuitPlanReport] = {}
    try:
        if cluster is not None:
            cluster.share(case)
            tasks = [(case, one) for one in several]
            for number, result in cluster.run(_plan_circuits_elsewhere, tasks, "seeds", progress):
                reports[number] = replace(result.result(), case=case)
        else:
            for number, one in enumerate(several):
                reports[number] = plan_circuits(case, one, progress)
                if not reports[number].plan.complete:
                    break
    except KeyboardInterrupt:
        if not reports:
            raise
    best = min(reports, key=lambda number: (-reports[number].plan.throughput, number))
    complete = len(reports) == seeds and all(one.plan.complete for one in reports.values())
    plan = replace(reports[best].plan, complete=complete)
    return replace(reports[best], plan=plan)


def _plan_circuits_elsewhere(case: CircuitPlanCase, options: CircuitSearchOptions) -> CircuitPlanReport:
    """Return the report without its case, which the caller has."""
    return replace(plan_circuits(case, options), case=cast(CircuitPlanCase, None))
