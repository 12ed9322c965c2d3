"""Effect on running jobs of removed cables or switches, added cables, and drained hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mapping.distances.cost_model import CostModel
from mapping.routing.repaired_tables import repair_tables
from mapping.traffic.fabric_changes import Change, applied
from mapping.traffic.job_loads import Delivered, JobTraffic, Loader
from mapping.traffic.shared_load import JobLoad, SharedLoad
from registry.errors import InvalidValue
from registry.model import Bools, Fabric, Ints
from registry.model.views import one_line
from registry.progress import Progress, silent

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
    """Effect of a change on one job.

    Attributes
    ----------
    job, user : str
    before_seconds, unchanged_seconds, after_seconds : float
        Time of the worst link that it loads, with all jobs' bytes; seconds per iteration. See `WhatIf`.
    unreachable_pairs : int
        Ordered pairs of its ranks that communicate and have no path after the change.
    unreachable_bytes : float
        Bytes between them.
    lost_hosts : tuple of str
        Its hosts that are drained.
    lost_ranks : int
        Ranks on them.
    """

    job: str
    user: str
    before_seconds: float
    unchanged_seconds: float
    after_seconds: float
    unreachable_pairs: int
    unreachable_bytes: float
    lost_hosts: tuple[str, ...]
    lost_ranks: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WhatIf:
    """Congestion of running jobs before and after a change.

    Attributes
    ----------
    change : Change
    before, unchanged, after : SharedLoad
        The present fabric under its present routing; the same fabric under the rule, which is what `after`
        has to be compared with; the changed fabric under the rule. The fabrics
        (``before.fabric``, ``after.fabric``) have the same vertices; the jobs are the same in the same order.
    routing_before, rule : str
        Routings before and after. If both are the same on the present fabric, `unchanged` is `before`.
    jobs : tuple of JobEffect
        In the order of ``before.jobs``.
    row_before : int32[links after]
        Row of each link of the changed fabric in ``before.fabric.links``; -1 for an added cable.
    """

    change: Change
    before: SharedLoad
    unchanged: SharedLoad
    after: SharedLoad
    routing_before: str
    rule: str
    jobs: tuple[JobEffect, ...]
    row_before: Ints

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

    Parameters
    ----------
    rule : str, optional
        Routing of both sides; default: `same_rule` as now. ``repaired-tables`` repairs the forwarding tables
        after the change (`mapping.routing.repaired_tables`), ``tables`` keeps them as they are; any other
        routing (`mapping.routing.catalog`) is computed on both fabrics.
    costs : CostModel, optional
        Routing before the change, and rails.
    before : SharedLoad, optional
        The same jobs' loads before the change, if known.

    Raises
    ------
    UnknownName, InvalidValue
        Names are unknown or invalid, or a job would have no hosts left.
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

    Raises
    ------
    InvalidValue
        A job would have no ranks left.
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
