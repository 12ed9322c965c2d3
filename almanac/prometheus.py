"""Gauges as the text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from almanac.gauges import Gauge


def text(gauges: Iterable[Gauge]) -> str:
    """The gauges in the text exposition format, those of one name together."""
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
    """What the library collects from."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families
