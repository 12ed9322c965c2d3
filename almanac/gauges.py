"""What monitoring asks of the registry, as gauges: how fresh, how sound, how hot, how well placed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from mapping.checks.catalog import check
from mapping.checks.finding import Severity, Subject
from mapping.service import subject_of
from mapping.traffic.quality import judge
from registry.errors import UnknownName

if TYPE_CHECKING:
    from registry.model import Fabric
    from registry.registry import Registry

HOTTEST = 10
"""Links of a cluster that are told: labels are dear in a time series database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One number with its labels.

    Attributes
    ----------
    name, about : str
        The name carries the unit.
    labels : tuple of (str, str)
    value : float
    """

    name: str
    about: str
    labels: tuple[tuple[str, str], ...]
    value: float


def gauges(registry: Registry, now: datetime | None = None, hottest: int = HOTTEST) -> Iterator[Gauge]:
    """Every gauge of every cluster.

    Parameters
    ----------
    now : datetime, optional
        That ages are counted to.
    hottest : int
        Links that are told of a cluster with counters.
    """
    moment = datetime.now(UTC) if now is None else now
    yield from _sources(registry, moment)
    for info in registry.fabrics.clusters():
        subject = subject_of(registry, info.name)
        yield Gauge(
            name="almanac_fabric_age_seconds",
            about="Time since the fabric was last seen.",
            labels=(("cluster", info.name),),
            value=(moment - info.last_observed_at).total_seconds(),
        )
        yield from _findings(info.name, subject)
        yield from _hottest(registry, info.name, subject.fabric, hottest)
    yield from _placements(registry)


def _sources(registry: Registry, moment: datetime) -> Iterator[Gauge]:
    for source in registry.runs.sources():
        labels = (("cluster", source.cluster), ("source", source.format or "unknown"))
        if source.last_good_at is not None:
            yield Gauge(
                name="almanac_source_age_seconds",
                about="Time since the last good ingest of a source.",
                labels=labels,
                value=(moment - source.last_good_at).total_seconds(),
            )
        yield Gauge(
            name="almanac_source_failing",
            about="1 where the last ingest of a source failed.",
            labels=labels,
            value=float(source.last_outcome == "failed"),
        )


def _findings(cluster: str, subject: Subject) -> Iterator[Gauge]:
    found = check(subject)
    for severity in Severity:
        yield Gauge(
            name="almanac_findings",
            about="Findings of `almanac cluster check` on the fabric as last seen.",
            labels=(("cluster", cluster), ("severity", str(severity))),
            value=float(sum(finding.severity == severity for finding in found)),
        )


def _hottest(registry: Registry, cluster: str, fabric: Fabric, most: int) -> Iterator[Gauge]:
    """The links with the largest share of their capacity in use, as counted."""
    try:
        rates = registry.counters.rates(cluster)
    except UnknownName:  # no two sweeps of counters: nothing is counted of this cluster
        return
    for row in rates.hottest(most).tolist():
        yield Gauge(
            name="almanac_link_use_ratio",
            about="Counted data rate over capacity of the hottest links, between the last two sweeps.",
            labels=(
                ("cluster", cluster),
                ("device", fabric.names[int(fabric.links.source[row])]),
                ("port", str(int(fabric.links.source_port[row]))),
                ("to", fabric.names[int(fabric.links.target[row])]),
            ),
            value=float(rates.share[row]),
        )


def _placements(registry: Registry) -> Iterator[Gauge]:
    """Of each application's last placement that was evaluated."""
    series = registry.placements.series()
    worst, judged = series.congestion_seconds, judge(series)
    told = np.flatnonzero(np.isfinite(worst)).tolist()
    last = {(series.cluster[row], series.application[row]): row for row in told if series.application[row]}
    for (cluster, application), row in sorted(last.items()):
        labels = (("cluster", cluster), ("application", application))
        if series.in_order_congestion_seconds[row] > 0:
            yield Gauge(
                name="almanac_placement_over_in_order_ratio",
                about="Worst link of an application's last placement, over that of its ranks in order.",
                labels=labels,
                value=float(worst[row] / series.in_order_congestion_seconds[row]),
            )
        if series.bound_congestion_seconds[row] > 0:
            yield Gauge(
                name="almanac_placement_over_bound_ratio",
                about="Worst link of an application's last placement, over the certified lower bound.",
                labels=labels,
                value=float(worst[row] / series.bound_congestion_seconds[row]),
            )
        if np.isfinite(judged.limit[row]):
            yield Gauge(
                name="almanac_placement_regressed",
                about="1 where an application's last placement is over its control limit.",
                labels=labels,
                value=float(judged.regression[row]),
            )
