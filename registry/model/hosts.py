"""Intended wiring, layouts of hosts (cores, memory, network adapters), and nodes of Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

from registry.errors import InvalidValue
from registry.model.arrays import Bools, Floats, Guids, Ints, check_range, freeze_all, readonly
from registry.model.views import one_line
from registry.units import counted

_SHOWN = 3
End = tuple[str, str]
"""A device and its port, as a plan writes them."""


@dataclass(frozen=True, kw_only=True)
class IntendedWiring:
    """Cables that a machine should have, with the names used by its plan.

    Attributes:
        source, target: Names of the devices at the two ends of each cable; length c. A cable is listed once.
        source_port, target_port: Port names of the plan, such as ``Port 9`` or ``mlx5_0``.
    """

    source: tuple[str, ...]
    source_port: tuple[str, ...]
    target: tuple[str, ...]
    target_port: tuple[str, ...]
    kind: tuple[str, ...]
    """Purpose of the cable in the plan, such as ``Data``; may be empty."""
    speed: tuple[float, ...] = ()
    """Nominal bytes/s of each cable; 0 if the plan does not contain it. An empty tuple means 0 for all."""
    declared_at: datetime | None = None
    """Time from which the plan is valid, with a time zone."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        if not any(self.speed):
            object.__setattr__(self, "speed", (0.0,) * len(self.source))
        columns = (self.source, self.source_port, self.target, self.target_port, self.kind, self.speed)
        if len({len(column) for column in columns}) != 1 or not self.source:
            raise InvalidValue("IntendedWiring.source", "needs at least one cable, and columns of one length")
        if not all(self.source) or not all(self.target):
            raise InvalidValue("IntendedWiring.source", "a device has no name")
        if self.declared_at is not None and self.declared_at.tzinfo is None:
            raise InvalidValue("IntendedWiring.declared_at", "needs a time zone")

    def __len__(self) -> int:
        return len(self.source)

    def ends(self) -> Iterator[tuple[End, End]]:
        """Yield the two ends of each cable, each a device and a port."""
        near = zip(self.source, self.source_port, strict=True)
        far = zip(self.target, self.target_port, strict=True)
        yield from zip(near, far, strict=True)

    @cached_property
    def conflicts(self) -> dict[End, tuple[int, ...]]:
        """Ports with several cables, by device and port in the first spelling, each with its cables' rows."""
        rows: dict[End, list[int]] = {}
        first: dict[End, End] = {}
        for row, ends in enumerate(self.ends()):
            for end in ends:
                key = end[0].casefold(), end[1].casefold()
                rows.setdefault(first.setdefault(key, end), []).append(row)
        return {end: tuple(of_end) for end, of_end in rows.items() if len(of_end) > 1}

    def conflict_lines(self) -> list[str]:
        """Return a line about the ports with several cables, with the first ones; empty without conflicts."""
        if not self.conflicts:
            return []
        names = [f"{device} {port} ({len(rows)} cables)" for (device, port), rows in self.conflicts.items()]
        shown, ports = ", ".join(names[:_SHOWN]), counted(len(names), "port has", "ports have")
        return [f"{ports} several cables in the intended wiring, for example {shown}"]


def cable_key(one: End, other: End) -> frozenset[End]:
    """Return what identifies a cable of a plan: its ends, whatever their order, without upper case."""
    return frozenset((device.casefold(), port.casefold()) for device, port in (one, other))


def join_wiring(plans: Sequence[IntendedWiring]) -> IntendedWiring:
    """Return one plan with the cables of all plans, valid from the latest of their times.

    A cable that several plans list, in either direction, is kept once.
    """
    rows: dict[frozenset[End], tuple[End, End, str, float]] = {}
    for plan in plans:
        for (near, far), kind, speed in zip(plan.ends(), plan.kind, plan.speed, strict=True):
            rows.setdefault(cable_key(near, far), (near, far, kind, speed))
    near_ends, far_ends, kinds, speeds = zip(*rows.values(), strict=True)
    times = [plan.declared_at for plan in plans if plan.declared_at is not None]
    return IntendedWiring(
        source=tuple(device for device, _ in near_ends),
        source_port=tuple(port for _, port in near_ends),
        target=tuple(device for device, _ in far_ends),
        target_port=tuple(port for _, port in far_ends),
        kind=kinds,
        speed=speeds,
        declared_at=max(times, default=None),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostLayout:
    """Cores of a host by NUMA domain, distances of domains, and adapters near them."""

    core_domain: Ints
    """int32[cores]: NUMA domain of each core, 0 to d - 1, in the tool's logical order; no domain is empty."""
    core_cpu: Ints
    """int32[cores]: Number of the core's first hardware thread in the operating system."""
    domain_node: Ints
    """int32[d]: Number of each domain's memory node in the operating system; -1 if it has none."""
    distance: Floats
    """float64[d, d]: Relative latency of memory from a core's domain to another, > 0; 10 is local by
    convention."""
    nic_name: tuple[str, ...] = ()
    """Network adapters, such as ``mlx5_0`` or ``eth0``."""
    nic_fabric: Bools
    """bool[n]: True for adapters that MPI would use (InfiniBand, Omni-Path and the like), not Ethernet."""
    nic_guid: Guids
    """uint64[n]: Node GUID; 0 if unknown."""
    nic_near: Bools
    """bool[n, d]: True for domains that are local to an adapter."""
    name: str = ""
    """Name of the host; empty if unknown."""
    source: str = ""
    """Tool and version of the source."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        cores, nics = len(np.atleast_1d(self.core_domain)), len(self.nic_name)
        freeze_all(self, cores, "core_domain", "core_cpu")
        freeze_all(self, None, "domain_node")
        freeze_all(self, nics, "nic_fabric", "nic_guid")
        domains = len(self.domain_node)
        for name, dtype, rows in (("distance", np.float64, domains), ("nic_near", np.bool_, nics)):
            values = readonly(getattr(self, name), dtype, f"HostLayout.{name}")
            if values.shape != (rows, domains):
                raise InvalidValue(f"HostLayout.{name}", f"has shape {values.shape}, not {(rows, domains)}")
            object.__setattr__(self, name, values)
        check_range(self, "core_domain", 0, domains)
        if len(np.unique(self.core_domain)) != domains or domains == 0:
            raise InvalidValue("HostLayout.core_domain", "needs a domain, and a core in each domain")
        if len(np.unique(self.core_cpu)) != cores:
            raise InvalidValue("HostLayout.core_cpu", "a hardware thread is listed twice")
        if not (np.isfinite(self.distance).all() and (self.distance > 0).all()):
            raise InvalidValue("HostLayout.distance", "must be finite and above zero")

    @property
    def cores(self) -> int:
        """Number of cores."""
        return len(self.core_domain)

    @property
    def domains(self) -> int:
        """Number of NUMA domains that have a core."""
        return len(self.domain_node)


HOST_LABEL = "kubernetes.io/hostname"
"""Label of each node with its name."""
LONGEST_NAME = 253
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def node_name(host: str) -> str:
    """Return the name of a host's node; raises `InvalidValue` if it is none (RFC 1123)."""
    name = host.lower()
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise InvalidValue("fabric.names", f"{host!r} is no name of a Kubernetes node (RFC 1123)")
    return name


def label_lines(labels: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """Return a line ``kubectl label`` for each node with its labels."""
    return "".join(
        f"kubectl label node {node} {' '.join(f'{key}={value}' for key, value in of.items())} --overwrite\n"
        for node, of in labels
    )
