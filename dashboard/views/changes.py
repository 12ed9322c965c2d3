"""The changes page: differences between two states of a cluster's wiring, as text and on a map."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pandas as pd
import streamlit as st

from dashboard.components.fabric_map import fabric_map
from dashboard.figures import colouring
from dashboard.figures.link_map import LINES_LIMIT, link_map
from dashboard.figures.style import DARK, LIGHT
from dashboard.layouts.drawing import Drawing, draw_fabric
from dashboard.queries.changes import ChangesView, cached_comparison, changes_view
from dashboard.queries.traffic import clusters
from dashboard.state.site import Site
from dashboard.tables.changes import GONE, KINDS, UNCHANGED, Overlay, overlay
from dashboard.tables.columns import in_utc
from dashboard.widgets.address import set_address
from dashboard.widgets.controls import choose, parsed_moment, toggle
from dashboard.widgets.messages import plain, show_no_fabric, show_unknown
from dashboard.widgets.tables import csv_text, download
from registry import units
from registry.errors import UnknownName
from registry.fabrics.changes import Changes, in_words, summary
from registry.fabrics.fabrics import ClusterInfo
from registry.pages.changes import SnapshotDiff, State
from registry.registry import Registry

OFFERED = 500
"""Maximum number of offered states, the newest ones; the address may name any time."""

WORDS = 10
"""Number of lines shown without scrolling."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Changes")
    known = clusters(registry)
    if not known:
        show_no_fabric()
        return
    try:
        view = _choose(registry, known)
    except UnknownName as error:
        show_unknown(error, "from" if error.kind == "state" else error.kind)
        return
    found = cached_comparison(registry, view.timeline.cluster, view.before, view.after)
    st.text(f"{_name(view.before)}  to  {_name(view.after)}: {summary(found.changes)}")
    if view.before == view.after:
        st.info("The wiring of this cluster never changed in any observation.")
    else:
        _counts(found.changes)
        _words(view, found)
        _map(found)
    _states(view)


def _choose(registry: Registry, known: dict[str, ClusterInfo]) -> ChangesView:
    """Draw the controls, and return the chosen cluster and its two states.

    Raises
    ------
    UnknownName
    """
    columns = st.columns([2, 3, 3])
    with columns[0]:
        cluster = choose("Cluster", "cluster", list(known), resets=("from", "to")) or ""
    view = changes_view(registry, cluster, parsed_moment("from"), parsed_moment("to"))
    offered = [_key(state) for state in view.timeline.states[: -OFFERED - 1 : -1]]
    shown = {_key(state): _name(state) for state in view.timeline.states}
    for column, label, parameter, state in (
        (columns[1], "From", "from", view.before),
        (columns[2], "To", "to", view.after),
    ):
        key = _key(state)
        options = offered if key in offered else [*offered, key]
        if parameter in st.query_params:  # any time in the address means the state at that time
            st.query_params[parameter] = key
        with column:
            choose(label, parameter, options, show=shown.__getitem__, kind="state", default=key)
    return view


def _counts(changes: Changes) -> None:
    """Draw the numbers of added and removed devices and cables."""
    cables = [
        sum(cable.cables for cable in part) for part in (changes.cables_appeared, changes.cables_vanished)
    ]
    facts = {
        "Switches": (len(changes.switches_appeared), len(changes.switches_vanished)),
        "Hosts": (len(changes.hosts_appeared), len(changes.hosts_vanished)),
        "Cables": (cables[0], cables[1]),
    }
    columns = st.columns(len(facts) + 3)
    for column, (label, (more, less)) in zip(columns, facts.items(), strict=False):
        column.metric(label, f"+{more:,}  −{less:,}", help="added and removed")
    columns[-3].metric("Renamed", f"{len(changes.renamed):,}")
    columns[-2].metric("Cables with new speed", f"{len(changes.capacity_changed):,}")
    columns[-1].metric("Switches rerouted", f"{len(changes.switches_rerouted):,}")


