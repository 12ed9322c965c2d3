"""Layout of a host: cores, memory and network adapters, as needed to place ranks within it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from registry.errors import InvalidValue
from registry.model.arrays import Bools, Floats, Guids, Ints, check_range, freeze_all, readonly
from registry.model.views import one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostLayout:
    """Cores of a host by NUMA domain, distances of domains, and adapters near them.

    Attributes
    ----------
    core_domain : int32[cores]
        NUMA domain of each core, 0 to d - 1, in the tool's logical order; no domain is empty.
    core_cpu : int32[cores]
        Number of the core's first hardware thread in the operating system.
    domain_node : int32[d]
        Number of each domain's memory node in the operating system; -1 if it has none.
    distance : float64[d, d]
        Relative latency of memory from a core's domain to another, > 0; 10 is local by convention.
    nic_name : tuple of str
        Network adapters, such as ``mlx5_0`` or ``eth0``.
    nic_fabric : bool[n]
        True for adapters that MPI would use (InfiniBand, Omni-Path and the like), not Ethernet.
    nic_guid : uint64[n]
        Node GUID; 0 if unknown.
    nic_near : bool[n, d]
        True for domains that are local to an adapter.
    name : str
        Name of the host; empty if unknown.
    source : str
        Tool and version of the source.
    """

    core_domain: Ints
    core_cpu: Ints
    domain_node: Ints
    distance: Floats
    nic_name: tuple[str, ...] = ()
    nic_fabric: Bools
    nic_guid: Guids
    nic_near: Bools
    name: str = ""
    source: str = ""

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
