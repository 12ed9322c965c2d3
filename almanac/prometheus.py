"""Gauges for Prometheus: age of the data, problems, errors, busiest links, placement quality."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from mapping.checks.checks import CHECKS, check
from mapping.checks.finding import ErrorLimits, Finding, PortErrors, Severity
from mapping.questions.live import traffic
from mapping.questions.place import subject_of
from mapping.traffic.job_loads import judge
from mapping.traffic.names import link_text
from mapping.traffic.shared_load import against_counters
from registry.errors import UnknownName
from registry.upkeep.retention import file_bytes, free_bytes, stored_sizes

if TYPE_CHECKING:
    from registry.model import Fabric
    from registry.registry import Registry

HOTTEST = 10
"""Default number of links, ports and cables per cluster: each adds time series to the monitoring database."""
FLAPPING = "flapping-links"
"""Check of cables that went down repeatedly."""
VANISHED = "vanished"
"""Check of what earlier scans showed."""
JOBS = 3
"""Number of jobs that are listed for each link."""
ABOUT = {
    "almanac_source_age_seconds": "Time since the latest data of a source were observed.",
    "almanac_source_failing": "1 if the last ingest of a source failed.",
    "almanac_fabric_age_seconds": "Time since the last observation of the fabric.",
    "almanac_fabric_devices": "Hosts with a name, unnamed adapters, switches and cables of the latest scan.",
    "almanac_vanished": "Hosts, switches and cables that earlier scans showed and the latest one does not.",
    "almanac_findings": "Problems that `almanac cluster check` finds on the latest fabric.",
    "almanac_check_findings": "Problems that one check of `almanac cluster check` finds.",
    "almanac_counters_age_seconds": "Time since the last sweep of port counters.",
    "almanac_ports_counted": "Ports whose error counters were compared over the last period.",
    "almanac_ports_with_errors": "Ports that counted an error in the last period.",
    "almanac_ports_over_limit": "Ports whose errors grew beyond a limit in the last period.",
    "almanac_ports_full": "Ports with an error counter that is full and counts no more.",
    "almanac_errors": "Growth of an error counter in the last period, all ports together.",
    "almanac_port_errors": "Growth of an error counter in the last period, of the ports with most errors.",
    "almanac_port_error_limit_ratio": (
        "Largest growth over its limit of the ports with most errors; above 1: faulty."
    ),
    "almanac_flapping_link_downs": "How often the cables that flap went down in the last period.",
    "almanac_network_use_ratio": (
        "Measured data rate of all links between switches over their capacity, between the last two sweeps."
    ),
    "almanac_link_use_ratio": (
        "Measured data rate over capacity of the busiest links, between the last two sweeps."
    ),
    "almanac_running_jobs": "Running jobs, by whether their load on the links is known.",
    "almanac_link_load_seconds": (
        "Time that the links with most load need for the running jobs' data of an iteration."
    ),
    "almanac_link_estimated_use_ratio": (
        "The same load over capacity, scaled to the measured traffic of the links between switches."
    ),
    "almanac_link_job_part_ratio": "Part of a running job in the load of such a link.",
    "almanac_placement_over_in_order_ratio": (
        "Worst link of an application's last placement over that of its ranks in order."
    ),
    "almanac_placement_over_bound_ratio": (
        "Worst link of an application's last placement over the certified lower bound."
    ),
    "almanac_stored_records": "Stored records of a kind, by cluster.",
    "almanac_stored_bytes": "Size of the arrays of stored records of a kind, by cluster.",
    "almanac_disk_free_bytes": "Free space on the disk of the embedded server.",
    "almanac_files_bytes": "Size of the embedded server's files, with the space of deleted data.",
    "almanac_placement_regressed": "1 if an application's last placement exceeds its control limit.",
    "almanac_database_up": "1 if the service can use the database.",
    "almanac_spool_entries": "Ingests in the spool that wait for the database, and rejected ones.",
    "almanac_spool_oldest_age_seconds": "Time since the oldest waiting ingest was queued; 0 if none waits.",
    "almanac_task_age_seconds": "Time since the last success of a task of the service.",
    "almanac_task_failing": "1 if the last run of a task of the service failed.",
}
"""Gauges, whose names end with the unit, and their descriptions."""


class Gauges:
    """Values of the gauges in `ABOUT`, each with labels."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._gauges: dict[str, Gauge] = {}

    def add(self, name: str, value: float, **labels: str) -> None:
        """Add the value of a gauge."""
        if name not in self._gauges:
            self._gauges[name] = Gauge(name, ABOUT[name], list(labels), registry=self._registry)
        gauge = self._gauges[name]
        (gauge.labels(**labels) if labels else gauge).set(value)

    def text(self) -> str:
        """Return the gauges in the text format of Prometheus."""
        return generate_latest(self._registry).decode()


