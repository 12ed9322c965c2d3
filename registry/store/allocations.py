"""Allocations: hosts in order with their slots; jobs and placements with the same one share a node."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from registry.database.driver import Transaction
from registry.database.stored_kinds import hashed_id, known_ids
from registry.errors import UnknownName
from registry.model.host_names import same_hosts

_CREATE = """
UNWIND range(0, size($id) - 1) AS i
MERGE (a:Allocation {id: $id[i]})
ON CREATE SET a.cluster = $cluster, a.hosts = $hosts[i], a.slots = $slots[i]
"""

_CREATE_ON = """
UNWIND range(0, size($allocation) - 1) AS i
MATCH (a:Allocation {id: $allocation[i]})
MATCH (d:Device {id: $device[i]})
CREATE (a)-[:ON {order: $order[i], slots: $slots[i]}]->(d)
"""

_MARK = """
UNWIND range(0, size($id) - 1) AS i
MATCH (a:Allocation {id: $id[i]})
SET a.unknown_hosts = $unknown_hosts[i]
"""

_MARKED = """
MATCH (a:Allocation)
WHERE a.cluster = $cluster AND size(a.unknown_hosts) > 0
RETURN collect(a.id) AS id, collect(a.hosts) AS hosts, collect(a.slots) AS slots,
       collect(a.unknown_hosts) AS unknown_hosts
"""

_DEVICES = """
UNWIND $devices AS id
MATCH (d:Device {id: id})
RETURN collect(d.name) AS names
"""

_HOSTS = """
MATCH (d:Device)
WHERE d.cluster = $cluster AND d.kind = 'host'
RETURN collect(d.name) AS names
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSlots:
    """Hosts by name, in order, with the number of ranks of each."""

    cluster: str
    hosts: tuple[str, ...]
    slots: tuple[int, ...]

    @property
    def id(self) -> str:
        """Cluster and a hash of hosts and slots, in their order."""
        return hashed_id(self.cluster, json.dumps([self.hosts, self.slots]))


def save_allocations(transaction: Transaction, cluster: str, wanted: Iterable[HostSlots]) -> None:
    """Save the allocations that are not stored yet, joined to those of their hosts that are known.

    The property `unknown_hosts` names the others; `join_new_hosts` joins them when a scan contains them.
    """
    by_id = {allocation.id: allocation for allocation in wanted}
    new = [by_id[name] for name in sorted(by_id.keys() - known_ids(transaction, "Allocation", by_id))]
    transaction.run_columns(
        _CREATE,
        {
            "id": [allocation.id for allocation in new],
            "hosts": [list(allocation.hosts) for allocation in new],
            "slots": [list(allocation.slots) for allocation in new],
        },
        cluster=cluster,
    )
    hosts = {host for allocation in new for host in allocation.hosts}
    known = known_hosts(transaction, cluster, hosts)
    unknown = hosts - known.keys()
    _join(transaction, dict.fromkeys(new, known))
    _mark(
        transaction, {allocation: unknown for allocation in new if not unknown.isdisjoint(allocation.hosts)}
    )


def join_new_hosts(transaction: Transaction, cluster: str, hosts: Collection[str]) -> None:
    """Join allocations to hosts that they named before any scan of the cluster contained them."""
    if not hosts:
        return
    columns = transaction.run(_MARKED, cluster=cluster)[0]
    joined: dict[HostSlots, dict[str, str]] = {}
    still_unknown: dict[HostSlots, set[str]] = {}
    for names, slots, marked in zip(
        columns["hosts"], columns["slots"], columns["unknown_hosts"], strict=True
    ):
        unknown = set(same_hosts(marked, names).values())  # a deleted host is marked by the fabric's name
        new = {name: host for name, host in same_hosts(names, hosts).items() if name in unknown}
        if new:
            allocation = HostSlots(cluster=cluster, hosts=tuple(names), slots=tuple(slots))
            joined[allocation] = new
            still_unknown[allocation] = unknown - new.keys()
    _join(transaction, joined)
    _mark(transaction, still_unknown)


def _join(transaction: Transaction, known: Mapping[HostSlots, Mapping[str, str]]) -> None:
    """Join allocations to those of their hosts that are known, each with its name in the fabric."""
    columns: dict[str, list[Any]] = {"allocation": [], "device": [], "order": [], "slots": []}
    for allocation, names in known.items():
        for order, (host, slots) in enumerate(zip(allocation.hosts, allocation.slots, strict=True)):
            if host in names:
                columns["allocation"].append(allocation.id)
                columns["device"].append(_device_id(allocation.cluster, names[host]))
                columns["order"].append(order)
                columns["slots"].append(slots)
    transaction.run_columns(_CREATE_ON, columns)


def _mark(transaction: Transaction, unknown: Mapping[HostSlots, Collection[str]]) -> None:
    """Write into allocations which of their hosts are unknown."""
    columns: dict[str, list[Any]] = {
        "id": [allocation.id for allocation in unknown],
        "unknown_hosts": [
            [host for host in allocation.hosts if host in names] for allocation, names in unknown.items()
        ],
    }
    transaction.run_columns(_MARK, columns)


def _device_id(cluster: str, host: str) -> str:
    from registry.store.derived import device_id, host_key

    return device_id(cluster, host_key(host))


def host_names(transaction: Transaction, cluster: str) -> list[str]:
    """Return the names of all hosts that were ever part of the cluster."""
    names: list[str] = transaction.run(_HOSTS, cluster=cluster)[0]["names"]
    return names


def unseen_hosts(transaction: Transaction, cluster: str, hosts: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts that were never part of the cluster under exactly these names, by name."""
    wanted = sorted(set(hosts))
    devices = [_device_id(cluster, name) for name in wanted]
    known = set(transaction.run(_DEVICES, devices=devices)[0]["names"]) if wanted else set()
    return tuple(name for name in wanted if name not in known)


def known_hosts(transaction: Transaction, cluster: str, hosts: Iterable[str]) -> dict[str, str]:
    """Return the name in the cluster of each host that was ever part of it, in short or in full."""
    wanted = sorted(set(hosts))
    if not unseen_hosts(transaction, cluster, wanted):
        return dict(zip(wanted, wanted, strict=True))
    return same_hosts(wanted, host_names(transaction, cluster))


def unknown_hosts(transaction: Transaction, cluster: str, hosts: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts that were never part of the cluster, by name; see `known_hosts`."""
    wanted = sorted(set(hosts))
    known = known_hosts(transaction, cluster, wanted)
    return tuple(name for name in wanted if name not in known)


def require_hosts(transaction: Transaction, cluster: str, hosts: Iterable[str]) -> None:
    """Raise `UnknownName`, with the closest names, for a host that was never part of the cluster."""
    missing = unknown_hosts(transaction, cluster, hosts)
    if missing:
        raise unknown_host(transaction, cluster, missing[0])


def unknown_host(transaction: Transaction, cluster: str, name: str, remedy: str = "") -> UnknownName:
    """Return the error for a host that was never part of the cluster, with the closest names."""
    names = host_names(transaction, cluster)
    none = f"no fabric of cluster {cluster!r} has been ingested"
    return UnknownName("host", name, names, remedy=remedy if names else none)
