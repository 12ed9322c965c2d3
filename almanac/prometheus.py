"""Gauges for Prometheus: age of the data, problems, busiest links, placement quality."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from mapping.checks.catalog import check
from mapping.checks.finding import Severity
from mapping.service.placing import subject_of
from mapping.traffic.quality import judge
from registry.errors import UnknownName

if TYPE_CHECKING:
    from registry.model import Fabric
    from registry.registry import Registry

HOTTEST = 10
"""Default number of links per cluster: each adds a time series to the monitoring database."""
ABOUT = {
    "almanac_source_age_seconds": "Time since the last successful ingest of a source.",
    "almanac_source_failing": "1 if the last ingest of a source failed.",
    "almanac_fabric_age_seconds": "Time since the last observation of the fabric.",
    "almanac_findings": "Problems that `almanac cluster check` finds on the latest fabric.",
    "almanac_link_use_ratio": (
        "Measured data rate over capacity of the busiest links, between the last two sweeps."
    ),
    "almanac_placement_over_in_order_ratio": (
        "Worst link of an application's last placement over that of its ranks in order."
    ),
    "almanac_placement_over_bound_ratio": (
        "Worst link of an application's last placement over the certified lower bound."
    ),
    "almanac_placement_regressed": "1 if an application's last placement exceeds its control limit.",
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
        self._gauges[name].labels(**labels).set(value)

    def text(self) -> str:
        """Return the gauges in the text format of Prometheus."""
        return generate_latest(self._registry).decode()


def read_gauges(registry: Registry, hottest: int = HOTTEST) -> Gauges:
    """Return the gauges of all clusters, sources and applications.

    Parameters
    ----------
    hottest : int
        Busiest links of each cluster with port counters.
    """
    gauges, now = Gauges(), datetime.now(UTC)
    for source in registry.runs.sources():
        labels = {"cluster": source.cluster, "source": source.format or "unknown"}
        if source.last_good_at is not None:
            age = (now - source.last_good_at).total_seconds()
            gauges.add("almanac_source_age_seconds", age, **labels)
        if source.known:
            gauges.add("almanac_source_failing", float(source.last_outcome == "failed"), **labels)
    for info in registry.fabrics.clusters():
        age = (now - info.last_observed_at).total_seconds()
        gauges.add("almanac_fabric_age_seconds", age, cluster=info.name)
        subject = subject_of(registry, info.name)
        found = check(subject)
        for severity in Severity:
            count = sum(finding.severity == severity for finding in found)
            gauges.add("almanac_findings", count, cluster=info.name, severity=str(severity))
        _add_busiest_links(gauges, registry, info.name, subject.fabric, hottest)
    _add_placements(gauges, registry)
    return gauges


def _add_busiest_links(gauges: Gauges, registry: Registry, cluster: str, fabric: Fabric, most: int) -> None:
    """Add the links with the highest measured utilisation."""
    try:
        rates = registry.counters.rates(cluster)
    except UnknownName:  # fewer than two sweeps of port counters
        return
    links = fabric.links
    for row in rates.hottest(most).tolist():
        ends = {"device": fabric.names[int(links.source[row])], "port": str(int(links.source_port[row]))}
        ends["to"] = fabric.names[int(links.target[row])]
        gauges.add("almanac_link_use_ratio", float(rates.share[row]), cluster=cluster, **ends)


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
