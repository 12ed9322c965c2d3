"""The what-if page: take a link or a switch away, add a cable, drain a host; congestion and reach after."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from dashboard import queries, tables
from dashboard.components.fabric_map import Item, fabric_map
from dashboard.figures import colouring
from dashboard.figures.colouring import Colouring
from dashboard.figures.link_map import LINES_LIMIT, link_map
from dashboard.layouts import Drawing
from dashboard.queries.fabric import FabricView, fabric_view, seen_clusters
from dashboard.queries.what_if import Imagined, imagined_kept
from dashboard.state.site import Site
from dashboard.tables.csv_files import csv_text
from dashboard.tables.links import link_text as link_words
from dashboard.tables.what_if import effects, seconds_more
from dashboard.views import picking
from dashboard.widgets.choices import choose, moment, parsed_moment, toggle
from dashboard.widgets.downloads import download
from dashboard.widgets.job_selection import job_link
from dashboard.widgets.messages import plain, show_empty, show_unknown
from mapping.traffic.naming import link_text
from mapping.traffic.what_if import DEFAULT_RULE, Change, WhatIf
from mapping.traffic.what_if import KEPT as TABLES
from registry import units
from registry.errors import InvalidValue, UnknownName
from registry.model import HOST, Bools, Fabric
from registry.pages.fabric import FabricHistory
from registry.registry import Registry

DOWN, ADD, DRAIN = "down", "add", "drain"
"""Parameters of the address; each may come several times."""
FIELDS = {
    DOWN: ("Take a link or a switch away", "leaf3:17 or leaf3", "gone"),
    ADD: ("Add a cable", "leaf3:spine2 or leaf3:spine2:400", "added"),
    DRAIN: ("Drain a host", "node0001", "drained"),
}
MORE, AFTER, BEFORE = "more", "after", "before"
COLOURS = {MORE: "What the change adds", AFTER: "After", BEFORE: "Now"}
SLOWER = 1.01
"""A job whose worst link needs so much longer is slowed down."""
RULES = {
    DEFAULT_RULE: "all shortest paths of what is left",
    "up-down": "up*/down* on what is left",
    TABLES: "the forwarding tables as they are, before any repair",
}


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("What if")
    try:
        found = seen_clusters(registry, st.query_params.get("cluster"), None)
        if not found.clusters:
            show_empty(
                "The registry holds no fabric yet. Ingest a scan, or look at the demo:",
                "almanac ingest SCAN --cluster NAME",
                "almanac demo",
            )
            return
        rule = _choose(found)
        view = fabric_view(registry, found, parsed_moment("at"), None)
    except UnknownName as error:
        show_unknown(error, "at" if error.kind == "fabric" else error.kind)
        return
    _fields()
    change = _change(view.fabric)
    drawing = queries.drawing(view.snapshot.id, view.fabric, registry)
    if change is None:
        _only_now(view, drawing)
        return
    assert view.live is not None
    try:
        imagined = imagined_kept(registry, view.cluster, view.live, drawing, change, rule)
    except (InvalidValue, UnknownName) as error:
        st.error(plain(str(error)))
        return
    _totals(imagined.what_if)
    _map(imagined, drawing)
    _jobs(imagined.what_if, site, view.cluster.name)


def _choose(found: FabricHistory) -> str:
    line = found.timeline
    assert line is not None
    info = found.clusters[line.cluster]
    name_column, time_column, rule_column = st.columns([2, 2, 5])
    with name_column:
        choose(
            "Cluster", "cluster", list(found.clusters), resets=("at", DOWN, ADD, DRAIN, *picking.PARAMETERS)
        )
    with time_column:
        moment("Jobs running at (UTC)", "at", info.first_observed_at, datetime.now(tz=UTC))
    with rule_column:
        rule = choose(
            "Routes after the change",
            "rule",
            list(RULES),
            show=lambda name: f"{name}: {RULES[name]}",
            kind="rule",
        )
    return rule or DEFAULT_RULE


def _fields() -> None:
    """Fields that add to the change, and what was added, each to be taken back by a click."""
    for column, (parameter, (label, example, _)) in zip(st.columns(3), FIELDS.items(), strict=True):
        key = f"what if {parameter}"
        column.text_input(label, key=key, placeholder=example, on_change=_from_field, args=(parameter, key))
    given = [(parameter, text) for parameter in FIELDS for text in st.query_params.get_all(parameter)]
    if not given:
        return
    with st.container(horizontal=True):
        for parameter, text in given:
            st.button(
                f"{plain(text)} {FIELDS[parameter][2]}",
                icon=":material/close:",
                help="Take it back",
                on_click=_take_back,
                args=(parameter, text),
                key=f"given {parameter} {text}",
            )


def _from_field(parameter: str, key: str) -> None:
    text = str(st.session_state[key]).strip()
    if text:
        _put(parameter, text)
    st.session_state[key] = ""


def _put(parameter: str, text: str) -> None:
    st.query_params[parameter] = list(dict.fromkeys([*st.query_params.get_all(parameter), text]))


def _take_back(parameter: str, text: str) -> None:
    st.query_params[parameter] = [one for one in st.query_params.get_all(parameter) if one != text]


def _change(fabric: Fabric) -> Change | None:
    """What the address asks for; None for nothing, or where it cannot be, which is told."""
    down, add, drain = (st.query_params.get_all(parameter) for parameter in (DOWN, ADD, DRAIN))
    try:
        return Change.of(fabric, down=down, add=add, drain=drain) or None
    except (UnknownName, InvalidValue) as error:
        st.error(plain(str(error)), icon=":material/search_off:")
        return None


def _only_now(view: FabricView, drawing: Drawing) -> None:
    """The fabric as it is, to pick from."""
    st.caption("Name something above, or pick a link or a machine on the map.")
    if view.link_bytes is None:
        st.info("No job runs whose traffic is known: there is nothing that a change could slow down.")
        colours = colouring.capacity("Capacity of the cables", "Each direction", view.fabric.links.capacity)
    else:
        seconds = view.link_bytes / view.fabric.links.capacity
        colours = colouring.load(_title("now"), "Seconds a period", seconds)
    _picture(view.fabric, drawing, colours)


def _picture(fabric: Fabric, drawing: Drawing, colours: Colouring, gone: Bools | None = None) -> None:
    """A map on which a pick offers what can be done to the thing.

    Parameters
    ----------
    gone : bool[m], optional
        Links that are drawn though the change took them away.
    """
    lines = len(drawing.cables) <= LINES_LIMIT
    item = _picked(fabric)
    picture = link_map(fabric, drawing, colours, lines=lines)
    fabric_map(picture, key="what if map", picked=item, on_pick=picking.to_address(fabric))
    if item is None:
        return
    with st.container(horizontal=True):
        for label, parameter, text in _offers(fabric, item, gone):
            st.button(label, on_click=_do, args=(fabric, parameter, text), key=f"do {parameter} {text}")


def _picked(fabric: Fabric) -> Item | None:
    """What the address says is picked; None too where that is gone after the change."""
    try:
        return picking.from_address(fabric)
    except (UnknownName, InvalidValue):
        return None


def _do(fabric: Fabric, parameter: str, text: str) -> None:
    picking.pick(fabric, None)
    _put(parameter, text)


def _offers(fabric: Fabric, item: Item, gone: Bools | None) -> list[tuple[str, str, str]]:
    """What can be done to the thing that is picked: label, parameter and its value; nothing twice."""
    found = []
    if item.link is not None and item.link < len(fabric.links):
        if gone is None or not gone[item.link]:
            text = link_text(fabric, item.link)
            found.append((f"Take {plain(link_words(fabric, item.link))} away", DOWN, text))
        vertices = [int(fabric.links.source[item.link]), int(fabric.links.target[item.link])]
    else:
        vertices = [] if item.vertex is None else [item.vertex]
    for vertex in vertices:
        name = fabric.names[vertex]
        host = fabric.kind[vertex] == HOST
        found.append((f"{'Drain' if host else 'Take away'} {plain(name)}", DRAIN if host else DOWN, name))
    return [one for one in found if one[2] not in st.query_params.get_all(one[1])]


def _totals(found: WhatIf) -> None:
    """The worst link before and after, and how many jobs it touches."""
    was, same, now = (
        float(one.seconds.max(initial=0.0)) for one in (found.before, found.unchanged, found.after)
    )
    slower = sum(one.after_seconds > SLOWER * one.unchanged_seconds for one in found.jobs)
    facts: dict[str, tuple[str, str | None]] = {"Worst link now": (units.text(was, units.SECONDS), None)}
    if found.unchanged is not found.before:
        facts["Worst link, only other routes"] = (units.text(same, units.SECONDS), None)
    than = "now" if found.unchanged is found.before else "other routes alone"
    change, better = tables.change(now, same, than)
    facts["Worst link after"] = (units.text(now, units.SECONDS), change)
    facts["Jobs that slow down"] = (f"{slower:,} of {len(found.jobs):,}", None)
    facts["Jobs with cut pairs"] = (f"{sum(one.unreachable_pairs > 0 for one in found.jobs):,}", None)
    facts["Ranks on drained hosts"] = (f"{sum(one.lost_ranks for one in found.jobs):,}", None)
    for column, (label, (value, delta)) in zip(st.columns(len(facts)), facts.items(), strict=True):
        column.metric(
            label,
            value,
            delta,
            delta_color="off" if better is None else "inverse",
            delta_arrow="off" if better is None else "auto",
        )
    told = f"Routes now: {found.routing_before}; after: {found.rule}. Seconds are of one period."
    if found.unchanged is not found.before:
        told += f" What the change does is told against the fabric as it is with routes by {found.rule} too."
    st.caption(plain(told))


def _map(imagined: Imagined, drawing: Drawing) -> None:
    found = imagined.what_if
    colour = toggle("Colour", "colour", COLOURS, default=MORE)
    if colour == BEFORE:
        colours = colouring.load(_title("before"), "Seconds a period", found.before.seconds)
        _picture(found.before.fabric, drawing, colours)
        return
    if colour == AFTER:
        colours = colouring.load(_title("after"), "Seconds a period", found.after.seconds)
    else:
        more = seconds_more(found)
        unit = units.unit_for([float(abs(more).max(initial=0.0))], units.SECONDS)
        title = "Time that each link needs after the change less that without it, by the same rule of routing"
        colours = colouring.difference(title, "Seconds a period", more, unit, marked="grows most")
    whole = imagined.whole
    colours = colouring.with_gone(colours, whole.values(colours.values), "taken away")
    _picture(whole.fabric, imagined.drawing, colours, whole.gone)


def _title(when: str) -> str:
    return f"Predicted load by the running jobs {when}: time that each link needs, the worse direction"


def _jobs(found: WhatIf, site: Site, cluster: str) -> None:
    st.subheader("What it does to the jobs")
    table = effects(found, site.viewer)
    if table.empty:
        st.caption("No running job has traffic that is known.")
        return
    if found.unchanged is found.before:
        table = table.drop(columns="unchanged")
    seconds = [name for name in ("before", "unchanged", "after") if name in table.columns]
    bases = dict.fromkeys(seconds, units.SECONDS)
    shown = tables.in_units(table.drop(columns="unreachable bytes"), bases)
    st.dataframe(shown, hide_index=True, key="effects")
    download("As CSV", csv_text(table, bases), f"{cluster}-what-if.csv", key="effects csv")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        job = st.selectbox("Job to open", table["job"].tolist(), key="what if job", width=300)
        job_link(site.job, cluster, str(job))
