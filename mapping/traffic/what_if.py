"""Effect on running jobs of removed cables or switches, added cables, and drained hosts.

Changes of a fabric: cables or switches removed, cables added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from mapping.distances.cost_model import CostModel
from mapping.routing.forwarding_tables import repair_tables
from mapping.traffic.job_loads import Delivered, JobTraffic, Loader
from mapping.traffic.names import DeviceMatch, find_device, find_links, is_switch, reverse_rows, splits
from mapping.traffic.shared_load import JobLoad, SharedLoad
from registry.errors import InvalidValue, UnknownName
from registry.model import NO_PORT, Bools, Fabric, Ints, Links, Longs
from registry.model.links import LINK_COLUMNS
from registry.model.views import one_line
from registry.progress import Progress, silent

GBIT = 1e9 / 8
"""Bytes/s of 1 Gbit/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a fabric, by names (`mapping.traffic.names`)."""

    down_links: tuple[str, ...] = ()
    """``DEVICE:PORT``: the cable at that port, in both directions; ``DEVICE:DEVICE``: all cables between the
    two."""
    down_switches: tuple[str, ...] = ()
    """Names or GUIDs of switches that are removed with all of their cables."""
    added: tuple[str, ...] = ()
    """``A:B`` or ``A:B:GBPS``: a cable between two devices and its speed in Gbit/s (default: the most common
    speed of the cables at each end; the slower of the two)."""
    drained: tuple[str, ...] = ()
    """Hosts whose ranks are removed with their traffic; their cables remain."""

    @classmethod
    def of(
        cls, fabric: Fabric, *, down: Iterable[str] = (), add: Iterable[str] = (), drain: Iterable[str] = ()
    ) -> Self:
        """Return a change from command line arguments; `down` takes links and switches alike.

        Raises:
            UnknownName: A device or link does not exist; the error names the closest ones.
            InvalidValue
        """
        taken = tuple(down)
        switches = tuple(text for text in taken if is_switch(fabric, text))
        change = cls(
            down_links=tuple(text for text in taken if text not in switches),
            down_switches=switches,
            added=tuple(add),
            drained=tuple(drain),
        )
        applied(fabric, change)
        change.drained_hosts(fabric)
        return change

    def drained_hosts(self, fabric: Fabric) -> Longs:
        """Return the vertices (int64) of the drained hosts, ascending.

        Raises:
            UnknownName
        """
        return np.unique([find_device(fabric, text, kind="host").vertex for text in self.drained]).astype(
            np.int64
        )

    def __bool__(self) -> bool:
        return bool(self.down_links or self.down_switches or self.added or self.drained)


class Applied(NamedTuple):
    """A changed fabric."""

    fabric: Fabric
    row_before: Ints
    """int32[m]: Row of each link in the old ``fabric.links``; -1 for an added cable."""


def applied(fabric: Fabric, change: Change, *, keep_tables: bool = False) -> Applied:
    """Return the fabric after a change: the same vertices, with links removed and added.

    Args:
        keep_tables: Keep the forwarding tables, which may then lead into removed cables; by default they are
            dropped.

    Raises:
        UnknownName, InvalidValue
    """
    links, removed = fabric.links, np.zeros(len(fabric.links), np.bool_)
    for text in change.down_switches:
        vertex = find_device(fabric, text, kind="switch").vertex
        removed |= (links.source == vertex) | (links.target == vertex)
    for text in change.down_links:
        rows = find_links(fabric, text)
        removed[rows] = True
        removed[reverse_rows(fabric, rows)] = True
    kept = np.flatnonzero(~removed)
    new, rows = links.take(kept), kept.astype(np.int32)
    for text in change.added:
        new = _with_cable(fabric, new, text)
        rows = np.append(rows, np.full(2, -1, np.int32))
    order = new.order()
    tables = fabric.tables if keep_tables else None
    return Applied(replace(fabric, links=new.take(order), tables=tables), rows[order].astype(np.int32))


def _with_cable(fabric: Fabric, links: Links, text: str) -> Links:
    """Return the links with both directions of a new cable ``A:B[:GBPS]`` at the end."""
    one, other, speed = _cable(fabric, text)
    if one.vertex == other.vertex:
        raise InvalidValue("Change.added", f"{text!r} connects {fabric.names[one.vertex]!r} to itself")
    ends = (_with_adapter(fabric, one, text), _with_adapter(fabric, other, text))
    ports = [_free_port(links, end) for end in ends]
    capacity = _usual_speed(fabric, ends, text) if speed is None else speed * GBIT
    both = Links.of(
        [end.vertex for end in ends],
        [end.vertex for end in reversed(ends)],
        capacity,
        source_port=ports,
        target_port=ports[::-1],
        source_adapter=[end.adapter for end in ends],
        target_adapter=[end.adapter for end in reversed(ends)],
    )
    return Links(
        **{name: np.concatenate((getattr(links, name), getattr(both, name))) for name in LINK_COLUMNS}
    )


def _cable(fabric: Fabric, text: str) -> tuple[DeviceMatch, DeviceMatch, float | None]:
    """Return the ends and the speed in Gbit/s of ``A:B[:GBPS]``."""
    for left, right in splits(text):
        if (found := _ends(fabric, left, right)) is not None:
            return (*found, None)
        speed = _speed(right)
        if speed is not None:
            for one, other in splits(left):
                if (found := _ends(fabric, one, other)) is not None:
                    return (*found, speed)
    parts = list(splits(text))
    if not parts:
        raise InvalidValue("Change.added", f"{text!r} must be A:B or A:B:GBPS")
    left, right = parts[-1]
    find_device(fabric, left)
    find_device(fabric, right.partition(":")[0])
    raise InvalidValue("Change.added", f"{text!r} must be A:B or A:B:GBPS")


def _ends(fabric: Fabric, one: str, other: str) -> tuple[DeviceMatch, DeviceMatch] | None:
    try:
        return find_device(fabric, one), find_device(fabric, other)
    except UnknownName:
        return None


def _speed(text: str) -> float | None:
    """Return the number if it is above zero and finite, else None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < np.inf else None


