"""Layouts of hosts: cores, NUMA domains and network adapters, stored by host and time.

A layout belongs to the host whose adapter has the GUID of one of its adapters, or else to the host with its
name. It is valid until the next layout of that host.

Drawings: positions of a fabric's vertices, computed once per snapshot and rule and stored as bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from registry.database import codec
from registry.database.driver import Transaction
from registry.database.stored_kinds import OF_CLUSTER, Join, NewRecord, RecordKind, Store, hashed_id
from registry.database.values import reading
from registry.errors import InvalidValue, UnknownName
from registry.model import Fabric, Floats, Ints, Time, as_utc, format_guid
from registry.model.arrays import freeze_all
from registry.model.host_names import doubtful, same_hosts
from registry.model.hosts import HostLayout
from registry.model.views import one_line
from registry.store.known_names import host_of_guid
from registry.store.timeline import time_or_latest

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
    """Layouts by the host of the fabric that they belong to, in the given order."""

    known: dict[str, HostLayout]
    unknown: tuple[UnknownName, ...]
    """An error for each layout of a host that the fabric lacks; its name is a GUID if the layout has none."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredLayout:
    """Layout of a host and the time from which it is valid (UTC)."""

    host: str
    at: datetime
    layout: HostLayout

    __repr__ = one_line


class Layouts(Store):
    """Stored layouts of hosts.

    Examples:
        Count the cores of each host of a cluster::

            with Registry.open() as registry:
                cores = {one.host: one.layout.cores for one in registry.layouts.list("hpc1")}
    """

    def list(self, cluster: str, at: Time | None = None) -> tuple[StoredLayout, ...]:
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
    """Match layouts with the hosts of a fabric.

    Raises:
        InvalidValue: The adapters of a layout belong to several hosts, or two layouts to one host.
    """
    owner = host_of_guid(fabric)
    names = {fabric.names[vertex] for vertex in fabric.hosts.tolist()}
    same = same_hosts((layout.name for layout in layouts), names)
    known: dict[str, HostLayout] = {}
    named = dict[str, str]()
    unknown, warnings = [], []
    for layout in layouts:
        by_guid = {owner[guid] for guid in layout.nic_guid.tolist() if guid in owner}
        if len(by_guid) > 1:
            both = " and ".join(sorted(by_guid))
            raise InvalidValue("HostLayout.nic_guid", f"its adapters are in {both}, not in one host")
        # each layout is a source of its own: two of one host are no reason to doubt its name
        by_name = same.get(layout.name) or same_hosts([layout.name], names).get(layout.name, "")
        host = next(iter(by_guid), by_name)
        if not host:
            unknown.append(_unknown(layout, names))
            continue
        if by_name and by_name != host:
            warnings.append(f"the layout named {layout.name} has adapters of host {host}: taken as {host}'s")
        if not by_guid:
            named[layout.name] = host
        if host in known:
            raise InvalidValue("HostLayout.name", f"two layouts of host {host}")
        known[host] = layout
    return HostMatch(known, tuple(unknown), (*warnings, *doubtful(named)))


def _unknown(layout: HostLayout, names: Collection[str]) -> UnknownName:
    """Return the error for a layout whose host is not among these names, with the closest ones."""
    guids = ", ".join(format_guid(guid) for guid in layout.nic_guid.tolist() if guid)
    adapters = f"its adapters ({guids or 'none with a GUID'}) are not in the fabric"
    if layout.name:
        return UnknownName("host", layout.name, sorted(names), remedy=f"{adapters} either")
    reason = f"a layout has no host name, and {adapters}: let lstopo write it on the host"
    return UnknownName("host", guids.partition(",")[0], reason=reason)


def save_layouts(
    transaction: Transaction,
    cluster: str,
    layouts: Mapping[str, HostLayout],
    at: datetime,
    seq: int,
) -> int:
    """Save layouts by host for a locked cluster; return the number of new ones."""
    moment = as_utc(at)
    held = _held(transaction, cluster, moment)
    new: dict[str, NewRecord] = {}
    for host, layout in layouts.items():
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


def _columns(layout: HostLayout) -> dict[str, codec.Column]:
    texts = tuple(getattr(layout, name) for name in _TEXTS)
    return {**codec.columns_of(layout, _ARRAYS), "texts": texts}


def _unpack(blob: bytes) -> HostLayout:
    columns = codec.unpack(blob)
    with reading("a stored layout of a host"):
        texts = dict(zip(_TEXTS, columns.pop("texts"), strict=True))
        return HostLayout(**{name: columns[name] for name in _ARRAYS}, **texts)


DRAWING = RecordKind(name="drawing", label="Drawing", owner=Join("OF", "Content"))
_COLUMNS = ("x", "y", "tier")

_READ = """
MATCH (d:Drawing {id: $drawing})
RETURN d.blob AS blob
"""

_CONTENT = """
MATCH (x:Content {id: $content})
RETURN x.hosts + x.switches AS vertices, x.cluster AS cluster
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredDrawing:
    """Positions of the vertices of a fabric in a drawing."""

    x: Floats
    y: Floats
    """float64[v]: Position of each vertex, in the unit of the rule; finite."""
    tier: Ints
    """int32[v]: Level, group or slice of each vertex by the rule."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        n = len(self.x)
        freeze_all(self, n, *_COLUMNS)
        for name in ("x", "y"):
            if not np.isfinite(getattr(self, name)).all():
                raise InvalidValue(f"StoredDrawing.{name}", "must be finite")


class Drawings(Store):
    """Stored drawings."""

    def read(self, content: str, rule: str) -> StoredDrawing | None:
        """Return the drawing of a snapshot by a rule, or None if none is stored.

        Args:
            content: Id of a snapshot.
            rule: Name and version of the layout.
        """
        name = _drawing_id(content, rule)
        rows = self._rows(_READ, drawing=name)
        if not rows:
            return None
        columns = codec.unpack(rows[0]["blob"])
        with reading(f"the stored drawing {name}"):
            return StoredDrawing(**{column: columns[column] for column in _COLUMNS})

    def save(self, content: str, rule: str, x: ArrayLike, y: ArrayLike, tier: ArrayLike) -> None:
        """Save a drawing; one that is stored already is not changed.

        Raises:
            UnknownName: No such snapshot.
            InvalidValue: The number of positions differs from that of vertices, or a position is not finite.
        """
        drawing = StoredDrawing(x=np.asarray(x), y=np.asarray(y), tier=np.asarray(tier))
        name = _drawing_id(content, rule)
        blob = codec.pack(codec.columns_of(drawing, _COLUMNS))

        def work(transaction: Transaction) -> None:
            found = transaction.run(_CONTENT, content=content)
            if not found:
                raise UnknownName("snapshot", content)
            if found[0]["vertices"] != len(drawing.x):
                needed = f"has {len(drawing.x)} positions for {found[0]['vertices']} vertices"
                raise InvalidValue("StoredDrawing.x", needed)
            if not DRAWING.known(transaction, [name]):
                properties = {"cluster": found[0]["cluster"], "rule": rule, "blob": blob}
                DRAWING.create(transaction, [NewRecord(name, properties, owner=content)])

        self._database.write(work)


def _drawing_id(content: str, rule: str) -> str:
    return f"{content}/{rule}"
