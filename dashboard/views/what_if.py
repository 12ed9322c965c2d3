"""The what-if page: effects of removing a link or switch, adding a cable, or draining a host."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import streamlit as st

from dashboard.components.fabric_map import Item, fabric_map
from dashboard.figures import colouring
from dashboard.figures.colouring import Colouring
from dashboard.figures.link_map import LINES_LIMIT, link_map
from dashboard.layouts.drawing import Drawing
from dashboard.queries.caching import drawing
from dashboard.queries.fabric import Consequences, FabricView, cached_what_if, fabric_view
from dashboard.state.site import Site
from dashboard.tables.columns import in_units
from dashboard.tables.links import link_text as link_words
from dashboard.tables.placements import relative_change
from dashboard.tables.what_if import effects, seconds_more
from dashboard.views import picking
from dashboard.widgets.controls import choose, moment, parsed_moment, toggle
from dashboard.widgets.messages import plain, show_metric, show_no_fabric, show_unknown
from dashboard.widgets.navigation import job_link
from dashboard.widgets.tables import csv_text, download
from mapping.traffic.device_names import link_text
from mapping.traffic.what_if import DEFAULT_RULE, Change, WhatIf
from mapping.traffic.what_if import KEEP_TABLES as TABLES
from registry import units
from registry.errors import InvalidValue, UnknownName
from registry.model import HOST, Bools, Fabric
from registry.pages.fabric import FabricHistory, read_fabric_history
from registry.registry import Registry

DOWN, ADD, DRAIN = "down", "add", "drain"
"""Parameters of the address; each may occur several times."""
FIELDS = {
    DOWN: ("Remove a link or a switch", "leaf3:17 or leaf3", "removed"),
    ADD: ("Add a cable", "leaf3:spine2 or leaf3:spine2:400", "added"),
    DRAIN: ("Drain a host", "node0001", "drained"),
}
MORE, AFTER, BEFORE = "more", "after", "before"
COLOURS = {MORE: "Difference", AFTER: "After", BEFORE: "Now"}
SLOWER = 1.01
"""Ratio of the times of a job's worst link above which the job counts as slower."""
RULES = {
    DEFAULT_RULE: "all shortest paths of the changed fabric",
    "up-down": "up*/down* on the changed fabric",
    TABLES: "present forwarding tables, not recomputed",
}


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("What if")
    try:
        found = read_fabric_history(registry.database, st.query_params.get("cluster"))
        if not found.clusters:
            show_no_fabric()
            return
        rule = _choose(found)
        view = fabric_view(registry, found, parsed_moment("at"), None)
    except UnknownName as error:
        show_unknown(error, "at" if error.kind == "fabric" else error.kind)
        return
    _fields()
    change = _change(view.fabric)
    drawn = drawing(view.snapshot.id, view.fabric, registry)
    if change is None:
        _only_now(view, drawn)
        return
    assert view.live is not None
    try:
        consequences = cached_what_if(registry, view.cluster, view.live, drawn, change, rule)
    except (InvalidValue, UnknownName) as error:
        st.error(plain(str(error)))
        return
    _totals(consequences.what_if)
    _map(consequences, drawn)
    _jobs(consequences.what_if, site, view.cluster.name)


def _choose(found: FabricHistory) -> str:
    """Draw the controls for cluster, time and routing, and return the routing rule."""
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
    """Draw the fields that add to the change, and a button to undo each addition."""
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
                help="Undo",
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
    """Return the change in the address, or None if there is none; show an error if it is impossible."""
    down, add, drain = (st.query_params.get_all(parameter) for parameter in (DOWN, ADD, DRAIN))
    try:
        return Change.of(fabric, down=down, add=add, drain=drain) or None
    except (UnknownName, InvalidValue) as error:
        st.error(plain(str(error)), icon=":material/search_off:")
        return None


def _only_now(view: FabricView, drawn: Drawing) -> None:
    """Draw the present fabric, to select from."""
    st.caption("Enter a name above, or select a link or a device on the map.")
    if view.link_bytes is None:
        st.info("No running job has known traffic, so no effect on jobs can be computed.")
        colours = colouring.capacity("Capacity of the cables", "Each direction", view.fabric.links.capacity)
    else:
        seconds = view.link_bytes / view.fabric.links.capacity
        colours = colouring.load(_title("now"), "Seconds per period", seconds)
    _picture(view.fabric, drawn, colours)


def _picture(fabric: Fabric, drawn: Drawing, colours: Colouring, gone: Bools | None = None) -> None:
    """Draw a map, and buttons for possible changes of the selected link or device.

    Parameters
    ----------
    gone : bool[m], optional
        Removed links, which are drawn too.
    """
    try:
        item = picking.from_address(fabric)
    except (UnknownName, InvalidValue):  # a link or device of the fabric before the change
        item = None
    picture = link_map(fabric, drawn, colours, lines=len(drawn.cables) <= LINES_LIMIT)
    fabric_map(picture, key="what if map", picked=item, on_pick=partial(picking.pick, fabric))
    if item is None:
        return
    with st.container(horizontal=True):
        for label, parameter, text in _offers(fabric, item, gone):
            st.button(label, on_click=_do, args=(fabric, parameter, text), key=f"do {parameter} {text}")