def read_gauges(registry: Registry, hottest: int = HOTTEST, limits: ErrorLimits | None = None) -> Gauges:
    """Return the gauges of all clusters, sources and applications.

    Args:
        hottest: Busiest links, ports with most errors and cables that flap, of each cluster.
        limits: Limits of error counters.
    """
    gauges, now = Gauges(), datetime.now(UTC)
    for source in registry.runs.sources():
        labels = {"cluster": source.cluster, "source": source.format or "unknown"}
        age = source.age(now)
        if age is not None:
            gauges.add("almanac_source_age_seconds", age.total_seconds(), **labels)
        if source.known:
            gauges.add("almanac_source_failing", float(source.last_outcome == "failed"), **labels)
    for info in registry.fabrics.clusters():
        seen = (now - info.last_observed_at).total_seconds()
        gauges.add("almanac_fabric_age_seconds", seen, cluster=info.name)
        for kind in ("hosts", "unnamed", "switches", "cables"):
            gauges.add("almanac_fabric_devices", getattr(info, kind), cluster=info.name, kind=kind)
        subject = subject_of(registry, info.name, limits=limits)
        _add_findings(gauges, info.name, check(subject), hottest)
        if subject.port_errors is not None:
            ended = subject.port_errors.grown.end
            gauges.add("almanac_counters_age_seconds", (now - ended).total_seconds(), cluster=info.name)
            _add_errors(gauges, info.name, subject.fabric, subject.port_errors, hottest)
        _add_use(gauges, registry, info.name, hottest)
    _add_placements(gauges, registry)
    _add_sizes(gauges, registry)
    return gauges


def _add_sizes(gauges: Gauges, registry: Registry) -> None:
    """Add what is stored, and the free space on the disk of the embedded server."""
    for size in stored_sizes(registry.database):
        labels = {"cluster": size.cluster, "kind": size.kind}
        gauges.add("almanac_stored_records", size.count, **labels)
        gauges.add("almanac_stored_bytes", size.bytes, **labels)
    free = free_bytes(registry.database)
    if free is not None:
        gauges.add("almanac_disk_free_bytes", free)
    files = file_bytes(registry.database)
    if files is not None:
        gauges.add("almanac_files_bytes", files)


def _add_findings(gauges: Gauges, cluster: str, found: Sequence[Finding], most: int) -> None:
    """Add the number of findings by severity and by check, and the cables that went down most often."""
    for severity in Severity:
        count = sum(finding.severity == severity for finding in found)
        gauges.add("almanac_findings", count, cluster=cluster, severity=str(severity))
    for one in CHECKS:
        count = sum(finding.check == one.name for finding in found)
        gauges.add("almanac_check_findings", count, cluster=cluster, check=one.name)
    missed = [finding for finding in found if finding.check == VANISHED]
    for kind, plural in (("host", "hosts"), ("switch", "switches"), ("cable", "cables")):
        count = sum(finding.count for finding in missed if finding.group == kind)
        gauges.add("almanac_vanished", count, cluster=cluster, kind=plural)
    for finding in [finding for finding in found if finding.check == FLAPPING][:most]:
        gauges.add("almanac_flapping_link_downs", finding.count, cluster=cluster, cable=finding.subject)


