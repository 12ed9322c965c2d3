"""Changes on the fabric page: the wiring at a time compared with an earlier one, on the map and as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

import pandas as pd
import streamlit as st

from dashboard.components.fabric_map import fabric_map
from dashboard.components.fabric_map.picture import FILL
from dashboard.figures import colouring
from dashboard.figures.link_map import LINES_LIMIT, link_map
from dashboard.figures.style import DARK, LIGHT
from dashboard.layouts.drawing import Drawing, draw_fabric
from dashboard.queries.changes import cached_comparison
from dashboard.tables.changes import GONE, KINDS, UNCHANGED, Overlay, overlay
from dashboard.widgets.address import set_address
from dashboard.widgets.controls import choose, parsed_moment
from dashboard.widgets.messages import plain
from dashboard.widgets.tables import csv_text, download
from registry import units
from registry.errors import UnknownName
from registry.pages.changes import SnapshotDiff, State, Timeline
from registry.registry import Registry
from registry.store.changes import Changes, in_words, summary

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

    Raises
    ------
    UnknownName
        There was no state at one of the times.
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