def _do(fabric: Fabric, parameter: str, text: str) -> None:
    picking.pick(fabric, None)
    _put(parameter, text)


def _offers(fabric: Fabric, item: Item, gone: Bools | None) -> list[tuple[str, str, str]]:
    """Return the possible changes of the selected item: label, parameter and value; without repetition."""
    found = []
    if item.link is not None and item.link < len(fabric.links):
        if gone is None or not gone[item.link]:
            text = link_text(fabric, item.link)
            found.append((f"Remove {plain(link_words(fabric, item.link))}", DOWN, text))
        vertices = [int(fabric.links.source[item.link]), int(fabric.links.target[item.link])]
    else:
        vertices = [] if item.vertex is None else [item.vertex]
    for vertex in vertices:
        name = fabric.names[vertex]
        host = fabric.kind[vertex] == HOST
        found.append((f"{'Drain' if host else 'Remove'} {plain(name)}", DRAIN if host else DOWN, name))
    return [one for one in found if one[2] not in st.query_params.get_all(one[1])]


def _totals(found: WhatIf) -> None:
    """Draw the worst link before and after, and the numbers of affected jobs."""
    was, same, now = (
        float(one.seconds.max(initial=0.0)) for one in (found.before, found.unchanged, found.after)
    )
    slower = sum(one.after_seconds > SLOWER * one.unchanged_seconds for one in found.jobs)
    facts: dict[str, tuple[str, str | None]] = {"Worst link now": (units.text(was, units.SECONDS), None)}
    if found.unchanged is not found.before:
        facts["Worst link, new routes"] = (units.text(same, units.SECONDS), None)
    than = "now" if found.unchanged is found.before else "new routes alone"
    change, better = relative_change(now, same, than)
    facts["Worst link after"] = (units.text(now, units.SECONDS), change)
    facts["Slower jobs"] = (f"{slower:,} of {len(found.jobs):,}", None)
    facts["Jobs with cut pairs"] = (f"{sum(one.unreachable_pairs > 0 for one in found.jobs):,}", None)
    facts["Ranks on drained hosts"] = (f"{sum(one.lost_ranks for one in found.jobs):,}", None)
    for column, (label, (value, delta)) in zip(st.columns(len(facts)), facts.items(), strict=True):
        show_metric(column, label, value, delta, better)
    note = f"Routes now: {found.routing_before}; after: {found.rule}. Times are per period."
    if found.unchanged is not found.before:
        note += f" Effects are relative to the present fabric with routes by {found.rule}."
    st.caption(plain(note))


def _map(consequences: Consequences, drawn: Drawing) -> None:
    """Draw the map before the change, after it, or of the difference."""
    found = consequences.what_if
    colour = toggle("Colour", "colour", COLOURS, default=MORE)
    if colour == BEFORE:
        colours = colouring.load(_title("before"), "Seconds per period", found.before.seconds)
        _picture(found.before.fabric, drawn, colours)
        return
    if colour == AFTER:
        colours = colouring.load(_title("after"), "Seconds per period", found.after.seconds)
    else:
        more = seconds_more(found)
        unit = units.unit_for([float(abs(more).max(initial=0.0))], units.SECONDS)
        title = "Time of each link with the change minus without it, by the same routing rule"
        colours = colouring.difference(title, "Seconds per period", more, unit, marked="largest increase")
    changed = consequences.changed
    colours = colouring.with_gone(colours, changed.values(colours.values), "removed")
    _picture(changed.fabric, consequences.drawing, colours, changed.gone)


def _title(when: str) -> str:
    return f"Estimated load by the running jobs {when}: time of each link, the worse direction"


def _jobs(found: WhatIf, site: Site, cluster: str) -> None:
    """Draw the table of the effects on each job."""
    st.subheader("Effects on jobs")
    table = effects(found, site.viewer)
    if table.empty:
        st.caption("No running job has known traffic.")
        return
    if found.unchanged is found.before:
        table = table.drop(columns="unchanged")
    seconds = [name for name in ("before", "unchanged", "after") if name in table.columns]
    bases = dict.fromkeys(seconds, units.SECONDS)
    shown = in_units(table.drop(columns="unreachable bytes"), bases)
    st.dataframe(shown, hide_index=True, key="effects")
    download("As CSV", csv_text(table, bases), f"{cluster}-what-if.csv", key="effects csv")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        job = st.selectbox("Job to open", table["job"].tolist(), key="what if job", width=300)
        job_link(site.job, cluster, str(job))
