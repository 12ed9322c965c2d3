"""The placement request: what to place, where and how, with all data by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mapping.distances.cost_model import CostModel
from mapping.placement.search.options import SearchOptions
from registry.model import HostOrder, Time
from registry.model.hosts import HostLayout
from registry.model.views import one_line
from registry.store.jobs import StoredJob
from registry.store.placement_rows import StoredPlacement
from registry.store.profiles import StoredProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """A profile to place, or a placement to evaluate, by the names of the data.

    Attributes
    ----------
    profile : str or StoredProfile
        Name or id.
    job : str, StoredJob or None
        Job whose hosts and slots are used.
    cluster : str or None
        Cluster of the hosts, or of the job if two clusters have a job of that id.
    hosts : tuple of str or None
        Hosts of `cluster` in launch order, instead of a job.
    slots : int, tuple of int or None
        Ranks per host; default: the job's, else 1.
    keep : str, StoredPlacement, HostOrder or None
        Present placement, by the id of a saved one or by hosts. Without a job and hosts, its hosts are the
        allocation.
    costs : CostModel
        Routing, rails, distances and the load of other jobs, such as all that run
        (`mapping.service.live.with_running_jobs`).
    background : tuple of (str, float or None)
        Other jobs by the ids of saved placements, instead of a background of the cost model, with the seconds
        in which each sends its profile; None: in the same period as this one.
    at : datetime, str or None
        Time of the fabric, also as ISO text; default: now.
    options : SearchOptions
    pins : mapping of int to str or int
        Rank -> the host that it must be on.
    layouts : mapping of str to HostLayout
        Host layouts by name, or under `mapping.placement.partition.cores.ALL`; they override those of the
        registry.
    """

    profile: str | StoredProfile = ""
    job: str | StoredJob | None = None
    cluster: str | None = None
    hosts: tuple[str, ...] | None = None
    slots: int | tuple[int, ...] | None = None
    keep: str | StoredPlacement | HostOrder | None = None
    costs: CostModel = field(default_factory=CostModel)
    background: tuple[tuple[str, float | None], ...] = ()
    at: Time | None = None
    options: SearchOptions = field(default_factory=SearchOptions)
    pins: Mapping[int, str | int] = field(default_factory=dict)
    layouts: Mapping[str, HostLayout] = field(default_factory=dict)

    __repr__ = one_line

    @property
    def job_id(self) -> str | None:
        """The scheduler's id of the job."""
        return self.job.job.id if isinstance(self.job, StoredJob) else self.job