def _with_adapter(fabric: Fabric, end: DeviceMatch, text: str) -> DeviceMatch:
    """Return the end with the adapter of its host, if the host has any.

    Raises:
        InvalidValue: The host has several adapters and none was named.
    """
    if end.adapter >= 0 or fabric.forwards[end.vertex]:
        return end
    own = np.flatnonzero(fabric.adapters.host == end.vertex)
    if len(own) > 1:
        names = ", ".join(fabric.adapters.names[a] for a in own.tolist())
        host = fabric.names[end.vertex]
        raise InvalidValue("Change.added", f"{text!r}: host {host!r} has several adapters, name one: {names}")
    return DeviceMatch(end.vertex, int(own[0]) if len(own) else NO_PORT)


def _free_port(links: Links, end: DeviceMatch) -> int:
    """Return the next port number at a device; `NO_PORT` if its ports are not known."""
    here = (links.source == end.vertex) & ((end.adapter < 0) | (links.source_adapter == end.adapter))
    there = (links.target == end.vertex) & ((end.adapter < 0) | (links.target_adapter == end.adapter))
    ports = np.concatenate((links.source_port[here], links.target_port[there]))
    if not len(ports):
        return 1 if bool((links.source_port >= 0).any()) else NO_PORT
    return NO_PORT if int(ports.max()) < 0 else int(ports.max()) + 1


def _usual_speed(fabric: Fabric, ends: tuple[DeviceMatch, DeviceMatch], text: str) -> float:
    """Return the most common bytes/s of cables at the ends: the faster of equals, the slower end."""
    links, found = fabric.links, []
    for end in ends:
        here = links.source == end.vertex
        speeds, counts = np.unique(links.capacity[here] / links.cables[here], return_counts=True)
        if len(speeds):
            found.append(float(speeds[::-1][np.argmax(counts[::-1])]))
    if not found:
        raise InvalidValue("Change.added", f"{text!r}: neither end has a cable, so give the speed: A:B:GBPS")
    return min(found)


__all__ = [
    "KEEP_TABLES",
    "REPAIR_NOTE",
    "REPAIR_TABLES",
    "Change",
    "JobEffect",
    "WhatIf",
    "same_rule",
    "what_if",
]

