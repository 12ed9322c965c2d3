"""Optical switches of clusters: their hosts, limits and present circuits.

A cluster has at most one switch, stored as properties of the cluster.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from registry.database.driver import Transaction
from registry.database.record_store import Store
from registry.errors import InvalidValue, UnknownName
from registry.fabrics.as_of import require_cluster
from registry.fabrics.observations import lock_cluster
from registry.model.arguments import first_repeat
from registry.model.circuit_plan import Circuits

SET_UP = "almanac cluster optical CLUSTER --max-degree N --max-edges N --link-speed BYTES/S"
"""Command that describes a switch to the registry."""

_READ = """
MATCH (c:Cluster {id: $cluster})
RETURN c AS node
"""

_LIST = """
MATCH (c:Cluster)
WHERE c.optical_max_degree IS NOT NULL
RETURN c AS node, c.id AS id
ORDER BY id
"""

_WRITE = """
MATCH (c:Cluster {id: $cluster})
SET c += $properties
"""
_PLAIN = ("max_degree", "max_edges", "link_speed", "compute_seconds", "plan", "at")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpticalSwitch:
    """An optical switch that connects hosts of a cluster by circuits.

    Attributes
    ----------
    hosts : tuple of str
        Host of each node; circuits refer to nodes by number.
    max_degree, max_edges : int
        Most circuits at a host, and in all; enough to connect all hosts.
    link_speed : float
        Bytes/s of a circuit, both directions together; finite, above 0.
    compute_seconds : float
        Time that each rank computes while it sends its profile once, the ranks of a host one after the other;
        0: computation is ignored.
    circuits : tuple of (int, int)
        Present circuits: the two nodes of each, the lower first, ascending; empty if unknown.
    plan : str
        Id of the circuit plan that the switch is set to; empty if none or unknown.
    at : datetime or None
        Time of this description, UTC.
    """

    cluster: str
    hosts: tuple[str, ...]
    max_degree: int
    max_edges: int
    link_speed: float
    compute_seconds: float = 0.0
    circuits: Circuits = ()
    plan: str = ""
    at: datetime | None = None

    def __post_init__(self) -> None:
        nodes = len(self.hosts)
        if nodes < 2:
            raise InvalidValue("OpticalSwitch.hosts", f"are {nodes}, a switch connects at least 2")
        if twice := first_repeat(self.hosts):
            raise InvalidValue("OpticalSwitch.hosts", f"{twice!r} is named twice")
        least = {"max_degree": min(nodes - 1, 2), "max_edges": nodes - 1}
        for name, low in least.items():
            if getattr(self, name) < low:
                reason = f"is {getattr(self, name)}, must be at least {low} to connect {nodes} hosts"
                raise InvalidValue(f"OpticalSwitch.{name}", reason)
        if not 0.0 < self.link_speed < math.inf:
            reason = f"is {self.link_speed}, must be finite and above zero"
            raise InvalidValue("OpticalSwitch.link_speed", reason)
        if not 0.0 <= self.compute_seconds < math.inf:
            reason = f"is {self.compute_seconds}, must be finite and not negative"
            raise InvalidValue("OpticalSwitch.compute_seconds", reason)
        self._check_circuits()

    def _check_circuits(self) -> None:
        """Raise if a circuit is invalid, or if they exceed a limit of the switch."""
        given, ends = list(self.circuits), [0] * len(self.hosts)
        if given != sorted(set(given)) or any(not 0 <= a < b < len(self.hosts) for a, b in given):
            reason = f"must be pairs a < b of 0 .. {len(self.hosts) - 1}, ascending, each once"
            raise InvalidValue("OpticalSwitch.circuits", reason)
        if len(given) > self.max_edges:
            raise InvalidValue("OpticalSwitch.circuits", f"are {len(given)}, max_edges is {self.max_edges}")
        for pair in given:
            for node in pair:
                ends[node] += 1
        most = max(ends)
        if most > self.max_degree:
            reason = f"{self.hosts[ends.index(most)]!r} has {most}, max_degree is {self.max_degree}"
            raise InvalidValue("OpticalSwitch.circuits", reason)


class OpticalSwitches(Store):
    """Stored optical switches: at most one per cluster."""

    def read(self, cluster: str) -> OpticalSwitch:
        """Return the switch of a cluster.

        Raises
        ------
        UnknownName
            No such cluster, or it has no optical switch.
        """
        return self._database.read(lambda transaction: read_switch(transaction, cluster))

    def list(self) -> tuple[OpticalSwitch, ...]:
        """Return all switches by cluster; one statement."""
        return tuple(_switch(row["node"]) for row in self._rows(_LIST))

    def save(self, switch: OpticalSwitch) -> OpticalSwitch:
        """Save the description of a switch in place of the earlier one; return it as stored."""

        def work(transaction: Transaction) -> OpticalSwitch:
            require_cluster(transaction, switch.cluster)
            lock_cluster(transaction, switch.cluster)
            write_switch(transaction, switch, datetime.now(UTC))
            return read_switch(transaction, switch.cluster)

        return self._database.write(work)


def read_switch(transaction: Transaction, cluster: str) -> OpticalSwitch:
    """Return the switch of a cluster; see `OpticalSwitches.read`."""
    found = transaction.run(_READ, cluster=cluster)
    if not found:
        require_cluster(transaction, cluster)
    node = found[0]["node"]
    if node.get("optical_max_degree") is None:
        raise UnknownName("optical switch of cluster", cluster, remedy=f"describe it with {SET_UP}")
    return _switch(node)


def _switch(node: Mapping[str, Any]) -> OpticalSwitch:
    return OpticalSwitch(
        cluster=node["id"],
        hosts=tuple(node["optical_hosts"]),
        circuits=tuple(zip(node["optical_source"], node["optical_target"], strict=True)),
        **{name: node[f"optical_{name}"] for name in _PLAIN},
    )


def write_switch(transaction: Transaction, switch: OpticalSwitch, time: datetime) -> None:
    """Save the description of the switch of a locked cluster."""
    fields = {
        **{name: getattr(switch, name) for name in _PLAIN},
        "link_speed": float(switch.link_speed),
        "compute_seconds": float(switch.compute_seconds),
        "at": time,
        "hosts": list(switch.hosts),
        "source": [one for one, _ in switch.circuits],
        "target": [other for _, other in switch.circuits],
    }
    properties = {f"optical_{name}": value for name, value in fields.items()}
    transaction.run(_WRITE, cluster=switch.cluster, properties=properties)
