"""Data of the ingest page: the state of each source, and the latest runs."""

from __future__ import annotations

from dataclasses import dataclass

from registry.ingest_runs.runs import RunInfo, SourceState
from registry.registry import Registry

RUNS = 1000
"""Maximum number of runs shown; the newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestView:
    """Data of the ingest page.

    Attributes
    ----------
    sources : tuple of SourceState
        Sources of all clusters.
    runs : tuple of RunInfo
        Runs of the requested cluster or of all, newest first.
    """

    sources: tuple[SourceState, ...]
    runs: tuple[RunInfo, ...]

    @property
    def clusters(self) -> list[str]:
        """Names of the clusters of all sources, sorted."""
        return sorted({source.cluster for source in self.sources if source.cluster})


def ingest_view(registry: Registry, cluster: str | None) -> IngestView:
    """Return sources and runs: two statements."""
    return IngestView(sources=registry.runs.sources(), runs=registry.runs.list(cluster, RUNS))
