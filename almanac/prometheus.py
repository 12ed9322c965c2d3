"""Gauges for Prometheus: age of the data, problems, busiest links, placement quality."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mapping.checks.catalog import check
from mapping.checks.finding import Severity, Subject
from mapping.service.placing import subject_of
from mapping.traffic.quality import judge
from registry.errors import UnknownName

if TYPE_CHECKING:
    from registry.model import Fabric
    from registry.registry import Registry

HOTTEST = 10
"""Default number of links per cluster: each adds a time series to the monitoring database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A number with a name and labels.

    Attributes
    ----------
    name, about : str
        Name, which ends with the unit, and description.
    labels : tuple of (str, str)
    value : float
    """

    name: str
    about: str
    labels: tuple[tuple[str, str], ...]
    value: float


def text(gauges: Iterable[Gauge]) -> str:
    """Return gauges in the text format of Prometheus, those of one name together."""
    families: dict[str, GaugeMetricFamily] = {}
    for gauge in gauges:
        family = families.get(gauge.name)
        if family is None:
            names = [name for name, _ in gauge.labels]
            family = families[gauge.name] = GaugeMetricFamily(gauge.name, gauge.about, labels=names)
        family.add_metric([value for _, value in gauge.labels], gauge.value)
    registry = CollectorRegistry()
    registry.register(_Families(list(families.values())))
    return generate_latest(registry).decode()


class _Families(Collector):
    """A source of metrics for the library's registry."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def gauges(registry: Registry, now: datetime | None = None, hottest: int = HOTTEST) -> Iterator[Gauge]:
    """Return the gauges of all clusters, sources and applications.

    Parameters
    ----------
    now : datetime, optional
        Time that ages refer to; default: the present.
    hottest : int
        Busiest links of each cluster with port counters.
    """
    moment = datetime.now(UTC) if now is None else now
    yield from _sources(registry, moment)
    for info in registry.fabrics.clusters():
        subject = subject_of(registry, info.name)
        yield Gauge(
            name="almanac_fabric_age_seconds",
            about="Time since the last observation of the fabric.",
            labels=(("cluster", info.name),),
            value=(moment - info.last_observed_at).total_seconds(),
        )
        yield from _problems(info.name, subject)
        yield from _busiest_links(registry, info.name, subject.fabric, hottest)
    yield from _placements(registry)


def _sources(registry: Registry, moment: datetime) -> Iterator[Gauge]:
    """Return the age of each source's last successful ingest, and whether its last ingest failed."""
    for source in registry.runs.sources():
        labels = (("cluster", source.cluster), ("source", source.format or "unknown"))
        if source.last_good_at is not None:
            yield Gauge(
                name="almanac_source_age_seconds",
                about="Time since the last successful ingest of a source.",
                labels=labels,
                value=(moment - source.last_good_at).total_seconds(),
            )
        yield Gauge(
            name="almanac_source_failing",
            about="1 if the last ingest of a source failed.",
            labels=labels,
            value=float(source.last_outcome == "failed"),
        )


def _problems(cluster: str, subject: Subject) -> Iterator[Gauge]:
    found = check(subject)
    for severity in Severity:
        yield Gauge(
            name="almanac_findings",
            about="Problems that `almanac cluster check` finds on the latest fabric.",
            labels=(("cluster", cluster), ("severity", str(severity))),
            value=float(sum(finding.severity == severity for finding in found)),
        )


def _busiest_links(registry: Registry, cluster: str, fabric: Fabric, most: int) -> Iterator[Gauge]:
    """Return the links with the highest measured utilisation."""
    try:
        rates = registry.counters.rates(cluster)
    except UnknownName:  # fewer than two sweeps of port counters
        return
    for row in rates.hottest(most).tolist():
        yield Gauge(
            name="almanac_link_use_ratio",
            about="Measured data rate over capacity of the busiest links, between the last two sweeps.",
            labels=(
                ("cluster", cluster),
                ("device", fabric.names[int(fabric.links.source[row])]),
                ("port", str(int(fabric.links.source_port[row]))),
                ("to", fabric.names[int(fabric.links.target[row])]),
            ),
            value=float(rates.share[row]),
        )


def _placements(registry: Registry) -> Iterator[Gauge]:
    """Return the quality of each application's last evaluated placement."""
    series = registry.placements.series()
    worst, judged = series.congestion_seconds, judge(series)
    rows = np.flatnonzero(np.isfinite(worst)).tolist()
    last = {(series.cluster[row], series.application[row]): row for row in rows if series.application[row]}
    for (cluster, application), row in sorted(last.items()):
        labels = (("cluster", cluster), ("application", application))
        for name, other, base in (
            ("in_order", "that of its ranks in order", series.in_order_congestion_seconds[row]),
            ("bound", "the certified lower bound", series.bound_congestion_seconds[row]),
        ):
            if base > 0:
                yield Gauge(
                    name=f"almanac_placement_over_{name}_ratio",
                    about=f"Worst link of an application's last placement over {other}.",
                    labels=labels,
                    value=float(worst[row] / base),
                )
        if np.isfinite(judged.limit[row]):
            yield Gauge(
                name="almanac_placement_regressed",
                about="1 if an application's last placement exceeds its control limit.",
                labels=labels,
                value=float(judged.regression[row]),
            )
