"""Layouts of hosts: cores, NUMA domains and network adapters, stored by host and time.

A layout belongs to the host whose adapter has the GUID of one of its adapters, or else to the host with its
name. It is valid until the next layout of that host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from registry.database import codec
from registry.database.driver import Transaction
from registry.database.record_store import OF_CLUSTER, NewRecord, RecordKind, Store, hashed_id
from registry.errors import InvalidValue, UnknownName
from registry.fabrics.timeline import time_or_latest
from registry.model import Fabric, as_utc, format_guid
from registry.model.host_layout import HostLayout

LAYOUT = RecordKind(name="layout", label="HostLayout", owner=OF_CLUSTER)
_ARRAYS = (
    *("core_domain", "core_cpu", "domain_node", "distance"),
    *("nic_name", "nic_fabric", "nic_guid", "nic_near"),
)
_TEXTS = ("name", "source")

_AS_OF = """
MATCH (l:HostLayout)
WHERE l.cluster = $cluster AND l.at <= $at
RETURN l.id AS id, l.host AS host, l.at AS at, l.seq AS seq, l.content AS content
"""

_BLOBS = """
UNWIND $ids AS id
MATCH (l:HostLayout {id: id})
RETURN l.host AS host, l.at AS at, l.blob AS blob
"""


class HostMatch(NamedTuple):
    """Host of each layout, in the given order, and warnings."""

    hosts: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredLayout:
    """Layout of a host and the time from which it is valid (UTC)."""

    host: str
    at: datetime
    layout: HostLayout


class Layouts(Store):
    """Stored layouts of hosts.

    Examples
    --------
    Count the cores of each host of a cluster::

        with Registry.open() as registry:
            cores = {one.host: one.layout.cores for one in registry.layouts.list("hpc1")}
    """

    def list(self, cluster: str, at: datetime | None = None) -> tuple[StoredLayout, ...]:
        """Return the layout of each host at a time (default: the latest) by host name; may be empty."""
        moment = time_or_latest(at)

        def work(transaction: Transaction) -> tuple[StoredLayout, ...]:
            held = _held(transaction, cluster, moment)
            if not held:
                return ()
            rows = transaction.run(_BLOBS, ids=[row["id"] for row in held.values()])
            found = (
                StoredLayout(host=row["host"], at=row["at"], layout=_unpack(row["blob"])) for row in rows
            )
            return tuple(sorted(found, key=lambda one: one.host))

        return self._database.read(work)


def match_hosts(layouts: Sequence[HostLayout], fabric: Fabric) -> HostMatch:
    """Return the host of the fabric of each layout.

    Raises
    ------
    UnknownName
        The fabric has neither a GUID nor the name of a layout; with the closest names.
    InvalidValue
        The adapters of a layout belong to several hosts, or two layouts to one host.
    """
    owner = _owners(fabric)
    known = {fabric.names[vertex] for vertex in fabric.hosts.tolist()}
    hosts: list[str] = []
    warnings = []
    for layout in layouts:
        by_guid = {owner[guid] for guid in layout.nic_guid.tolist() if guid in owner}
        if len(by_guid) > 1:
            names = " and ".join(sorted(by_guid))
            raise InvalidValue("HostLayout.nic_guid", f"its adapters are in {names}, not in one host")
        by_name = next((name for name in (layout.name, layout.name.partition(".")[0]) if name in known), "")
        host = next(iter(by_guid), by_name)
        if not host:
            guids = ", ".join(format_guid(guid) for guid in layout.nic_guid.tolist() if guid)
            remedy = f"its adapters ({guids or 'none with a GUID'}) are not in the fabric either"
            if not layout.name:
                remedy = f"the layout has no host name, and {remedy.removesuffix(' either')}"
            raise UnknownName("host", layout.name, known, remedy=remedy)
        if by_name and by_name != host:
            warnings.append(f"the layout named {layout.name} has adapters of host {host}: taken as {host}'s")
        if host in hosts:
            raise InvalidValue("HostLayout.name", f"two layouts of host {host}")
        hosts.append(host)
    return HostMatch(tuple(hosts), tuple(warnings))


def save_layouts(
    transaction: Transaction,
    cluster: str,
    hosts: Sequence[str],
    layouts: Sequence[HostLayout],
    at: datetime,
    seq: int,
) -> int:
    """Save layouts of hosts of a locked cluster; return the number of new ones."""
    moment = as_utc(at)
    held = _held(transaction, cluster, moment)
    new: dict[str, NewRecord] = {}
    for host, layout in zip(hosts, layouts, strict=True):
        columns = _columns(layout)
        content = codec.digest(columns)
        if host in held and held[host]["content"] == content:
            continue
        identity = hashed_id(cluster, host, moment.isoformat(), content)
        properties = {
            "cluster": cluster,
            "host": host,
            "content": content,
            "at": moment,
            "seq": seq,
            "cores": layout.cores,
            "domains": layout.domains,
            "adapters": len(layout.nic_name),
            "blob": codec.pack(columns),
        }
        new[identity] = NewRecord(identity, properties, owner=cluster)
    known = LAYOUT.known(transaction, new)
    LAYOUT.create(transaction, [record for record in new.values() if record.id not in known])
    return len(new) - len(known)


def _held(transaction: Transaction, cluster: str, at: datetime) -> dict[str, dict[str, Any]]:
    """Return the valid layout of each host at a time: the last one, of the same time the one saved last."""
    held: dict[str, dict[str, Any]] = {}
    for row in transaction.run(_AS_OF, cluster=cluster, at=at):
        before = held.get(row["host"])
        if before is None or (before["at"], before["seq"]) < (row["at"], row["seq"]):
            held[row["host"]] = dict(row)
    return held


def _owners(fabric: Fabric) -> dict[int, str]:
    """Return the host of each GUID of an adapter or a port."""
    adapters = fabric.adapters
    names = [fabric.names[vertex] for vertex in adapters.host.tolist()]
    owner = {
        guid: names[adapter]
        for guid, adapter in zip(adapters.port_guid.tolist(), adapters.port_adapter.tolist(), strict=True)
        if guid
    }
    return owner | {guid: name for guid, name in zip(adapters.guid.tolist(), names, strict=True) if guid}


def _columns(layout: HostLayout) -> dict[str, codec.Column]:
    texts = tuple(getattr(layout, name) for name in _TEXTS)
    return {**codec.columns_of(layout, _ARRAYS), "texts": texts}


def _unpack(blob: bytes) -> HostLayout:
    columns = codec.unpack(blob)
    with codec.reading("a stored layout of a host"):
        texts = dict(zip(_TEXTS, columns.pop("texts"), strict=True))
        return HostLayout(**{name: columns[name] for name in _ARRAYS}, **texts)
