"""Data of the pages Fabric and Planner; shared by all viewers.

Effects of a change on running jobs as a table, and the changed fabric to draw. Pure functions.

The selected link or device of a fabric map, stored in the address; set by a click or a search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.map.layouts import Drawing, redrawn
from dashboard.map.picture import Item
from dashboard.shared import door
from dashboard.shared.caching import KEYS, SHARED
from dashboard.shared.cards import set_address, show_unknown
from dashboard.shared.names import with_removed
from dashboard.shared.traffic import cached_traffic
from dashboard.shared.viewer import Viewer
from mapping.checks.checks import check
from mapping.checks.finding import ErrorLimits, Finding, Subject
from mapping.questions.live import Live, imagine, utilisation
from mapping.traffic.names import find_device, find_links, link_text
from mapping.traffic.ports import CounterHistory
from mapping.traffic.shared_load import AgainstCounters, against_counters
from mapping.traffic.what_if import Change, WhatIf
from registry.errors import InvalidValue, UnknownName
from registry.model import HOST, Bools, Fabric, Floats, LinkRates, Longs
from registry.registry import Registry
from registry.store.counters import Sweeps, rates_of, read_growth
from registry.store.fabric_history import (
    DeviceHistory,
    FabricHistory,
    read_device_history,
    read_fabric_history,
)
from registry.store.fabrics import ClusterInfo, Snapshot
from registry.store.placements import OpenPlacement


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangedFabric:
    """A changed fabric together with the links that the change removed."""

    fabric: Fabric
    """Fabric with the links after the change and the removed links; without forwarding tables."""
    row_after: Longs
    """int64[m]: Row of ``after.fabric.links`` of each link; -1 for a removed link."""

    @property
    def gone(self) -> Bools:
        """bool[m]: links that the change removed."""
        found: Bools = self.row_after < 0
        return found

    def values(self, after: Floats) -> Floats:
        """Return float64[m]: the given values of links after the change; NaN for removed links."""
        found: Floats = np.append(after, np.nan)[self.row_after]
        return found


def changed_fabric(found: WhatIf) -> ChangedFabric:
    """Return the fabric after a change together with the removed links."""
    before, after = found.before.fabric.links, found.after.fabric.links
    gone = np.setdiff1d(np.arange(len(before)), found.row_before)
    links = with_removed(after, before, gone)
    rows = np.append(np.arange(len(after)), np.full(len(gone), -1)).astype(np.int64)
    order = links.order()
    fabric = replace(found.after.fabric, links=links.take(order), tables=None)
    return ChangedFabric(fabric=fabric, row_after=rows[order])


SLOWER = 1.01
"""Ratio of the times of a worst link above which it counts as slower."""


class Totals(NamedTuple):
    """Main numbers of a change, both sides by its routing rule."""

    before_seconds: float
    after_seconds: float
    """Time of the worst link of all jobs together."""
    change: str
    """Its relative change as text, such as ``+25.0 %, ``; empty if nothing was sent before."""
    worse: bool
    """True if the worst link takes longer than `SLOWER` allows."""
    jobs: int
    slower: int
    """Number of jobs, and of those whose worst link is slower."""
    largest: float
    """Largest factor by which a job's worst link is slower."""
    cut_pairs: int
    cut_jobs: int
    """Pairs of ranks that no path connects any more, and the number of their jobs."""
    lost_ranks: int
    """Ranks on drained hosts."""


def totals(found: WhatIf) -> Totals:
    """Return the main numbers of a change."""
    before, after = (float(side.seconds.max(initial=0.0)) for side in (found.unchanged, found.after))
    factors = [one.after_seconds / one.unchanged_seconds for one in found.jobs if one.unchanged_seconds > 0]
    return Totals(
        before_seconds=before,
        after_seconds=after,
        change=f"{100 * (after / before - 1):+.1f} %, " if before > 0 else "",
        worse=after > SLOWER * before,
        jobs=len(found.jobs),
        slower=sum(factor > SLOWER for factor in factors),
        largest=max(factors, default=1.0),
        cut_pairs=sum(one.unreachable_pairs for one in found.jobs),
        cut_jobs=sum(one.unreachable_pairs > 0 for one in found.jobs),
        lost_ranks=sum(one.lost_ranks for one in found.jobs),
    )


def effects(found: WhatIf, viewer: Viewer) -> pd.DataFrame:
    """Return the visible jobs, those with unreachable pairs first, then by slowdown.

    Times of the worst link, s per iteration, both by the routing rule of the change: before and after it;
    ``times`` is after over before.
    """
    rows = [
        (
            one.job,
            viewer.name(one.user),
            load.application or "",
            one.unchanged_seconds,
            one.after_seconds,
            one.after_seconds / one.unchanged_seconds if one.unchanged_seconds > 0 else float("nan"),
            one.unreachable_pairs,
            one.unreachable_bytes,
            one.lost_ranks,
            ", ".join(one.lost_hosts),
        )
        for one, load in zip(found.jobs, found.before.jobs, strict=True)
        if viewer.sees(one.user)
    ]
    columns = ["job", "user", "application", "before", "after", "times", "unreachable pairs"]
    table = pd.DataFrame(rows, columns=[*columns, "unreachable bytes", "lost ranks", "lost hosts"])
    order = np.lexsort((-table["times"].fillna(0).to_numpy(float), -table["unreachable pairs"].to_numpy(int)))
    return table.iloc[order].reset_index(drop=True)


