"""Types of allocations, placements and evaluations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from registry.errors import InfeasibleAllocation, InvalidPlacement, InvalidValue, UnknownName
from registry.model.arguments import content, sequence_of
from registry.model.arrays import Floats, Ints, check_range, freeze_all, one_each, readonly
from registry.model.fabric import HOST, Fabric, HasFabric
from registry.model.views import Drawn, Tabular, one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allocation:
    """Hosts of a job, in the order in which its launcher fills them.

    Attributes
    ----------
    hosts : int32[h]
        Vertices of the fabric, without repeats.
    slots : int32[h]
        Number of ranks that fit on each host; >= 1.
    """

    hosts: Ints
    slots: Ints

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

        Raises
        ------
        UnknownName
            The fabric lacks a host, or a vertex is not a host.
        InvalidValue
            Names the argument.
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
    """Host of each rank, and how the placement was found.

    Attributes
    ----------
    host_of_rank : int32[ranks]
        Vertex of the fabric (index into ``fabric.names``).
    allocation : Allocation
        Hosts and slots that were allowed.
    strategy : str
        Strategy (and refiners) that found it, or ``given``.
    objective, routing : str
        Minimised metric and the routing; empty for a given placement.
    seconds : float
        Wall time of the search.
    steps : int
        Number of proposals of the search.
    complete : bool
        False if the search was interrupted.
    core_of_rank : int32[ranks] or None
        Core of each rank on its host, from 0 in hwloc's logical order, each used once; None if cores were not
        chosen.
    cpu_of_rank : int32[ranks] or None
        Number of the core's first hardware thread in the operating system, -1 if the layout of the host is
        unknown; None if cores were not chosen.
    """

    host_of_rank: Ints
    allocation: Allocation
    strategy: str
    objective: str = ""
    routing: str = ""
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    seed: int | None = None
    seconds: float = 0.0
    steps: int = 0
    complete: bool = True
    core_of_rank: Ints | None = None
    cpu_of_rank: Ints | None = None

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

        Raises
        ------
        UnknownName
            The fabric lacks a host, or a vertex is not a host.
        InvalidValue
            As `Fabric.named_or_numbered`.
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
    """A placement by host names, as in launcher files; no fabric is needed.

    Attributes
    ----------
    hosts : tuple of str
        Host of each rank.
    source : str
        Format of the source.
    name : str
        File of the source.
    job : str
        Scheduler's id of the job that ran with it; empty if unknown.
    """

    hosts: tuple[str, ...]
    source: str = ""
    name: str = ""
    job: str = ""

    __repr__ = one_line

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", sequence_of(self.hosts, str, "HostOrder.hosts"))

    def on(self, fabric: Fabric | HasFabric) -> Placement:
        """Return the placement on a fabric; the slots of each host are its ranks."""
        return replace(Placement.given(fabric, self.hosts), parameters={"source": self.source})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Certified lower bound of all placements on an allocation, and its proof.

    Attributes
    ----------
    value : float
        Bound in the unit of the metric.
    proof : str
        Proof in a sentence.
    name : str
        Name of the proof, such as ``injection``; empty for bounds of earlier versions.
    """

    value: float
    proof: str
    name: str = ""

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
    """Cost of a placement with one routing.

    Attributes
    ----------
    routing : str
        Routing with its options, such as ``tables``, ``shortest-paths`` or ``up-down:root=n6``.
    rails : str
        Rule that splits the traffic of a pair over adapters.
    congestion_seconds : float
        Largest load / capacity of all links.
    network_congestion_seconds : float
        Largest load / capacity of links between switches (`Fabric.network_link`).
    hop_bytes : float
        Sum over links, including cables of hosts, of their bytes. Equation 2 of Hoefler and Snir 2011 with
        bytes as weights.
    total_bytes : float
        Bytes sent, including those within hosts.
    average_dilation : float
        ``hop_bytes / total_bytes``; 0 if nothing is sent.
    max_dilation : float
        Longest mean path of a pair of ranks with messages, in hops.
    link_bytes : float64[m]
        Load of each row of ``fabric.links``.
    bounds : mapping of str to Bound
        Certified lower bounds by metric; empty if not requested.
    mean_congestion_seconds : float or None
        Mean of load / capacity over the loaded links; other links are left out, as their number depends on
        the size of the machine. This and the next fields are None in evaluations of earlier versions.
    total_dilation : float or None
        Sum of the mean hops of all ordered pairs of ranks with messages.
    message_dilation : float or None
        Mean hops of a message, including those within hosts; None if the profile has no messages.
    mapping_coefficient : float or None
        Sum over pairs of ranks of their traffic times their distance (Orduña, Silla and Duato 2004, section
        4.1).
    distance : str
        Convention of this distance (``mapping.distances.distances``).
    counted : str
        Unit of this traffic: ``bytes``, or packets and their size.
    background : str
        Load of other jobs and its weight (``mapping.distances.background``); empty for none.
    """

    routing: str
    rails: str
    congestion_seconds: float
    network_congestion_seconds: float
    hop_bytes: float
    total_bytes: float
    average_dilation: float
    max_dilation: float
    link_bytes: Floats
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    wall_seconds: float = 0.0
    code_version: str = ""
    mean_congestion_seconds: float | None = None
    total_dilation: float | None = None
    message_dilation: float | None = None
    mapping_coefficient: float | None = None
    distance: str = "links"
    counted: str = "bytes"
    background: str = ""

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
