"""Changes on the fabric page: the wiring at a time compared with an earlier one, on the map and as text.

Differences of two states of a cluster's wiring.

Two states of a wiring as one fabric whose links are new, gone, changed or unchanged. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.map.layout import repeat_number
from dashboard.map.layouts import Drawing, draw_fabric
from dashboard.map.picture import FILL, fabric_map
from dashboard.shared import link_map as colouring
from dashboard.shared.caching import KEYS
from dashboard.shared.cards import DARK, LIGHT, csv_text, download, plain, set_address
from dashboard.shared.controls import choose, parsed_moment
from dashboard.shared.link_map import LINES_LIMIT, link_map
from dashboard.shared.names import with_removed
from registry import units
from registry.errors import UnknownName
from registry.model import NO_PORT, Fabric, Floats, Links, Longs
from registry.registry import Registry
from registry.store.changes import Changes, in_words, summary
from registry.store.fabric_history import SnapshotDiff, State, Timeline, read_snapshot_diff

PAIRS_CACHED = 8
"""Number of cached comparisons of two states."""


@st.cache_resource(max_entries=PAIRS_CACHED, show_spinner="Comparing the two states ...", hash_funcs=KEYS)
def cached_comparison(registry: Registry, cluster: str, before: State, after: State) -> SnapshotDiff:
    """Return the two states and their differences: one statement, none if they are cached."""
    return read_snapshot_diff(registry.database, cluster, before, after)


UNCHANGED, FASTER, SLOWER, NEW, GONE = range(1, 6)
"""Kinds of links, the most important last."""
KINDS = ("unchanged", "faster", "slower", "new", "gone")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overlay:
    """Two states of a wiring in one fabric."""

    fabric: Fabric
    """All vertices and links of both states, without adapters and tables."""
    kind: Floats
    """float64[m]: Kind of each link."""

    @property
    def differs(self) -> bool:
        """True if any link changed."""
        return bool((self.kind != UNCHANGED).any())


def overlay(before: Fabric, after: Fabric, changes: Changes) -> Overlay:
    """Return two states of a wiring as one fabric.

    Args:
        changes: Changes between the states; they contain the renamed vertices.
    """
    names, vertex_of = _vertices(before, after, changes)
    older, newer = before.links, after.links
    ends = (vertex_of[older.source], vertex_of[older.target])
    key = _keys([(*ends, older), (newer.source.astype(np.int64), newer.target.astype(np.int64), newer)])
    old_key, new_key = key[: len(older)], key[len(older) :]
    _, old_at, new_at = np.intersect1d(old_key, new_key, assume_unique=True, return_indices=True)
    kind = np.full(len(newer), NEW, np.float64)
    kind[new_at] = UNCHANGED
    grown = newer.capacity[new_at] - older.capacity[old_at]
    kind[new_at[grown > 0]], kind[new_at[grown < 0]] = FASTER, SLOWER
    gone = np.setdiff1d(np.arange(len(older)), old_at)
    source, target = (end.astype(np.int32) for end in ends)
    links = with_removed(newer, replace(older, source=source, target=target), gone)
    unknown = np.full(len(links), NO_PORT, np.int32)
    links = replace(links, source_adapter=unknown, target_adapter=unknown)
    order = links.order()
    kind = np.r_[kind, np.full(len(gone), GONE)][order]
    return Overlay(fabric=_fabric(before, after, names, vertex_of, links.take(order)), kind=kind)


def _vertices(before: Fabric, after: Fabric, changes: Changes) -> tuple[tuple[str, ...], Longs]:
    """Return all names, the later state's first, and the index of each earlier vertex among them."""
    renamed = {one.old: one.new for one in changes.renamed}
    place = {name: vertex for vertex, name in enumerate(after.names)}
    names = list(after.names)
    vertex_of = np.empty(len(before), np.int64)
    for vertex, name in enumerate(before.names):
        now = renamed.get(name, name)
        if now not in place:
            place[now] = len(names)
            names.append(now)
        vertex_of[vertex] = place[now]
    return tuple(names), vertex_of


def _keys(states: list[tuple[Longs, Longs, Links]]) -> Longs:
    """Return a number for each link of all states, equal for links with equal ends and ports."""
    rows = []
    for source, target, links in states:
        columns = (source, target, links.source_port.astype(np.int64), links.target_port.astype(np.int64))
        rows.append(np.stack([*columns, repeat_number(*columns)], axis=1))
    return np.unique(np.concatenate(rows), axis=0, return_inverse=True)[1].astype(np.int64).reshape(-1)


def _fabric(before: Fabric, after: Fabric, names: tuple[str, ...], vertex_of: Longs, links: Links) -> Fabric:
    """Return the later fabric with the removed vertices and with these links."""
    lost = np.flatnonzero(vertex_of >= len(after))
    lost = lost[np.argsort(vertex_of[lost])]
    empty = replace(
        after,
        adapters=type(after.adapters)(),
        ports=type(after.ports)(),
        tables=None,
        links=links.take(np.zeros(0, np.int64)),
    )
    columns = {
        name: np.r_[getattr(after, name), getattr(before, name)[lost]]
        for name in ("kind", "slots", "forwards", "guid", "lid")
    }
    return replace(empty, names=names, links=links, level=None, coordinates=None, **columns)


