"""Data of the fabric page and of the what-if page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.queries.caching import cached_placement
from dashboard.queries.traffic import cached_traffic
from mapping.service.live import Live
from registry.counters.counters import rates_of
from registry.errors import UnknownName
from registry.fabrics.fabrics import ClusterInfo, Snapshot
from registry.model import Fabric, Floats, LinkRates
from registry.pages.changes import Timeline
from registry.pages.fabric import FabricHistory, read_fabric_history
from registry.pages.placements import OpenPlacement
from registry.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FabricView:
    """Data of the fabric page.

    Attributes
    ----------
    cluster : ClusterInfo
    timeline : Timeline
        States of the cluster's wiring.
    at : datetime or None
        Requested time, or None for now.
    live : Live or None
        Traffic of the running jobs, or None if a placement is shown.
    opened : OpenPlacement or None
        Placement whose traffic is shown instead, on the fabric it was computed for.
    rates : LinkRates or None
        Rates measured by port counters, or None if there are none or they were not requested.
    link_bytes : float64[m] or None
        Estimated bytes per period on each link, or None if no traffic is known.
    """

    cluster: ClusterInfo
    timeline: Timeline
    at: datetime | None
    live: Live | None
    opened: OpenPlacement | None
    rates: LinkRates | None
    link_bytes: Floats | None

    @property
    def snapshot(self) -> Snapshot:
        """The fabric that is shown."""
        if self.opened is not None:
            return self.opened.snapshot
        assert self.live is not None
        return self.live.running.snapshot

    @property
    def fabric(self) -> Fabric:
        """The fabric that is shown."""
        return self.snapshot.fabric


def seen_clusters(
    registry: Registry, cluster: str | None, at: datetime | None, *, counters: bool = False
) -> FabricHistory:
    """Return all clusters, and one of them at a time: one statement.

    Raises
    ------
    UnknownName
        There are clusters, but none with that name.
    """
    return read_fabric_history(registry.database, cluster, at, counters=counters)


def fabric_view(
    registry: Registry, found: FabricHistory, at: datetime | None, placement: str | None
) -> FabricView:
    """Return a cluster's fabric with the traffic of the running jobs, or of a placement.

    One statement for a placement, those of `cached_traffic` for running jobs, none if it is cached.

    Raises
    ------
    UnknownName
        No observation of the cluster until then, or no such placement.
    """
    line = found.timeline
    assert line is not None
    cluster = found.clusters[line.cluster]
    opened = None if placement is None else cached_placement(registry, placement)
    if opened is not None and opened.stored.cluster != cluster.name:
        raise UnknownName(
            "placement", placement or "", remedy=f"it belongs to cluster {opened.stored.cluster}"
        )
    live = cached_traffic(registry, cluster, at) if opened is None else None
    fabric = live.fabric if live is not None else opened.snapshot.fabric if opened is not None else None
    assert fabric is not None
    return FabricView(
        cluster=cluster,
        timeline=line,
        at=at,
        live=live,
        opened=opened,
        rates=rates_of(fabric, found.sweeps),
        link_bytes=_link_bytes(live, opened),
    )


def _link_bytes(live: Live | None, opened: OpenPlacement | None) -> Floats | None:
    if opened is not None:
        return None if opened.stored.evaluation is None else opened.stored.evaluation.link_bytes
    return live.shared.link_bytes if live is not None and len(live.shared) else None
