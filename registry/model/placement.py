"""Types of allocations, placements and evaluations.

Loads of the few links of a fabric that carry traffic.

Many placements as columns, for plots and regression checks of a history.

Order of ranks on hosts by Slurm's distributions.

`Job.slots` gives the number of ranks on each host, a distribution decides which ones. Checked against srun of
Slurm 22.05, 24.11 and 26.05 for hosts with equal and different numbers of ranks, and under topology/tree and
topology/block. Before 26.05 these choose the hosts of a job, but not the order of its ranks; under 26.05
``block`` visits the hosts of one leaf switch or block after those of another, in the order of topology.conf.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from registry.errors import InfeasibleAllocation, InvalidPlacement, InvalidValue, UnknownName
from registry.model.arrays import (
    Bools,
    Floats,
    Ints,
    Longs,
    check_range,
    freeze,
    freeze_all,
    one_each,
    readonly,
)
from registry.model.fabric import HOST, Fabric, HasFabric
from registry.model.job import Job
from registry.model.views import Drawn, Tabular, content, one_line, sequence_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allocation:
    """Hosts of a job, in the order in which its launcher fills them."""

    hosts: Ints
    """int32[h]: Vertices of the fabric, without repeats."""
    slots: Ints
    """int32[h]: Number of ranks that fit on each host; >= 1."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        h = len(np.atleast_1d(self.hosts))
        freeze_all(self, h, "hosts", "slots")
        if h == 0:
            raise InvalidValue("Allocation.hosts", "an allocation has at least one host")
        if len(set(self.hosts.tolist())) != h:  # np.unique would import numpy.ma
            raise InvalidValue("Allocation.hosts", "a host is listed twice")
        check_range(self, "slots", 1, 1 << 31)

    @classmethod
    def of(
        cls, fabric: Fabric | HasFabric, hosts: Iterable[str] | Iterable[int], slots: ArrayLike = 1
    ) -> Self:
        """Return the allocation of hosts by name or vertex, with one number of slots or one per host.

        Raises:
            UnknownName: The fabric lacks a host, or a vertex is not a host.
            InvalidValue: Names the argument.
        """
        fabric = content(fabric, Fabric, "fabric")
        vertices = fabric.named_or_numbered(hosts, "Allocation.hosts")
        for vertex in vertices:
            if fabric.kind[vertex] != HOST:
                names = [fabric.names[v] for v in fabric.hosts]
                raise UnknownName("host", fabric.names[vertex], names)
        counts = one_each(slots, np.int32, len(vertices), "Allocation.slots")
        return cls(hosts=vertices, slots=counts)

    def __len__(self) -> int:
        return len(self.hosts)

    @property
    def host_of_slot(self) -> Ints:
        """Vertex of each slot, hosts in order, the slots of a host together: int32[slots]."""
        return np.repeat(self.hosts, self.slots)

    def require(self, ranks: int) -> None:
        """Raise `InfeasibleAllocation` if so many ranks do not fit."""
        total = int(self.slots.sum())
        if ranks > total:
            raise InfeasibleAllocation(ranks, total, len(self))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placement(Drawn, Tabular):
    """Host of each rank, and how the placement was found."""

    host_of_rank: Ints
    """int32[ranks]: Vertex of the fabric (index into ``fabric.names``)."""
    allocation: Allocation
    """Hosts and slots that were allowed."""
    strategy: str
    """Strategy (and refiners) that found it, or ``given``."""
    objective: str = ""
    routing: str = ""
    """Minimised metric and the routing; empty for a given placement."""
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    seed: int | None = None
    seconds: float = 0.0
    """Wall time of the search."""
    steps: int = 0
    """Number of proposals of the search."""
    complete: bool = True
    """False if the search was interrupted."""
    core_of_rank: Ints | None = None
    """int32[ranks]: Core of each rank on its host, from 0 in hwloc's logical order, each used once; None if
    cores were not chosen."""
    cpu_of_rank: Ints | None = None
    """int32[ranks]: Number of the core's first hardware thread in the operating system, -1 if the layout of
    the host is unknown; None if cores were not chosen."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        freeze_all(self, None, "host_of_rank")
        content(self.allocation, Allocation, "Placement.allocation")
        self._check_cores()
        hosts, taken = np.unique(self.host_of_rank, return_counts=True)
        room = dict(zip(self.allocation.hosts.tolist(), self.allocation.slots.tolist(), strict=True))
        for host, ranks in zip(hosts.tolist(), taken.tolist(), strict=True):
            if ranks > room.get(host, 0):
                raise InvalidPlacement(
                    f"{ranks} ranks on host number {host}, which has {room.get(host, 0)} slots"
                )

    def _check_cores(self) -> None:
        """Raise if cores are invalid or used twice."""
        if self.core_of_rank is None or self.cpu_of_rank is None:
            if self.core_of_rank is not self.cpu_of_rank:
                raise InvalidValue("Placement.cpu_of_rank", "must be given together with core_of_rank")
            return
        freeze_all(self, self.ranks, "core_of_rank", "cpu_of_rank")
        check_range(self, "core_of_rank", 0, 1 << 31)
        check_range(self, "cpu_of_rank", -1, 1 << 31)
        if len(np.unique(np.c_[self.host_of_rank, self.core_of_rank], axis=0)) != self.ranks:
            raise InvalidPlacement("two ranks are on one core of a host")

    @classmethod
    def given(cls, fabric: Fabric | HasFabric, hosts: Iterable[str] | Iterable[int]) -> Self:
        """Return the placement with these hosts by rank, by name or vertex; the slots of each are its ranks.

        Raises:
            UnknownName: The fabric lacks a host, or a vertex is not a host.
            InvalidValue: As `Fabric.named_or_numbered`.
        """
        fabric = content(fabric, Fabric, "fabric")
        vertices = fabric.named_or_numbered(hosts, "placement")
        unique, first, counts = np.unique(vertices, return_index=True, return_counts=True)
        order = np.argsort(first, kind="stable")
        used = readonly(unique[order], np.int32, "placement")
        return cls(
            host_of_rank=vertices,
            allocation=Allocation.of(fabric, used, counts[order]),
            strategy="given",
        )

    def columns(self) -> Mapping[str, Any]:
        """Return a row per rank: ``rank host slot``, and ``core cpu`` if cores were chosen."""
        cores = {} if self.core_of_rank is None else {"core": self.core_of_rank, "cpu": self.cpu_of_rank}
        return {
            "rank": np.arange(self.ranks),
            "host": self.host_of_rank,
            "slot": self.slot_of_rank,
            **cores,
        }

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.host_of_rank)

    @property
    def slot_of_rank(self) -> Ints:
        """Slot of each rank within its host, from 0, by ascending rank: int32[ranks]."""
        order = np.argsort(self.host_of_rank, kind="stable")
        hosts = self.host_of_rank[order]
        slot = np.empty(len(hosts), np.int32)
        slot[order] = np.arange(len(hosts)) - np.searchsorted(hosts, hosts)
        return slot


class HasPlacement(Protocol):
    """An object with a placement, such as a `StoredPlacement`; functions accept it in place of that."""

    @property
    def placement(self) -> Placement:
        """Placement of the object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOrder:
    """A placement by host names, as in launcher files; no fabric is needed."""

    hosts: tuple[str, ...]
    """Host of each rank."""
    source: str = ""
    """Format of the source."""
    name: str = ""
    """File of the source."""
    job: str = ""
    """Scheduler's id of the job that ran with it; empty if unknown."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", sequence_of(self.hosts, str, "HostOrder.hosts"))

    def on(self, fabric: Fabric | HasFabric) -> Placement:
        """Return the placement on a fabric; the slots of each host are its ranks."""
        return replace(Placement.given(fabric, self.hosts), parameters={"source": self.source})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Certified lower bound of all placements on an allocation, and its proof."""

    value: float
    """Bound in the unit of the metric."""
    proof: str
    """Proof in a sentence."""
    name: str = ""
    """Name of the proof, such as ``injection``; empty for bounds of earlier versions."""

    def certifies(self, value: float) -> str:
        """Return a text with the largest possible distance of a value from the optimum."""
        if self.value <= 0.0:
            return "nothing is certified" if value > 0.0 else "the best possible"
        times = max(value / self.value, 1.0)
        return f"at most {times:.4g} times the best possible, certified by {self.name or self.proof}"