OFFERED = 500
"""Maximum number of offered states, the newest ones; the address may name any time."""
LISTED = 6
"""Maximum number of states that are listed beside the map."""
TALL = 260
"""Height of the list of changes in pixels, if it is long."""
COLOURS = {
    LIGHT: ("#dfe3e8", "#8cc5e3", "#f0b35c", "#0b6e8f", "#b3262d"),
    DARK: ("#3a4048", "#31618c", "#b0762f", "#4cc3ea", "#ff8a5c"),
}
MAPS_CACHED = 4
"""Number of cached maps of two states."""


def compared(registry: Registry, line: Timeline, time: datetime | None) -> SnapshotDiff:
    """Return the state at a time and the one with which the address compares it (default: the one before).

    Raises:
        UnknownName: There was no state at one of the times.
    """
    after = line.states[-1] if time is None else _as_of(line, time)
    start = parsed_moment("from")
    number = line.states.index(after)
    before = line.states[max(number - 1, 0)] if start is None else _as_of(line, start)
    return cached_comparison(registry, line.cluster, before, after)


def draw_map(found: SnapshotDiff, below: int) -> None:
    """Draw a map of both states: new, removed, faster and slower cables stand out."""
    both, drawing = _overlay(found.before.id, found.after.id, found)
    changed = both.kind != UNCHANGED
    few = len(drawing.cables) <= LINES_LIMIT
    title = f"Changes from {_name(found.before.observed_at)} to {_name(found.after.observed_at)}"
    colours = colouring.kinds(title, "Cables", both.kind, KINDS, COLOURS, gone=KINDS[GONE - 1 :])
    # of a large fabric, the changed cables are drawn as lines between their devices
    only = None if few or not both.differs else changed
    lines = few or both.differs
    picture = link_map(both.fabric, drawing, colours, lines=lines, only=only, height=FILL)
    fabric_map(picture, key="changes map", below=below)


def draw_list(line: Timeline, found: SnapshotDiff) -> None:
    """Draw the differences as text, and all states of the cluster."""
    st.header("Changes", anchor=False)
    _compare_with(line, found)
    changes = found.changes
    if found.before.observed_at == found.after.observed_at:
        st.caption("The wiring and the tables of this cluster did not change until then.")
    else:
        st.caption(plain(summary(changes)))
        _words(line, changes)
    _states(line, found)


def rewirings(line: Timeline) -> dict[datetime, str]:
    """Return what changed at each time of a change: the wiring, the tables, or both."""
    whats = zip(line.states[1:], _differences(line.states)[1:], strict=True)
    return {state.at: what for state, what in whats}


def _compare_with(line: Timeline, found: SnapshotDiff) -> None:
    """Draw the choice of the earlier state."""
    key = found.before.observed_at.isoformat()
    offered = [state.at.isoformat() for state in line.states[: -OFFERED - 1 : -1]]
    options = offered if key in offered else [*offered, key]
    shown = {state.at.isoformat(): _name(state.at) for state in line.states}
    if "from" in st.query_params:  # any time in the address means the state at that time
        st.query_params["from"] = key
    choose(
        "Compare with the state of (UTC)", "from", options, show=shown.__getitem__, kind="state", default=key
    )


def _words(line: Timeline, changes: Changes) -> None:
    """Draw the list of changes and its download."""
    table = pd.DataFrame({"what changed": in_words(changes)})
    st.dataframe(table, hide_index=True, height="content" if len(table) <= 6 else TALL, key="words")
    download("Download as CSV", lambda: csv_text(table), f"{line.cluster}-changes.csv", key="words csv")


def _states(line: Timeline, found: SnapshotDiff) -> None:
    """Draw the newest states as buttons that show their changes."""
    st.header("Change history", anchor=False)
    words = _differences(line.states)
    with st.container(gap=None):
        for state, what in list(zip(line.states, words, strict=True))[: -LISTED - 1 : -1]:
            st.button(
                plain(f"{_name(state.at)} · {what}"),
                on_click=set_address,
                kwargs={"from": None, "at": state.at.isoformat()},
                key=f"state {state.at.isoformat()}",
                type="tertiary",
                disabled=state.at == found.after.observed_at,
            )
    more = len(line.states) - LISTED
    seen = f"Last scan: {units.moment_text(line.last_at)}"
    st.caption(plain(f"{more:,} earlier. {seen}" if more > 0 else seen))


def _differences(states: Sequence[State]) -> list[str]:
    """Return for each state whether the wiring, the tables or both differ from the state before."""
    words = ["first scan"]
    for before, after in pairwise(states):
        both = (("wiring", before.content, after.content), ("tables", before.routing, after.routing))
        words.append(" and ".join(what for what, old, new in both if old != new))
    return words


def _as_of(line: Timeline, time: datetime) -> State:
    found = line.as_of(time)
    if found is None:
        remedy = f"{line.cluster} was first seen at {line.states[0].at:%F %T} UTC"
        raise UnknownName("state", time.isoformat(), remedy=remedy)
    return found


def _name(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


@st.cache_resource(max_entries=MAPS_CACHED, show_spinner=False)
def _overlay(before: str, after: str, _between: SnapshotDiff) -> tuple[Overlay, Drawing]:
    found = overlay(_between.before.fabric, _between.after.fabric, _between.changes)
    return found, draw_fabric(found.fabric)