def _add_errors(gauges: Gauges, cluster: str, fabric: Fabric, errors: PortErrors, most: int) -> None:
    """Add the growth of error counters: of all ports together, and of those with most errors."""
    for name, ports in (
        ("almanac_ports_counted", len(errors.grown)),
        ("almanac_ports_with_errors", (errors.amount > 0).any(axis=1).sum()),
        ("almanac_ports_over_limit", errors.over.any(axis=1).sum()),
        ("almanac_ports_full", errors.saturated.any(axis=1).sum()),
    ):
        gauges.add(name, float(ports), cluster=cluster)
    for name, total in zip(errors.names, errors.amount.sum(axis=0).tolist(), strict=True):
        gauges.add("almanac_errors", total, cluster=cluster, counter=name)
    excess = errors.excess
    for row in np.argsort(-excess, kind="stable")[:most].tolist():
        if excess[row] > 0:
            ends = {"device": errors.device[row], "port": str(int(errors.grown.port[row])), "to": ""}
            if errors.link[row] >= 0:
                ends = _ends(fabric, int(errors.link[row]))
            gauges.add("almanac_port_error_limit_ratio", float(excess[row]), cluster=cluster, **ends)
            for name, amount in zip(errors.names, errors.amount[row].tolist(), strict=True):
                if amount:
                    gauges.add("almanac_port_errors", amount, cluster=cluster, counter=name, **ends)


def _add_use(gauges: Gauges, registry: Registry, cluster: str, most: int) -> None:
    """Add measured and estimated utilisation of the network and of its busiest links."""
    try:
        live = traffic(registry, cluster)
    except UnknownName:  # the clock of the first observation is ahead
        return
    fabric, shared, at = live.fabric, live.shared, live.running.at
    for state, count in (("known", len(shared)), ("unknown", len(live.running.jobs) - len(shared))):
        gauges.add("almanac_running_jobs", count, cluster=cluster, load=state)
    measured = np.full(len(fabric.links), np.nan)
    with suppress(UnknownName):  # fewer than two sweeps of port counters
        rates = registry.counters.rates(cluster, at)
        measured = rates.bytes_per_second
        for row in rates.hottest(most).tolist():
            gauges.add(
                "almanac_link_use_ratio", float(rates.share[row]), cluster=cluster, **_ends(fabric, row)
            )
    estimate = against_counters(fabric, shared.link_bytes, measured)
    known = fabric.network_link & ~np.isnan(measured)
    if known.any():
        ratio = float(measured[known].sum() / fabric.links.capacity[known].sum())
        gauges.add("almanac_network_use_ratio", ratio, cluster=cluster)
    for link in shared.hottest(most):
        labels = {"cluster": cluster, **_ends(fabric, link.row)}
        gauges.add("almanac_link_load_seconds", link.load.seconds, **labels)
        if np.isfinite(estimate.predicted_share[link.row]):
            share = float(estimate.predicted_share[link.row])
            gauges.add("almanac_link_estimated_use_ratio", share, **labels)
        for user in link.users[:JOBS]:
            gauges.add("almanac_link_job_part_ratio", user.part, **labels, job_id=user.job)


def _ends(fabric: Fabric, row: int) -> dict[str, str]:
    """Return the labels of a link: the port that it leaves, and the device at the other end.

    The device is the adapter if several adapters of a host have a port of that number.
    """
    links = fabric.links
    return {
        "device": link_text(fabric, row).rpartition(":")[0],
        "port": str(int(links.source_port[row])),
        "to": fabric.names[int(links.target[row])],
    }


def _add_placements(gauges: Gauges, registry: Registry) -> None:
    """Add the quality of each application's last evaluated placement."""
    series = registry.placements.series()
    worst, judged = series.congestion_seconds, judge(series)
    rows = np.flatnonzero(np.isfinite(worst)).tolist()
    last = {(series.cluster[row], series.application[row]): row for row in rows if series.application[row]}
    for (cluster, application), row in sorted(last.items()):
        labels = {"cluster": cluster, "application": application}
        for name, base in (
            ("almanac_placement_over_in_order_ratio", series.in_order_congestion_seconds[row]),
            ("almanac_placement_over_bound_ratio", series.bound_congestion_seconds[row]),
        ):
            if base > 0:
                gauges.add(name, float(worst[row] / base), **labels)
        if np.isfinite(judged.limit[row]):
            gauges.add("almanac_placement_regressed", float(judged.regression[row]), **labels)
