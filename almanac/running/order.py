"""The order of the ranks: a stored placement of the same profile, hosts and fabric, or a new one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from almanac.job_environment import JobEnvironment
from almanac.running.call import Unplaced
from almanac.running.launchers import Launcher

if TYPE_CHECKING:
    from almanac.settings import Settings
    from mapping.evaluation.report import PlacementReport
    from registry.fabrics.fabrics import Snapshot
    from registry.model import Fabric, Placement
    from registry.profiles import StoredProfile
    from registry.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a run is to be placed for.

    Attributes
    ----------
    profile : str or None
        Name or id; default: the newest profile of the application with as many ranks.
    name : str or None
        Name of the application; default: that of the profile, else that of the program.
    program : str
    cluster : str or None
        Default: that of the job's environment, else the only one.
    in_order : bool
        True if the ranks are not to be placed.
    record : bool
        True if the profile is to be recorded, whatever profiles there are; in order.
    """

    profile: str | None = None
    name: str | None = None
    program: str = ""
    cluster: str | None = None
    in_order: bool = False
    record: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Where the ranks of a run are placed.

    Attributes
    ----------
    ranks : int
    text : str
        Content of the launcher's file; empty if the ranks run in order.
    hosts : tuple of str
        Host of each process that the launcher starts, which is each rank, or one on each host; empty if the
        ranks run in order.
    placement : str
        Id of the stored placement; empty if there is none.
    verified : bool
        True if this launcher was seen on this cluster to start ranks where an order has them.
    reasons : tuple of str
        What was found, as sentences.
    cluster, application : str
    profile : str or None
        Id of the profile; None if there is none yet.
    """

    ranks: int
    text: str = ""
    hosts: tuple[str, ...] = ()
    placement: str = ""
    verified: bool = False
    reasons: tuple[str, ...]
    cluster: str = ""
    application: str = ""
    profile: str | None = None


def import_modules() -> None:
    """Import what `order_of_run` needs for a known placement: that takes longer than all else it does."""
    import mapping.launchers.catalog
    import mapping.traffic.measured_gain  # noqa: F401
    import registry.registry  # noqa: F401
    from registry.database.driver import import_driver

    import_driver()


def order_of_run(
    settings: Settings, wanted: Wanted, job: JobEnvironment, launcher: Launcher, seconds: float
) -> Order:
    """Return the order of the ranks of a job by the registry of the settings; see `find_order`."""
    from registry.progress import silent

    with settings.open_registry(silent) as registry:
        return find_order(registry, wanted, job, launcher, seconds)


def find_order(
    registry: Registry, wanted: Wanted, job: JobEnvironment, launcher: Launcher, seconds: float
) -> Order:
    """Return the order of the ranks of a job.

    Parameters
    ----------
    seconds : float
        Longest time to search.

    Raises
    ------
    Unplaced
        The profile has another number of ranks, no cluster is named and there are several, or the launcher
        was seen to start ranks elsewhere.
    AlmanacError
        The search fails, or names are not known.
    """
    assert job.ranks is not None
    cluster = cluster_of(registry, wanted.cluster, job)
    application = wanted.name or wanted.program
    profile = wanted.profile
    if profile is None and not wanted.record:
        profile = _newest_profile(registry, application, job.ranks)
    if wanted.record:
        return Order(ranks=job.ranks, reasons=("it is recorded",), cluster=cluster, application=application)
    if profile is None:
        reason = f"no profile of {application} with {job.ranks} ranks is stored"
        return Order(ranks=job.ranks, reasons=(reason,), cluster=cluster, application=application)
    stored = registry.profiles.read(profile)
    if stored.profile.ranks != job.ranks:
        raise Unplaced(f"profile {profile} has {stored.profile.ranks} ranks, this run has {job.ranks}")
    snapshot = registry.fabrics.read(cluster)
    order = Order(
        ranks=job.ranks,
        reasons=(),
        cluster=cluster,
        application=wanted.name or stored.profile.application or application,
        profile=stored.id,
    )
    if wanted.in_order:
        return replace(order, reasons=("in order, as asked",))
    tried = registry.measured_runs.verified(cluster, launcher.name)
    if tried is not None and not tried[0]:
        raise Unplaced(
            f"{launcher.name} started ranks on other hosts than asked for when that was tried on {cluster}, "
            f"{tried[1]:%Y-%m-%d %H:%M} UTC; almanac doctor --launchers tries it again"
        )
    order = replace(order, verified=tried is not None)
    return _placed(registry, order, stored, snapshot, job, launcher, seconds)


def _placed(
    registry: Registry,
    order: Order,
    profile: StoredProfile,
    snapshot: Snapshot,
    job: JobEnvironment,
    launcher: Launcher,
    seconds: float,
) -> Order:
    """Return the order of a stored placement or a new one, unless such a one measured worse than in order."""
    from mapping.traffic.measured_gain import worse_orders
    from registry.jobs.allocations import HostSlots

    runs = registry.measured_runs.list(order.cluster, order.application)
    worse = worse_orders(run for run in runs if (run.hosts, run.slots) == (job.hosts, job.slots))
    allocation = HostSlots(cluster=snapshot.cluster, hosts=job.hosts, slots=job.slots)
    known = registry.placements.best(
        snapshot.id,
        snapshot.routing,
        profile.id,
        allocation,
        tuple(worse),
        consecutive=launcher.consecutive,
    )
    if known is not None:
        found = registry.placements.read(known)
        reason = f"placement {known} of the same profile and hosts"
        return _with_ranks(
            replace(order, placement=known, reasons=(reason,)), found.placement, snapshot.fabric, launcher
        )
    if worse:
        return replace(order, reasons=tuple(f"in order: {one.text}" for one in worse.values()))
    report = _search(registry, order.cluster, profile, job, launcher, seconds)
    if report.measured:
        return replace(order, reasons=(f"in order: {report.measured}",))
    reasons = [f"a new placement, searched for {report.placement.seconds:.1f} s"]
    if report.unsaved:
        reasons.append(f"not saved: {report.unsaved}")
    order = replace(order, placement=report.record_id, reasons=tuple(reasons))
    return _with_ranks(order, report.placement, snapshot.fabric, launcher)


def _with_ranks(order: Order, placement: Placement, fabric: Fabric, launcher: Launcher) -> Order:
    """Return an order with the hosts of a placement and the launcher's file."""
    from mapping.launchers.catalog import write

    hosts = tuple(fabric.names[host] for host in placement.host_of_rank.tolist())
    if launcher.consecutive:
        hosts = tuple(dict.fromkeys(hosts))
    return replace(order, hosts=hosts, text=write(launcher.format, placement, fabric))


