"""The order of the ranks: a stored placement of the same profile, hosts and fabric, or a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from almanac.job_environment import JobEnvironment
from almanac.running.launchers import Launcher
from registry.errors import Unplaced

if TYPE_CHECKING:
    from almanac.settings import Settings
    from mapping.cost.report import PlacementReport
    from registry.database.driver import Transaction
    from registry.model import Fabric, Placement
    from registry.registry import Registry


FOLDER = "orders"
"""Folder of the launchers' files within the program's own. Later versions read them: a changed format needs
another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a run is to be placed for."""

    profile: str | None = None
    """Name or id; default: the newest profile of the application with as many ranks."""
    name: str | None = None
    """Name of the application; default: that of the profile, else that of the program."""
    program: str = ""
    cluster: str | None = None
    """Default: that of the job's environment, else the only one."""
    in_order: bool = False
    """True if the ranks are not to be placed."""
    record: bool = False
    """True if the profile is to be recorded, whatever profiles there are; in order."""
    verify: bool = False
    """True if the launcher is to be verified unless it was: that needs the host of each rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Where the ranks of a run are placed."""

    ranks: int
    text: str = ""
    """Content of the launcher's file; empty if the ranks run in order."""
    hosts: tuple[str, ...] = ()
    """Host of each process that the launcher starts, which is each rank, or one on each host; empty if the
    ranks run in order."""
    placement: str = ""
    """Id of the stored placement; empty if there is none."""
    verified: bool = False
    """True if this launcher was seen on this cluster to start ranks where an order has them."""
    reasons: tuple[str, ...]
    """What was found, as sentences."""
    cluster: str = ""
    application: str = ""
    profile: str | None = None
    """Id of the profile; None if there is none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """Ids of what the registry has for a run."""

    cluster: str
    profile: tuple[str, int, str] | None = None
    """Id, ranks and application of the profile; None if there is none."""
    observed: tuple[str, str | None] = ("", None)
    """Ids of the latest snapshot of the cluster and of its forwarding tables, if it has any."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Name in the cluster of each host of the job that is known there."""


def import_modules() -> None:
    """Import what `order_of_run` needs for a known placement; numpy is not among it."""
    import registry.registry  # noqa: F401
    from registry.database.driver import import_driver

    import_driver()


def order_of_run(
    settings: Settings, wanted: Wanted, job: JobEnvironment, launcher: Launcher, seconds: float
) -> Order:
    """Return the order of the ranks of a job by the registry of the settings; see `find_order`."""
    from registry.progress import silent

    with settings.open_registry(silent) as registry:
        return find_order(registry, wanted, job, launcher, seconds, settings.home / FOLDER)


def order_path(folder: Path, placement: str, launcher: Launcher) -> Path:
    """Return the path of a launcher's file, named by the placement: a repeated run uses it again."""
    return folder / f"{placement or 'new'}.{launcher.format}"


def find_order(
    registry: Registry,
    wanted: Wanted,
    job: JobEnvironment,
    launcher: Launcher,
    seconds: float,
    folder: Path | None = None,
) -> Order:
    """Return the order of the ranks of a job.

    Args:
        seconds: Longest time to search.
        folder: Folder of the launchers' files: that of a known placement is used again.

    Raises:
        Unplaced: The profile has another number of ranks, no cluster is named and there are several, or the
            launcher was seen to start ranks elsewhere.
        AlmanacError: The search fails, or names are not known.
    """
    assert job.ranks is not None
    stored = registry.database.read(lambda transaction: _stored(transaction, wanted, job))
    cluster, profile, application = stored.cluster, stored.profile, wanted.name or wanted.program
    order = Order(ranks=job.ranks, reasons=("it is recorded",), cluster=cluster, application=application)
    if wanted.record:
        return order
    if profile is None:
        reason = f"no profile of {application} with {job.ranks} ranks is stored"
        return replace(order, reasons=(reason,))
    identity, ranks, its_application = profile
    if ranks != job.ranks:
        raise Unplaced(f"profile {wanted.profile} has {ranks} ranks, this run has {job.ranks}")
    order = replace(order, profile=identity, application=wanted.name or its_application or application)
    if wanted.in_order:
        return replace(order, reasons=("in order, as asked",))
    tried = registry.measured_runs.verified(cluster, launcher.name)
    if tried is not None and not tried[0]:
        raise Unplaced(
            f"{launcher.name} started ranks on other hosts than asked for when that was tried on {cluster}, "
            f"{tried[1]:%Y-%m-%d %H:%M} UTC; almanac doctor --launchers tries it again"
        )
    order = replace(order, verified=tried is not None)
    return _placed(registry, wanted, order, stored, job, launcher, seconds, folder)


