"""Questions that the HTTP API answers, each with the JSON document of a command; all only read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from pydantic import BeforeValidator

from almanac.commands.analysis.today import DAY, is_rare
from almanac.options.common import require_cluster, require_names
from almanac.output.json.circuits import circuit_plan_info_to_json
from almanac.output.json.placements import regression_to_json, stored_placement_to_json
from almanac.output.json.ports import ports_to_json
from almanac.output.json.running_jobs import congestion_to_json, stored_advice_to_json, today_to_json
from almanac.output.json.simulations import simulation_info_to_json
from almanac.output.json.stored_data import (
    changes_to_json,
    cluster_to_json,
    findings_to_json,
    host_layout_to_json,
    job_to_json,
    profile_info_to_json,
    profile_to_json,
    snapshot_to_json,
)
from mapping.checks.checks import check
from mapping.checks.finding import ErrorLimits
from mapping.distances.cost_model import CostModel
from mapping.questions.live import read_ports, traffic
from mapping.questions.place import subject_of
from mapping.questions.today import read_today
from mapping.routing.catalog import choose_routing
from mapping.traffic.job_loads import regressions
from registry.registry import Registry
from registry.units import MOMENTS, moment_of

LONGEST_NAME = 200


def opened(request: Request) -> Registry:
    """Return the open registry of the service."""
    registry = request.app.state.service.registry()
    assert isinstance(registry, Registry)
    return registry


def error_limits(request: Request) -> ErrorLimits:
    """Return the limits of the settings from which growing errors are reported."""
    limits = request.app.state.service.limits
    assert isinstance(limits, ErrorLimits)
    return limits


def _moment(text: object) -> object:
    """Return the time that a text of a query means, as for options of the command line."""
    try:
        return moment_of(text, datetime.now(UTC)) if isinstance(text, str) else text
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time such as {MOMENTS}") from error


Opened = Annotated[Registry, Depends(opened)]
Limits = Annotated[ErrorLimits, Depends(error_limits)]
ClusterName = Annotated[str, Path(max_length=LONGEST_NAME, description="Name of the cluster.")]
OfCluster = Annotated[str | None, Query(max_length=LONGEST_NAME, description="Only of this cluster.")]
Moment = Annotated[
    datetime | None,
    BeforeValidator(_moment),
    Query(description=f"A time such as {MOMENTS}; UTC if it has no zone (default: now)."),
]
Top = Annotated[int, Query(ge=1, le=1000, description="Maximum number of rows.")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="Maximum number of rows, the newest.")]
Name = Annotated[str | None, Query(max_length=LONGEST_NAME)]


def clusters(registry: Opened) -> Any:
    """All clusters: `almanac cluster list`."""
    return [cluster_to_json(info) for info in registry.fabrics.clusters()]


def cluster(registry: Opened, cluster: ClusterName, at: Moment = None) -> Any:
    """Size and routing of a cluster's fabric: `almanac cluster show`."""
    snapshot = registry.fabrics.read(cluster, at)
    return snapshot_to_json(cluster, snapshot, *choose_routing(snapshot.fabric))


def changes(registry: Opened, cluster: ClusterName, start: Moment = None, end: Moment = None) -> Any:
    """What changed between two times, or in the last change: `almanac cluster changes`."""
    first = registry.fabrics.before_last_change(cluster, end) if start is None else start
    return changes_to_json(cluster, registry.fabrics.changes(cluster, first, end))


def checks(registry: Opened, limits: Limits, cluster: ClusterName, at: Moment = None) -> Any:
    """Problems of a cluster's fabric: `almanac cluster check`."""
    found = check(subject_of(registry, cluster, at, limits))
    return {"cluster": cluster, "findings": findings_to_json(found)}


def layouts(registry: Opened, cluster: ClusterName, at: Moment = None) -> Any:
    """Host layouts of a cluster: `almanac cluster layouts`."""
    require_cluster(registry, cluster)
    return [host_layout_to_json(one) for one in registry.layouts.list(cluster, at)]


def congestion(
    registry: Opened,
    cluster: ClusterName,
    at: Moment = None,
    top: Top = 20,
    network: Annotated[bool, Query(description="Only links between switches.")] = False,
) -> Any:
    """Busiest links and the jobs that load them: `almanac congestion`."""
    live = traffic(registry, cluster, at, CostModel())
    return congestion_to_json(live, live.shared.hottest(top, network_only=network), None, top)