def _search(
    registry: Registry,
    cluster: str,
    profile: StoredProfile,
    job: JobEnvironment,
    launcher: Launcher,
    seconds: float,
) -> PlacementReport:
    """Search a placement, and save it for the next run."""
    from mapping.placement.search.options import SearchOptions  # numba, which a known placement does not need
    from mapping.service.placing import place
    from mapping.service.request import PlacementRequest

    options = SearchOptions(seconds=seconds, consecutive=launcher.consecutive)
    request = PlacementRequest(
        profile=profile, cluster=cluster, hosts=job.hosts, slots=job.slots, options=options
    )
    return place(registry, request)


def _newest_profile(registry: Registry, application: str, ranks: int) -> str | None:
    """Return the id of the newest profile of an application with so many ranks."""
    stored = registry.profiles.list()
    return next((one.id for one in stored if (one.application, one.ranks) == (application, ranks)), None)


def cluster_of(registry: Registry, wanted: str | None, job: JobEnvironment) -> str:
    """Return the wanted cluster, else that of the job, else the only one, or raise `Unplaced`."""
    if wanted or job.cluster:
        return wanted or job.cluster or ""
    names = [one.name for one in registry.fabrics.clusters()]
    if len(names) != 1:
        raise Unplaced(f"add --cluster NAME: the registry has {len(names)} clusters")
    return names[0]