METRICS = (
    *("congestion_seconds", "network_congestion_seconds", "mean_congestion_seconds", "hop_bytes"),
    *("total_bytes", "average_dilation", "max_dilation", "total_dilation", "message_dilation"),
    "mapping_coefficient",
)
"""Metrics of an evaluation."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation(Tabular):
    """Cost of a placement with one routing."""

    routing: str
    """Routing with its options, such as ``tables``, ``shortest-paths`` or ``up-down:root=n6``."""
    rails: str
    """Rule that splits the traffic of a pair over adapters."""
    congestion_seconds: float
    """Largest load / capacity of all links."""
    network_congestion_seconds: float
    """Largest load / capacity of links between switches (`Fabric.network_link`)."""
    hop_bytes: float
    """Sum over links, including cables of hosts, of their bytes. Equation 2 of Hoefler and Snir 2011 with
    bytes as weights."""
    total_bytes: float
    """Bytes sent, including those within hosts."""
    average_dilation: float
    """``hop_bytes / total_bytes``; 0 if nothing is sent."""
    max_dilation: float
    """Longest mean path of a pair of ranks with messages, in hops."""
    link_bytes: Floats
    """float64[m]: Load of each row of ``fabric.links``."""
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    """Certified lower bounds by metric; empty if not requested."""
    wall_seconds: float = 0.0
    code_version: str = ""
    mean_congestion_seconds: float | None = None
    """Mean of load / capacity over the loaded links; other links are left out, as their number depends on the
    size of the machine. This and the next fields are None in evaluations of earlier versions."""
    total_dilation: float | None = None
    """Sum of the mean hops of all ordered pairs of ranks with messages."""
    message_dilation: float | None = None
    """Mean hops of a message, including those within hosts; None if the profile has no messages."""
    mapping_coefficient: float | None = None
    """Sum over pairs of ranks of their traffic times their distance (Orduña, Silla and Duato 2004, section
    4.1)."""
    distance: str = "links"
    """Convention of this distance (``mapping.distances.distances``)."""
    counted: str = "bytes"
    """Unit of this traffic: ``bytes``, or packets and their size."""
    background: str = ""
    """Load of other jobs and its weight (``mapping.distances.cost_model``); empty for none."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        freeze_all(self, None, "link_bytes")

    def columns(self) -> Mapping[str, Any]:
        """Return a row per metric: ``metric value bound``; the bound is NaN if it was not computed."""
        named = {name: getattr(self, name) for name in METRICS}
        known = {name: value for name, value in named.items() if value is not None}
        bounds = [self.bounds[name].value if name in self.bounds else np.nan for name in known]
        return {"metric": list(known), "value": list(known.values()), "bound": bounds}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Four metrics by which placements are compared; units as in `Evaluation`."""

    congestion_seconds: float
    network_congestion_seconds: float
    hop_bytes: float
    average_dilation: float

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        """Return the metrics of an evaluation."""
        return cls(**{name: getattr(evaluation, name) for name in cls.__slots__})

    @classmethod
    def mean(cls, several: Sequence[Self]) -> Self:
        """Return the mean of each metric."""
        return cls(
            **{name: float(np.mean([getattr(one, name) for one in several])) for name in cls.__slots__}
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedLinks:
    """Loads of the links that carry traffic."""

    link: Ints
    """int32[k]: Rows of ``fabric.links``, ascending."""
    bytes: Floats
    """float64[k]: Bytes on each link; > 0."""
    links: int
    """Number of all rows of ``fabric.links``."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        freeze_all(self, None, "link")
        freeze_all(self, len(self.link), "bytes")
        if len(self.link):
            if int(self.link[0]) < 0 or int(self.link[-1]) >= self.links:
                raise InvalidValue("LoadedLinks.link", f"outside 0 .. {self.links - 1}")
            if (np.diff(self.link) <= 0).any():
                raise InvalidValue("LoadedLinks.link", "must ascend")

    @classmethod
    def of(cls, link_bytes: Floats) -> Self:
        """Return the links with traffic, from the bytes ``float64[m]`` on all links."""
        loaded = np.flatnonzero(link_bytes)
        return cls(link=loaded.astype(np.int32), bytes=link_bytes[loaded], links=len(link_bytes))

    def dense(self) -> Floats:
        """Return the bytes on every link as float64[links], read-only."""
        link_bytes = np.zeros(self.links)
        link_bytes[self.link] = self.bytes
        link_bytes.flags.writeable = False
        return link_bytes


