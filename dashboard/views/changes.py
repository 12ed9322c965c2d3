"""The changes page: what of a cluster's wiring became another, in words and on the map."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pandas as pd
import streamlit as st

from dashboard import queries
from dashboard.queries.changes import ChangesView, between_kept, changes_view
from dashboard.state.site import Site
from dashboard.tables.csv_files import csv_text
from dashboard.tables.times import in_utc
from dashboard.views.change_map import draw_changes
from dashboard.widgets.choices import choose, parsed_moment
from dashboard.widgets.downloads import download
from dashboard.widgets.messages import plain, show_empty, show_unknown
from registry import units
from registry.errors import UnknownName
from registry.fabrics.change_text import in_words, summary
from registry.fabrics.changes import Changes
from registry.fabrics.fabrics import ClusterInfo
from registry.pages.changes import SnapshotDiff, State
from registry.registry import Registry

OFFERED = 500
"""States that can be chosen from, the newest ones; the address takes any time."""

WORDS = 10
"""Lines that are shown at once."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Changes")
    known = queries.clusters(registry)
    if not known:
        show_empty(
            "The registry holds no fabric yet. Ingest a scan, or look at the demo:",
            "almanac ingest SCAN --cluster NAME",
            "almanac demo",
        )
        return
    try:
        view = _choose(registry, known)
    except UnknownName as error:
        show_unknown(error, "from" if error.kind == "state" else error.kind)
        return
    found = between_kept(registry, view)
    st.text(f"{_name(view.before)}  to  {_name(view.after)}: {summary(found.changes)}")
    if view.before == view.after:
        st.info("The wiring of this cluster was the same all the time that it was looked at.")
    else:
        _counts(found.changes)
        _words(view, found)
        draw_changes(found)
    _states(view)


def _choose(registry: Registry, known: dict[str, ClusterInfo]) -> ChangesView:
    """The cluster and the two states that the address or the widgets tell.

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
        if parameter in st.query_params:  # any time names the state as of then
            st.query_params[parameter] = key
        with column:
            choose(label, parameter, options, show=shown.__getitem__, kind="state", default=key)
    return view


def _counts(changes: Changes) -> None:
    """What appeared and what vanished, counted."""
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
        column.metric(label, f"+{more:,}  −{less:,}", help="appeared and vanished")
    columns[-3].metric("Renamed", f"{len(changes.renamed):,}")
    columns[-2].metric("Cables of another speed", f"{len(changes.capacity_changed):,}")
    columns[-1].metric("Switches rerouted", f"{len(changes.switches_rerouted):,}")


def _words(view: ChangesView, found: SnapshotDiff) -> None:
    st.subheader("In words")
    table = pd.DataFrame({"what changed": in_words(found.changes)})
    st.dataframe(table, hide_index=True, height="content" if len(table) <= WORDS else 420, key="words")
    download("Download as CSV", csv_text(table), f"{view.timeline.cluster}-changes.csv", key="words csv")


def _states(view: ChangesView) -> None:
    """Every state of the cluster; the one that is picked is compared with the one before it."""
    states = view.timeline.states
    st.subheader("When the wiring or the tables became others")
    ends = [*(state.at for state in states[1:]), None]
    table = pd.DataFrame(
        {
            "first seen (UTC)": in_utc(state.at for state in states),
            "until (UTC)": in_utc(ends),
            "wiring": [state.content for state in states],
            "tables": [state.routing or "" for state in states],
            "what became another": _differences(states),
        }
    ).iloc[::-1]
    event = st.dataframe(
        table, hide_index=True, on_select="rerun", selection_mode="single-row", key="states", height="content"
    )
    picked = event["selection"]["rows"]
    if not picked:
        st.caption(
            "Pick a row to see what it changed. The newest state has no end; it was seen last at "
            f"{plain(units.moment_text(view.timeline.last_at))}."
        )
        return
    number = len(states) - 1 - picked[0]
    st.button(
        f"Show what changed at {plain(_name(states[number]))}",
        on_click=_go,
        args=(states[max(number - 1, 0)], states[number]),
        icon=":material/arrow_forward:",
        key="show state",
    )


def _differences(states: Sequence[State]) -> list[str]:
    words = ["first seen"]
    for before, after in pairwise(states):
        both = (("wiring", before.content, after.content), ("tables", before.routing, after.routing))
        words.append(" and ".join(what for what, old, new in both if old != new))
    return words


def _go(before: State, after: State) -> None:
    st.query_params["from"], st.query_params["to"] = _key(before), _key(after)


def _key(state: State) -> str:
    return state.at.isoformat()


def _name(state: State) -> str:
    return units.moment_text(state.at)