def _words(view: ChangesView, found: SnapshotDiff) -> None:
    st.subheader("List of changes")
    table = pd.DataFrame({"what changed": in_words(found.changes)})
    st.dataframe(table, hide_index=True, height="content" if len(table) <= WORDS else 420, key="words")
    download("Download as CSV", csv_text(table), f"{view.timeline.cluster}-changes.csv", key="words csv")


def _states(view: ChangesView) -> None:
    """Draw all states of the cluster; a selected one can be compared with the state before."""
    states = view.timeline.states
    st.subheader("Change history")
    ends = [*(state.at for state in states[1:]), None]
    table = pd.DataFrame(
        {
            "first seen (UTC)": in_utc(state.at for state in states),
            "until (UTC)": in_utc(ends),
            "wiring": [state.content for state in states],
            "tables": [state.routing or "" for state in states],
            "what changed": _differences(states),
        }
    ).iloc[::-1]
    event = st.dataframe(
        table, hide_index=True, on_select="rerun", selection_mode="single-row", key="states", height="content"
    )
    picked = event["selection"]["rows"]
    if not picked:
        st.caption(
            "Select a row to see its changes. The newest state has no end; it was last seen at "
            f"{plain(units.moment_text(view.timeline.last_at))}."
        )
        return
    number = len(states) - 1 - picked[0]
    st.button(
        f"Show changes at {plain(_name(states[number]))}",
        on_click=set_address,
        kwargs={"from": _key(states[max(number - 1, 0)]), "to": _key(states[number])},
        icon=":material/arrow_forward:",
        key="show state",
    )


def _differences(states: Sequence[State]) -> list[str]:
    """Return for each state whether the wiring, the tables or both differ from the state before."""
    words = ["first seen"]
    for before, after in pairwise(states):
        both = (("wiring", before.content, after.content), ("tables", before.routing, after.routing))
        words.append(" and ".join(what for what, old, new in both if old != new))
    return words


def _key(state: State) -> str:
    return state.at.isoformat()


def _name(state: State) -> str:
    return units.moment_text(state.at)


COLOURS = {
    LIGHT: ("#dfe3e8", "#8cc5e3", "#f0b35c", "#0b6e8f", "#b3262d"),
    DARK: ("#3a4048", "#31618c", "#b0762f", "#4cc3ea", "#ff8a5c"),
}
MAPS_CACHED = 4
"""Number of cached maps of two states."""
WHOLE, CHANGED = "whole", "changed"


def _map(between: SnapshotDiff) -> None:
    """Draw a map of both states: new, removed, faster and slower links stand out."""
    found, drawing = _overlay(between.before.id, between.after.id, between)
    if not found.differs:
        st.caption("No cable differs between the two states.")
        return
    few = len(drawing.cables) <= LINES_LIMIT
    shapes = {WHOLE: "The whole fabric", CHANGED: "Changed cables, as lines"}
    shape = toggle("Map", "map", shapes, default=WHOLE)
    changed = found.kind != UNCHANGED
    title = "Changed cables, earlier to later state"
    colours = colouring.kinds(title, "Cables", found.kind, KINDS, COLOURS, gone=KINDS[GONE - 1 :])
    picture = link_map(
        found.fabric,
        drawing,
        colours,
        lines=few or shape == CHANGED,
        only=changed if shape == CHANGED else None,
        height=460,
    )
    fabric_map(picture, key="changes map")
    if (found.kind == GONE).any():
        st.caption("Removed cables are drawn at their old places.")


@st.cache_resource(max_entries=MAPS_CACHED, show_spinner=False)
def _overlay(before: str, after: str, _between: SnapshotDiff) -> tuple[Overlay, Drawing]:
    found = overlay(_between.before.fabric, _between.after.fabric, _between.changes)
    return found, draw_fabric(found.fabric)