Moments = NDArray[np.datetime64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementSeries:
    """Placements by time, then id; n rows in every column.

    Missing texts are empty, missing numbers NaN.

    Attributes:
        strategy, objective, routing, code_version: See `Placement` and `Evaluation`.
    """

    id: tuple[str, ...]
    cluster: tuple[str, ...]
    recorded_at: Moments
    """datetime64[us][n]: UTC."""
    application: tuple[str, ...]
    profile: tuple[str, ...]
    profile_name: tuple[str, ...]
    """Application, id and latest name of the profile."""
    job: tuple[str, ...]
    """The scheduler's id."""
    role: tuple[str, ...]
    """``present`` (a job ran with it) or ``proposed`` (by a search)."""
    strategy: tuple[str, ...]
    objective: tuple[str, ...]
    routing: tuple[str, ...]
    tables: tuple[str, ...]
    snapshot: tuple[str, ...]
    """Ids of the forwarding tables and of the snapshot of the evaluation."""
    allocation: tuple[str, ...]
    """Id of the hosts and slots, in their order."""
    order: tuple[str, ...]
    """Digest of the host of each rank; empty for placements of earlier versions."""
    background: tuple[str, ...]
    """Load of other jobs in the evaluation."""
    code_version: tuple[str, ...]
    ranks: Ints
    """int32[n]."""
    complete: Bools
    """bool[n]."""
    congestion_seconds: Floats
    network_congestion_seconds: Floats
    hop_bytes: Floats
    average_dilation: Floats
    """float64[n]: See `Metrics`."""
    bound_congestion_seconds: Floats
    bound_network_congestion_seconds: Floats
    bound_hop_bytes: Floats
    """float64[n]: Certified lower bounds."""
    in_order_congestion_seconds: Floats
    in_order_network_congestion_seconds: Floats
    """float64[n]."""
    in_order_hop_bytes: Floats
    in_order_average_dilation: Floats
    """float64[n]: Metrics of the same ranks in order."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        n = len(self.id)
        for name in _TEXTS:
            if len(getattr(self, name)) != n:
                raise InvalidValue(f"PlacementSeries.{name}", f"needs {n} entries")
        freeze(self, "recorded_at", np.dtype("datetime64[us]"), n)
        freeze_all(self, n, "ranks", "complete", *_NUMBERS)

    def __len__(self) -> int:
        return len(self.id)

    def take(self, rows: Longs) -> PlacementSeries:
        """Return some of the rows, in the given order."""
        chosen: dict[str, Any] = {
            name: tuple(map(getattr(self, name).__getitem__, rows.tolist())) for name in _TEXTS
        }
        arrays = {name: getattr(self, name)[rows] for name in ("recorded_at", "ranks", "complete", *_NUMBERS)}
        return PlacementSeries(**chosen, **arrays)


_TEXTS = tuple(field.name for field in fields(PlacementSeries) if field.type == "tuple[str, ...]")
_NUMBERS = tuple(field.name for field in fields(PlacementSeries) if field.type == "Floats")


BLOCK, CYCLIC, PLANE, ARBITRARY = DISTRIBUTIONS = ("block", "cyclic", "plane", "arbitrary")
MEASURED = ((22, 5), (24, 11), (26, 5))
"""Versions of Slurm whose order of ranks was measured, as year and month."""
_BY_LEAF = (26, 5)
"""First of these whose ``block`` visits the hosts of one leaf switch or block after those of another."""


def measured_version(version: tuple[int, int]) -> tuple[int, int]:
    """Return the last measured version of Slurm up to one, or the first measured version."""
    return max((one for one in MEASURED if one <= version), default=MEASURED[0])


def visits_leaves(version: tuple[int, int]) -> bool:
    """Return True if ``block`` of a measured version visits one leaf switch or block after the other."""
    return version >= _BY_LEAF


def rank_order(counts: Sequence[int], distribution: str, plane: int | None = None) -> Longs:
    """Return the host of each rank.

    Hosts are visited in order, round after round, until each has its ranks: ``block`` gives a host all its
    ranks at once, ``cyclic`` one per round, ``plane`` a fixed number per round.

    Args:
        counts: Number of ranks of each host.
        distribution: ``block``, ``cyclic`` or ``plane``.
        plane: Ranks per round of ``plane``.

    Returns:
        int64[ranks]: Index of the host of each rank.

    Raises:
        InvalidValue: The distribution is unknown or has no order (``arbitrary``); a plane without a size.
    """
    left = np.asarray(counts, np.int64)
    if distribution not in (BLOCK, CYCLIC, PLANE):
        known = "its order is only in the host list or the report of the job"
        reason = known if distribution == ARBITRARY else f"must be one of {', '.join(DISTRIBUTIONS)}"
        raise InvalidValue("distribution", f"is {distribution!r}: {reason}")
    if distribution == PLANE and (plane is None or plane < 1):
        raise InvalidValue("plane", "the size of a plane is needed; accounting does not record it")
    if not len(left) or int(left.min()) < 0:
        raise InvalidValue("counts", "needs at least one host, and no negative number of ranks")
    most = max(1, int(left.max()))
    each = {BLOCK: most, CYCLIC: 1, PLANE: plane or 1}[distribution]
    host = np.repeat(np.arange(len(left)), left)
    within = np.arange(len(host)) - np.repeat(np.cumsum(left) - left, left)
    return host[np.lexsort((within, host, within // each))]


def shared(ranks: int, slots_of_host: Sequence[int]) -> tuple[int, ...]:
    """Return the number of ranks of each host by Slurm's rule.

    Each round gives one rank to every host with free slots; when all are full, one to every host.

    Args:
        slots_of_host: Number of slots of each host.
    """
    taken = [0] * len(slots_of_host)
    while ranks and taken:
        free = [host for host, slots in enumerate(slots_of_host) if taken[host] < slots]
        rounds = min((slots_of_host[host] - taken[host] for host in free), default=ranks)
        sharing = free or range(len(slots_of_host))
        rounds = min(rounds, max(1, ranks // len(sharing)))
        for host in sharing[:ranks]:
            taken[host] += rounds
        ranks -= rounds * min(ranks, len(sharing))
    return tuple(taken)


def order_of_job(
    job: Job,
    *,
    distribution: str | None = None,
    plane: int | None = None,
    leaves: Sequence[Sequence[str]] = (),
) -> HostOrder:
    """Return the host of each rank of a job by its distribution.

    Args:
        distribution: Default: the job's own, or ``block`` if it has none.
        plane: Ranks per round of ``plane``, which accounting does not record.
        leaves: Hosts of each leaf switch or block, if ``block`` visits one after the other: Slurm 26.05 with
            topology/tree or topology/block. The hosts of one are visited in the order of the job.

    Raises:
        InvalidValue: The job has no hosts, its order is unknown, or a host is on no leaf.
    """
    if not job.hosts:
        raise InvalidValue("Job.hosts", f"job {job.id} has none")
    ranks = job.ranks or sum(job.slots)
    counts = job.slots if sum(job.slots) == ranks else shared(ranks, job.slots)
    distribution = distribution or job.distribution or BLOCK
    visited = list(range(len(job.hosts)))
    if leaves and distribution == BLOCK:
        leaf = {host: at for at, hosts in enumerate(leaves) for host in hosts}
        if missing := [host for host in job.hosts if host not in leaf]:
            raise InvalidValue("topology", f"{missing[0]} is on no switch or block of it")
        visited.sort(key=lambda host: leaf[job.hosts[host]])
    order = rank_order([counts[host] for host in visited], distribution, plane)
    hosts = tuple(job.hosts[visited[place]] for place in order.tolist())
    return HostOrder(hosts=hosts, source=job.source, name=job.id)
