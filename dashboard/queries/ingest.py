"""What the ingest page shows: how each source does, and the last runs."""

from __future__ import annotations

from dataclasses import dataclass

from registry.ingest_runs.runs import RunInfo, SourceState
from registry.registry import Registry

RUNS = 1000
"""Runs that are shown at most, the newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestView:
    """What the ingest page shows.

    Attributes
    ----------
    sources : tuple of SourceState
        Of all clusters.
    runs : tuple of RunInfo
        Of the cluster that was asked for or of all, the newest first.
    """

    sources: tuple[SourceState, ...]
    runs: tuple[RunInfo, ...]

    @property
    def clusters(self) -> list[str]:
        """Clusters that a run named, by name."""
        return sorted({source.cluster for source in self.sources if source.cluster})


def ingest_view(registry: Registry, cluster: str | None) -> IngestView:
    """Sources and runs: two statements."""
    return IngestView(sources=registry.runs.sources(), runs=registry.runs.list(cluster, RUNS))