def seconds_more(found: WhatIf) -> Floats:
    """Return float64[links after]: time of each link less its time without the change, same routing rule.

    The time of an added cable without the change is 0.
    """
    unchanged = np.append(found.unchanged.seconds, 0.0)  # row -1 is an added cable
    return np.asarray(found.after.seconds - unchanged[found.row_before])


CHANGES_CACHED = 4
"""Number of cached changes."""
PERIODS_CACHED = 4
"""Number of clusters and periods whose counters are cached."""
SMALL_CACHED = 64
"""Number of cached results that are small."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FabricView:
    """Data of the fabric page."""

    cluster: ClusterInfo
    snapshot: Snapshot
    """The fabric that is shown."""
    time: datetime | None
    """Time of the fabric, or None for now."""
    live: Live | None
    """Traffic of the running jobs, or None if a placement is shown."""
    opened: OpenPlacement | None
    """Placement whose traffic is shown instead, on the fabric it was computed for."""
    rates: LinkRates | None
    """Rates measured by port counters, or None if there are none or they were not requested."""
    link_bytes: Floats | None
    """float64[m]: Estimated bytes per iteration on each link, or None if no traffic is known."""

    @property
    def fabric(self) -> Fabric:
        """Hosts, switches and links of the snapshot."""
        return self.snapshot.fabric

    @property
    def share(self) -> Floats | None:
        """Measured utilisation of each link (float64[m]), or None if nothing was measured."""
        return None if self.rates is None else self.rates.share

    @property
    def seconds(self) -> Floats | None:
        """Estimated time of each link (float64[m]), or None if no traffic is known."""
        return None if self.link_bytes is None else self.link_bytes / self.fabric.links.capacity

    @property
    def estimated_share(self) -> Floats | None:
        """Estimated utilisation of each link (float64[m]), or None unless all times are known."""
        return None if self.live is None else utilisation(self.live, self.rates)

    @property
    def against(self) -> AgainstCounters | None:
        """Estimated and measured utilisation on one scale, or None if one of them is missing."""
        if self.rates is None or self.link_bytes is None:
            return None
        found = against_counters(self.fabric, self.link_bytes, self.rates.bytes_per_second)
        return None if np.isnan(found.iterations_per_second) else found


@st.cache_resource(max_entries=SMALL_CACHED, ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_fabric_history(registry: Registry, cluster: str | None, time: datetime | None) -> FabricHistory:
    """Return all clusters, with the timeline and latest counters of one: one statement for all viewers.

    Raises:
        UnknownName: No such cluster.
    """
    return read_fabric_history(registry.database, cluster, time, counters=True)


@st.cache_resource(max_entries=PERIODS_CACHED, show_spinner=False)
def _rates(
    snapshot_id: str, swept: tuple[datetime, ...], _fabric: Fabric, _sweeps: Sweeps
) -> LinkRates | None:
    return rates_of(_fabric, _sweeps)


@st.cache_resource(
    max_entries=PERIODS_CACHED,
    show_spinner="Reading the port counters ...",
    hash_funcs=KEYS | {ErrorLimits: repr},
)
def cached_counters(
    registry: Registry,
    cluster: ClusterInfo,
    _snapshot: Snapshot,
    snapshot_id: str,
    time: datetime | None,
    over: timedelta,
    limits: ErrorLimits,
) -> CounterHistory | None:
    """Return utilisation and errors over time: two statements; None without two sweeps in the period."""
    parts = read_growth(registry.database, cluster.name, over, time)
    return CounterHistory.of(_snapshot.fabric, parts, limits)


@st.cache_resource(max_entries=SMALL_CACHED, show_spinner=False, hash_funcs=KEYS)
def cached_device_history(
    registry: Registry, cluster: ClusterInfo, _fabric: Fabric, vertex: int, name: str
) -> DeviceHistory:
    """Return when the cables and the name of a device changed: one statement."""
    return read_device_history(registry.database, cluster.name, _fabric, vertex)


@st.cache_resource(
    max_entries=PERIODS_CACHED, show_spinner="Checking the fabric ...", hash_funcs=KEYS | {ErrorLimits: repr}
)
def cached_fabric_findings(
    registry: Registry,
    cluster: ClusterInfo,
    _snapshot: Snapshot,
    snapshot_id: str,
    time: datetime | None,
    limits: ErrorLimits,
    _counters: CounterHistory | None,
) -> tuple[Finding, ...]:
    """Return the findings of ``almanac cluster check`` at a time: two statements."""
    try:
        plan = registry.intended.read(cluster.name, time).wiring
    except UnknownName:
        plan = None
    start = _snapshot.observed_at - limits.period
    subject = Subject(
        fabric=_snapshot.fabric,
        plan=plan,
        counters=None if _counters is None else _counters.errors.grown,
        losses=registry.fabrics.losses(_snapshot, start, time),
        limits=limits,
    )
    return check(subject)


def fabric_view(
    registry: Registry,
    found: FabricHistory,
    time: datetime | None,
    placement: str | None,
    viewer: Viewer,
) -> FabricView:
    """Return a cluster's fabric with the traffic of the running jobs, or of a placement.

    One statement for a placement, those of `cached_traffic` for running jobs, none if it is cached.

    Raises:
        UnknownName: No observation of the cluster until then, or no such placement that the viewer may see.
    """
    line = found.timeline
    assert line is not None
    cluster = found.clusters[line.cluster]
    opened = None if placement is None else door.placement(registry, placement, viewer)
    if opened is not None and opened.stored.cluster != cluster.name:
        raise UnknownName(
            "placement", placement or "", remedy=f"it belongs to cluster {opened.stored.cluster}"
        )
    live = None
    if opened is not None:
        snapshot, evaluation = opened.snapshot, opened.stored.evaluation
        link_bytes = None if evaluation is None else evaluation.link_bytes
    else:
        live = cached_traffic(registry, cluster, time)
        snapshot = live.running.snapshot
        link_bytes = live.shared.link_bytes if len(live.shared) else None
    return FabricView(
        cluster=cluster,
        snapshot=snapshot,
        time=time,
        live=live,
        opened=opened,
        rates=_rates(snapshot.id, tuple(sweep.at for sweep in found.sweeps), snapshot.fabric, found.sweeps),
        link_bytes=link_bytes,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Consequences:
    """Consequences of a change, and the drawing of the changed fabric, removed links included."""

    what_if: WhatIf
    changed: ChangedFabric
    drawing: Drawing


@st.cache_resource(
    max_entries=CHANGES_CACHED,
    show_spinner="Routing the jobs on the changed fabric ...",
    hash_funcs=KEYS | {Change: repr},
)
def cached_what_if(
    registry: Registry, cluster: ClusterInfo, live: Live, _drawing: Drawing, change: Change, rule: str | None
) -> Consequences:
    """Return what a change would do to the running jobs: one statement, none if the result is cached.

    Raises:
        UnknownName, InvalidValue
    """
    found = imagine(registry, live, change, rule=rule)
    changed = changed_fabric(found)
    return Consequences(what_if=found, changed=changed, drawing=redrawn(_drawing, changed.fabric))


ITEMS = ("link", "switch", "host", "device")
"""Parameters of the address that select something: a link as ``DEVICE:PORT``, or a device."""
SHOW = "show"
"""Parameter of the address: what is shown of the selected item."""
PARAMETERS = (*ITEMS, "load")
"""Parameters that belong to what is selected; ``load`` is the job whose ranks are shown."""
_FAILED = "search failed"


def from_address(fabric: Fabric) -> Item | None:
    """Return the selected item of the address, or None.

    Raises:
        UnknownName, InvalidValue: The fabric has no such link or device.
    """
    for kind in ITEMS:
        text = st.query_params.get(kind)
        if text is None:
            continue
        if kind == "link":
            return Item(link=int(find_links(fabric, text)[0]))
        return Item(vertex=find_device(fabric, text, kind=kind).vertex)
    return None


def pick(fabric: Fabric, item: Item | None) -> None:
    """Store the selected item in the address."""
    link, vertex = (None, None) if item is None else item
    kind, text = "link", None if link is None else link_text(fabric, link)
    if st.query_params.get(SHOW) != "errors":  # errors are shown of one item after the other
        set_address(**{SHOW: None})
    if vertex is not None:
        kind, text = "host" if fabric.kind[vertex] == HOST else "switch", fabric.names[vertex]
    set_address(**dict.fromkeys(PARAMETERS) | {kind: text})


def pick_button(label: str, fabric: Fabric, item: Item | None, **settings: Any) -> None:
    """Draw a button that selects an item; further arguments are those of ``st.button``."""
    st.button(label, on_click=pick, args=(fabric, item), **settings)


def search(fabric: Fabric) -> None:
    """Draw a field that searches a host, a switch, an adapter, a GUID or a link."""
    st.text_input(
        "Find a host, a switch, a GUID or a link",
        key="find",
        placeholder="node0001, 0x0002c903000a1b2c, leaf3:17",
        on_change=_find,
        args=(fabric,),
    )


def show_failed_search() -> None:
    """Show that the last search found nothing, and the closest names."""
    error = st.session_state.get(_FAILED)
    if isinstance(error, UnknownName):
        show_unknown(error, "device")


def _find(fabric: Fabric) -> None:
    """Select what the search field names, a device first, then a link."""
    st.session_state.pop(_FAILED, None)
    text = str(st.session_state["find"]).strip()
    if not text:
        return
    try:
        pick(fabric, Item(vertex=find_device(fabric, text).vertex))
    except UnknownName as error:
        try:
            pick(fabric, Item(link=int(find_links(fabric, text)[0])))
        except (UnknownName, InvalidValue):
            st.session_state[_FAILED] = error