KEEP_TABLES = "tables"
"""Rule that keeps the forwarding tables, before any repair: traffic into a removed cable is lost."""
REPAIR_TABLES = "repaired-tables"
"""Rule that approximates what the subnet manager does; without a change it is the same as `KEEP_TABLES`."""
REPAIR_NOTE = (
    "Tables after the change are approximated: working routes stay, broken ones take a shortest path over "
    "the port with the fewest routes, and added cables take over routes until the ports are balanced."
)
"""What `REPAIR_TABLES` assumes, for readers of its results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEffect:
    """Effect of a change on one job."""

    job: str
    user: str
    before_seconds: float
    unchanged_seconds: float
    after_seconds: float
    """Time of the worst link that it loads, with all jobs' bytes; seconds per iteration. See `WhatIf`."""
    unreachable_pairs: int
    """Ordered pairs of its ranks that communicate and have no path after the change."""
    unreachable_bytes: float
    """Bytes between them."""
    lost_hosts: tuple[str, ...]
    """Its hosts that are drained."""
    lost_ranks: int
    """Ranks on them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WhatIf:
    """Congestion of running jobs before and after a change."""

    change: Change
    before: SharedLoad
    unchanged: SharedLoad
    after: SharedLoad
    """The present fabric under its present routing; the same fabric under the rule, which is what `after` has
    to be compared with; the changed fabric under the rule. The fabrics (``before.fabric``, ``after.fabric``)
    have the same vertices; the jobs are the same in the same order."""
    routing_before: str
    rule: str
    """Routings before and after. If both are the same on the present fabric, `unchanged` is `before`."""
    jobs: tuple[JobEffect, ...]
    """In the order of ``before.jobs``."""
    row_before: Ints
    """int32[links after]: Row of each link of the changed fabric in ``before.fabric.links``; -1 for an added
    cable."""

    __repr__ = one_line

    def jobs_by_effect(self) -> list[JobEffect]:
        """Return the jobs that lose ranks or connections first, then those that are slowed down most."""

        def order(one: JobEffect) -> tuple[bool, float]:
            lost = one.unreachable_pairs > 0 or one.lost_ranks > 0
            return not lost, one.unchanged_seconds - one.after_seconds

        return sorted(self.jobs, key=order)


def what_if(
    fabric: Fabric,
    jobs: Sequence[JobTraffic],
    change: Change,
    *,
    rule: str | None = None,
    costs: CostModel | None = None,
    before: SharedLoad | None = None,
    progress: Progress = silent,
) -> WhatIf:
    """Return congestion and reachability of running jobs before and after a change.

    Args:
        rule: Routing of both sides; default: `same_rule` as now. ``repaired-tables`` repairs the forwarding
            tables after the change (`mapping.routing.forwarding_tables`), ``tables`` keeps them as they are;
            any other routing (`mapping.routing.catalog`) is computed on both fabrics.
        costs: Routing before the change, and rails.
        before: The same jobs' loads before the change, if known.

    Raises:
        UnknownName, InvalidValue: Names are unknown or invalid, or a job would have no hosts left.
    """
    costs = costs or CostModel()
    name, _ = costs.choose_routing(fabric)
    rule = same_rule(name) if rule is None else rule
    routing = KEEP_TABLES if rule == REPAIR_TABLES else rule
    rows = applied(fabric, change, keep_tables=routing == KEEP_TABLES)
    changed = rows.fabric
    if rule == REPAIR_TABLES:
        changed = repair_tables(changed, np.flatnonzero(rows.row_before < 0))
    gone = _gone(fabric, jobs, change)
    ruled = replace(costs, routing=routing)
    if before is None:
        before, _ = _load(fabric, jobs, replace(costs, routing=name))
    elif [one.job for one in before.jobs] != [one.job for one in jobs]:
        raise InvalidValue("what_if.before", "belongs to other jobs")
    unchanged = before if routing == name else _load(fabric, jobs, ruled)[0]
    progress("traffic after the change", 0, len(jobs))
    after, delivered = _load(changed, jobs, ruled, gone)
    progress("traffic after the change", len(jobs), len(jobs))
    seconds = [side.together_seconds().tolist() for side in (before, unchanged, after)]
    return WhatIf(
        change=change,
        before=before,
        unchanged=unchanged,
        after=after,
        routing_before=name,
        rule=rule,
        jobs=tuple(
            _effect(fabric, *one)
            for one in zip(jobs, delivered, gone, zip(*seconds, strict=True), strict=True)
        ),
        row_before=rows.row_before,
    )


def same_rule(routing: str) -> str:
    """Return the rule that treats a changed fabric as a routing treats the present one."""
    return REPAIR_TABLES if routing == KEEP_TABLES else routing


def _load(
    fabric: Fabric, jobs: Sequence[JobTraffic], costs: CostModel, gone: Sequence[Bools | None] | None = None
) -> tuple[SharedLoad, list[Delivered]]:
    """Return the load of all jobs without some ranks of each, and what of their traffic is delivered."""
    loader = Loader(fabric, [one.placement for one in jobs], costs)
    ranks = [None] * len(jobs) if gone is None else gone
    found = [loader.deliver(one.profile, one.placement, left) for one, left in zip(jobs, ranks, strict=True)]
    loads = [
        JobLoad(
            job=one.job,
            user=one.user,
            application=one.application,
            placement=one.placement_id,
            loads=delivered.loads,
        )
        for one, delivered in zip(jobs, found, strict=True)
    ]
    return SharedLoad.of(fabric, loads), found


def _gone(fabric: Fabric, jobs: Sequence[JobTraffic], change: Change) -> list[Bools]:
    """Return the ranks of each job on drained hosts (bool[ranks]).

    Raises:
        InvalidValue: A job would have no ranks left.
    """
    drained = change.drained_hosts(fabric)
    gone = [np.isin(one.placement.host_of_rank, drained) for one in jobs]
    empty = [one.job for one, ranks in zip(jobs, gone, strict=True) if bool(ranks.all())]
    if empty:
        several = f"jobs {', '.join(empty)} are" if len(empty) > 1 else f"job {empty[0]} is"
        raise InvalidValue("Change.drained", f"{several} left without hosts: all of them are drained")
    return gone


def _effect(
    fabric: Fabric, one: JobTraffic, delivered: Delivered, gone: Bools, seconds: tuple[float, float, float]
) -> JobEffect:
    """Return the effect of a change on a job, from its times before, unchanged and after."""
    before, unchanged, after = seconds
    return JobEffect(
        job=one.job,
        user=one.user,
        before_seconds=before,
        unchanged_seconds=unchanged,
        after_seconds=after,
        unreachable_pairs=delivered.unreachable_pairs,
        unreachable_bytes=delivered.unreachable_bytes,
        lost_hosts=tuple(fabric.names[host] for host in np.unique(one.placement.host_of_rank[gone]).tolist()),
        lost_ranks=int(gone.sum()),
    )