def _placed(
    registry: Registry,
    wanted: Wanted,
    order: Order,
    stored: _Stored,
    job: JobEnvironment,
    launcher: Launcher,
    seconds: float,
    folder: Path | None,
) -> Order:
    """Return the order of a stored placement or a new one, unless such a one measured worse than in order."""
    from mapping.traffic.measured_gain import worse_orders
    from registry.store.allocations import HostSlots
    from registry.store.best_placements import best_placement

    assert order.profile is not None
    runs = registry.measured_runs.list(order.cluster, order.application)
    worse = worse_orders(run for run in runs if (run.hosts, run.slots) == (job.hosts, job.slots))
    known = best_placement(
        registry.database,
        *stored.observed,
        order.profile,
        HostSlots(
            cluster=order.cluster,
            hosts=tuple(stored.hosts.get(host, host) for host in job.hosts),
            slots=job.slots,
        ),
        tuple(worse),
        consecutive=launcher.consecutive,
    )
    if known is not None:
        reason = f"placement {known} of the same profile and hosts"
        order = replace(order, placement=known, reasons=(reason,))
        needs_hosts = wanted.verify and not order.verified and bool(launcher.label)
        written = None if needs_hosts or folder is None else _written(order, launcher, folder)
        return written or _with_ranks(
            order,
            registry.placements.read(known).placement,
            registry.fabrics.read_content(stored.observed[0]).fabric.named_as(job.hosts),
            launcher,
        )
    if worse:
        return replace(order, reasons=tuple(f"in order: {one.text}" for one in worse.values()))
    report = _search(registry, order, job, launcher, seconds)
    if report.measured:
        return replace(order, reasons=(f"in order: {report.measured}",))
    reasons = [f"a new placement, searched for {report.placement.seconds:.1f} s"]
    if report.unsaved:
        reasons.append(f"not saved: {report.unsaved}")
    order = replace(order, placement=report.record_id, reasons=tuple(reasons))
    fabric = registry.fabrics.read_content(stored.observed[0]).fabric.named_as(job.hosts)
    return _with_ranks(order, report.placement, fabric, launcher)


def _written(order: Order, launcher: Launcher, folder: Path) -> Order | None:
    """Return an order with the launcher's file of an earlier run, which needs no arrays; None without it.

    The host of each rank is not in every file; the order of the hosts is, if a launcher needs it.
    """
    try:
        text = order_path(folder, order.placement, launcher).read_text("utf-8")
    except (OSError, ValueError):
        return None
    hosts = tuple(line.split()[0] for line in text.splitlines()) if launcher.consecutive else ()
    return replace(order, text=text, hosts=hosts) if text else None


def _with_ranks(order: Order, placement: Placement, fabric: Fabric, launcher: Launcher) -> Order:
    """Return an order with the hosts of a placement and the launcher's file."""
    from mapping.launchers import write

    hosts = tuple(fabric.names[host] for host in placement.host_of_rank.tolist())
    if launcher.consecutive:
        hosts = tuple(dict.fromkeys(hosts))
    return replace(order, hosts=hosts, text=write(launcher.format, placement, fabric))


def _search(
    registry: Registry, order: Order, job: JobEnvironment, launcher: Launcher, seconds: float
) -> PlacementReport:
    """Search a placement, and save it for the next run."""
    from almanac.kernel_cache import choose_kernel_cache

    choose_kernel_cache()
    from mapping.placement.search import SearchOptions  # numba, which a known placement does not need
    from mapping.questions.place import PlacementRequest, place

    options = SearchOptions(seconds=seconds, consecutive=launcher.consecutive)
    request = PlacementRequest(
        profile=order.profile or "", cluster=order.cluster, hosts=job.hosts, slots=job.slots, options=options
    )
    return place(registry, request)


def _stored(transaction: Transaction, wanted: Wanted, job: JobEnvironment) -> _Stored:
    """Return the ids of what is stored for a run; an unknown name raises `UnknownName`."""
    from registry.model.host_names import same_hosts
    from registry.store.allocations import host_names
    from registry.store.profile_names import find_profile, newest_profile, ranks_of_profiles
    from registry.store.timeline import FOREVER, content_as_of, no_fabric, observed_clusters, routing_as_of

    cluster = wanted.cluster or job.cluster or _only(observed_clusters(transaction))
    if wanted.record:
        return _Stored(cluster=cluster)
    application, identity = wanted.name or wanted.program, None
    if wanted.profile is not None:
        identity = find_profile(transaction, wanted.profile)
    elif job.ranks is not None:
        identity = newest_profile(transaction, application, job.ranks)
    if identity is None:
        return _Stored(cluster=cluster)
    content = content_as_of(transaction, cluster, FOREVER)
    if content is None:
        raise no_fabric(transaction, cluster, FOREVER)
    return _Stored(
        cluster=cluster,
        profile=(identity, *ranks_of_profiles(transaction, [identity])[identity]),
        observed=(content[1], routing_as_of(transaction, cluster, FOREVER)),
        hosts=same_hosts(job.hosts, host_names(transaction, cluster)),
    )


def cluster_of(registry: Registry, wanted: str | None, job: JobEnvironment) -> str:
    """Return the wanted cluster, else that of the job, else the only one, or raise `Unplaced`."""
    from registry.store.timeline import observed_clusters

    return wanted or job.cluster or _only(registry.database.read(observed_clusters))


def _only(clusters: Sequence[str]) -> str:
    """Return the only cluster, or raise `Unplaced`."""
    if len(clusters) != 1:
        raise Unplaced(f"add --cluster NAME: the registry has {len(clusters)} clusters")
    return clusters[0]