def ports(
    registry: Opened,
    limits: Limits,
    cluster: ClusterName,
    since: Moment = None,
    at: Moment = None,
    top: Top = 15,
) -> Any:
    """Errors, utilisation and jobs of the ports: `almanac ports`."""
    live = traffic(registry, cluster, at, CostModel())
    return ports_to_json(live, read_ports(registry, live, limits, since), top)


def today(registry: Opened, limits: Limits, cluster: ClusterName, since: Moment = None) -> Any:
    """Changes, problems, slowed jobs and the best action: `almanac today`."""
    start = datetime.now(UTC) - DAY if since is None else since
    return today_to_json(read_today(registry, cluster, start, limits=limits, is_rare=is_rare))


def advice(registry: Opened, cluster: ClusterName) -> Any:
    """Saved advice for the running jobs, the largest gain first: rows of `almanac advise jobs`."""
    require_cluster(registry, cluster)
    stored = registry.advices.list(cluster, running_at=datetime.now(UTC))
    return {"cluster": cluster, "jobs": [stored_advice_to_json(one) for one in stored]}


def jobs(registry: Opened, cluster: OfCluster = None, limit: Limit = 100) -> Any:
    """Jobs, the newest first: `almanac job list`."""
    require_cluster(registry, cluster)
    return [job_to_json(stored) for stored in registry.jobs.list(cluster)[:limit]]


def job(
    registry: Opened, job: Annotated[str, Path(max_length=LONGEST_NAME)], cluster: OfCluster = None
) -> Any:
    """One job: `almanac job show`."""
    stored = registry.jobs.read(job, cluster)
    return job_to_json(stored) | {"unknown_hosts": list(registry.jobs.unknown_hosts(stored))}


def profiles(registry: Opened) -> Any:
    """All profiles: `almanac profile list`."""
    return [profile_info_to_json(info) for info in registry.profiles.list()]


def profile(registry: Opened, profile: Annotated[str, Path(max_length=LONGEST_NAME)]) -> Any:
    """One profile, by name or id: `almanac profile show`."""
    stored = registry.profiles.read(profile)
    return profile_to_json(stored, [trace.id for trace in registry.traces.list(stored.id)])


def placements(
    registry: Opened,
    cluster: OfCluster = None,
    application: Name = None,
    job: Name = None,
    limit: Limit = 100,
) -> Any:
    """Placements with bounds and baselines, the newest first: `almanac history placements`."""
    require_names(registry, cluster, application, job)
    infos = registry.placements.history(cluster, application, job, limit=limit)
    return [stored_placement_to_json(info) for info in infos]


def placements_that_got_worse(
    registry: Opened, cluster: OfCluster = None, application: Name = None, limit: Limit = 100
) -> Any:
    """Placements above their control limit, the newest first: `almanac history regressions`."""
    require_names(registry, cluster, application, None)
    series = registry.placements.series(cluster=cluster, application=application)
    return [regression_to_json(one) for one in regressions(series)[:limit]]


def simulations(registry: Opened, cluster: OfCluster = None, limit: Limit = 100) -> Any:
    """Simulated runs, the newest first: `almanac history simulations`."""
    require_cluster(registry, cluster)
    return [simulation_info_to_json(info) for info in registry.simulations.list(cluster, limit=limit)]


def circuit_plans(registry: Opened, cluster: OfCluster = None, limit: Limit = 100) -> Any:
    """Circuit plans, the newest first: `almanac history circuits`."""
    require_cluster(registry, cluster)
    return [circuit_plan_info_to_json(info) for info in registry.circuit_plans.list(cluster, limit=limit)]


QUESTIONS: dict[str, Callable[..., Any]] = {
    "/clusters": clusters,
    "/clusters/{cluster}": cluster,
    "/clusters/{cluster}/changes": changes,
    "/clusters/{cluster}/checks": checks,
    "/clusters/{cluster}/layouts": layouts,
    "/clusters/{cluster}/congestion": congestion,
    "/clusters/{cluster}/ports": ports,
    "/clusters/{cluster}/today": today,
    "/clusters/{cluster}/advice": advice,
    "/jobs": jobs,
    "/jobs/{job}": job,
    "/profiles": profiles,
    "/profiles/{profile}": profile,
    "/placements": placements,
    "/placements/regressions": placements_that_got_worse,
    "/simulations": simulations,
    "/circuit-plans": circuit_plans,
}
"""Path of each question and the function that answers it."""
