"""Times of ingests of a scan, of one sweep of counters and of an hour's jobs, without parsing their files."""

from __future__ import annotations

import time
from dataclasses import replace

from bench.year.reads import summary
from bench.year.writing import History
from registry.registry import Registry

HOURS = 3


def measure_ingests(registry: Registry, history: History, hours: int = HOURS) -> dict[str, dict[str, float]]:
    """Save the next hours of a history by `Registry.save`, each file alone; return the times of each kind."""
    seconds: dict[str, list[float]] = {"scan": [], "sweep": [], "jobs of an hour": []}
    for _ in range(hours):
        scan, counted, reported = history.hour()
        several = [("scan", scan), ("jobs of an hour", reported)]
        several[1:1] = [("sweep", replace(counted, counters=(sweep,))) for sweep in counted.counters]
        for name, intake in several:
            begin = time.perf_counter()
            registry.save(replace(intake, started_at=history.time))
            seconds[name].append(time.perf_counter() - begin)
    return {name: summary(values) for name, values in seconds.items()}
