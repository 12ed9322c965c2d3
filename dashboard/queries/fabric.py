"""What the fabric page asks of the registry."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.queries.caching import open_kept
from dashboard.queries.live import live_kept
from mapping.service import Live
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
    """What the fabric page shows.

    Attributes
    ----------
    cluster : ClusterInfo
    timeline : Timeline
        Its states.
    at : datetime or None
        Time that is asked for; None is now.
    live : Live or None
        The running jobs' traffic; None where a placement is shown.
    opened : OpenPlacement or None
        The placement whose traffic is shown instead, on the fabric that it was made for.
    rates : LinkRates or None
        What ports counted; None where nothing was counted, or it was not asked for.
    link_bytes : float64[m] or None
        Predicted bytes a period on each link; None where no traffic is known.
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
    """All clusters, and one of them in time: one statement.

    Raises
    ------
    UnknownName
        There are clusters, but none of that name.
    """
    return read_fabric_history(registry.database, cluster, at, counters=counters)


def fabric_view(
    registry: Registry, found: FabricHistory, at: datetime | None, placement: str | None
) -> FabricView:
    """A cluster's fabric with the traffic of the running jobs, or of a placement.

    One statement for a placement; for running jobs those of `live_kept`; none when asked for again.

    Raises
    ------
    UnknownName
        Nothing was seen of the cluster until then, or no such placement.
    """
    line = found.timeline
    assert line is not None
    cluster = found.clusters[line.cluster]
    opened = None if placement is None else open_kept(registry, placement)
    if opened is not None and opened.stored.cluster != cluster.name:
        raise UnknownName("placement", placement or "", remedy=f"it is of cluster {opened.stored.cluster}")
    live = live_kept(registry, cluster, at) if opened is None else None
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
