"""The page Planner: changes of a fabric on the left, the load before and after them on one map."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import streamlit as st

from dashboard.map.layouts import Drawing
from dashboard.map.picture import Item, fabric_map
from dashboard.shared import fabric as picking
from dashboard.shared import link_map as colouring
from dashboard.shared.bar import job_link
from dashboard.shared.caching import drawing
from dashboard.shared.cards import (
    State,
    card,
    csv_text,
    download,
    number,
    plain,
    reason_of,
    show_no_fabric,
    show_unknown,
)
from dashboard.shared.controls import choose, moment, parsed_moment, toggle
from dashboard.shared.fabric import (
    Consequences,
    FabricView,
    cached_fabric_history,
    cached_what_if,
    effects,
    fabric_view,
    seconds_more,
    totals,
)
from dashboard.shared.link_map import LINES_LIMIT, Colouring, link_map
from dashboard.shared.traffic import in_units
from dashboard.shared.viewer import Site
from mapping.traffic.names import find_device, find_links, link_text, short_link, short_name
from mapping.traffic.what_if import KEEP_TABLES, REPAIR_NOTE, Change, WhatIf
from registry import units
from registry.errors import InvalidValue, UnknownName, shorten
from registry.model import HOST, Bools, Fabric
from registry.registry import Registry
from registry.store.fabric_history import FabricHistory

DOWN, ADD, DRAIN = "down", "add", "drain"
"""Parameters of the address; each may occur several times."""
FIELDS = {
    DOWN: ("Remove a link or a switch", "leaf3:17 or leaf3", "Remove"),
    ADD: ("Add a cable", "leaf3:spine2 or leaf3:spine2:400", "Add"),
    DRAIN: ("Drain a host", "node0001", "Drain"),
}
MORE, AFTER, BEFORE = "more", "after", "before"
SIDES = {BEFORE: "Before", AFTER: "After", MORE: "Difference"}
HEIGHT = 400
"""Height of the map, in pixels."""
SAME = "same"
RULES = {
    SAME: "as now, forwarding tables repaired",
    "shortest-paths": "all shortest paths",
    "up-down": "up*/down*",
    KEEP_TABLES: "forwarding tables, not repaired",
}
"""Routings of both sides of the comparison, by the parameter of the address."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    try:
        found = cached_fabric_history(registry, st.query_params.get("cluster"), None)
        if not found.clusters:
            show_no_fabric()
            return
        view = fabric_view(registry, found, parsed_moment("at"), None, site.viewer)
    except UnknownName as error:
        show_unknown(error, "at" if error.kind == "fabric" else error.kind)
        return
    left, right = st.columns([2, 5])
    with left, card("Changes", help="All changes together are compared with the fabric as it is."):
        change = _fields(view.fabric)
        rule = _settings(found, view.fabric)
    with right:
        _compared(registry, view, change, rule, site)


def _compared(registry: Registry, view: FabricView, change: Change, rule: str, site: Site) -> None:
    """Draw the numbers, the map and the effects on jobs before and after a change."""
    drawn = drawing(view.snapshot.id, view.fabric, registry)
    if not change:
        _only_now(view, drawn)
        return
    assert view.live is not None
    try:
        routing = None if rule == SAME else rule
        consequences = cached_what_if(registry, view.cluster, view.live, drawn, change, routing)
    except (InvalidValue, UnknownName) as error:
        # the error may name jobs of others
        st.error(reason_of(error) if site.viewer.only is None else "This change leaves a job without hosts.")
        return
    _numbers(consequences.what_if)
    with st.container(border=True):
        _map(consequences, drawn)
    _jobs(consequences.what_if, site, view.cluster.name)


def _settings(found: FabricHistory, fabric: Fabric) -> str:
    """Draw the choice of routing and time, and return the routing rule."""
    line = found.timeline
    assert line is not None
    info = found.clusters[line.cluster]
    rule = choose("Routing of both sides", "rule", list(RULES), show=RULES.__getitem__, kind="rule") or SAME
    if rule == SAME and fabric.tables is not None:
        st.caption(REPAIR_NOTE)
    moment("Jobs running at (UTC)", "at", info.first_observed_at, datetime.now(tz=UTC))
    return rule


def _fields(fabric: Fabric) -> Change:
    """Draw a field for each kind of change with its errors, and return all changes that are possible."""
    possible: dict[str, list[str]] = {}
    for parameter, (label, example, verb) in FIELDS.items():
        key = f"what if {parameter}"
        st.text_input(
            label, key=key, placeholder=example, on_change=_from_field, args=(fabric, parameter, key)
        )
        rejected = st.session_state.get(f"rejected {key}")
        if rejected:
            st.error(plain(rejected), icon=":material/search_off:")
        for text in st.query_params.get_all(parameter):
            problem = _problem(fabric, parameter, text)
            if problem:
                st.error(plain(problem), icon=":material/search_off:")
            else:
                possible.setdefault(parameter, []).append(text)
            st.button(
                f"{verb} {plain(_short(fabric, text))}",
                icon=":material/close:",
                help="Undo",
                on_click=_take_back,
                args=(parameter, text),
                key=f"given {parameter} {text}",
            )
    return Change.of(fabric, **possible)


def _problem(fabric: Fabric, parameter: str, text: str) -> str:
    """Return why a change is impossible, with the closest names; empty if it is possible."""
    try:
        Change.of(fabric, **{parameter: [text]})
    except (UnknownName, InvalidValue) as error:
        return shorten(error.reason)
    return ""


def _short(fabric: Fabric, text: str) -> str:
    """Return a device or link as short as on other pages; the text itself if it is neither."""
    with suppress(UnknownName, InvalidValue):
        return short_name(fabric.names[find_device(fabric, text).vertex])
    with suppress(UnknownName, InvalidValue):
        return short_link(fabric, int(find_links(fabric, text)[0]))
    return text


def _from_field(fabric: Fabric, parameter: str, key: str) -> None:
    """Add what a field names to the changes; keep it in the field with an error if that is impossible."""
    text = str(st.session_state[key]).strip()
    problem = _problem(fabric, parameter, text) if text else ""
    st.session_state[f"rejected {key}"] = problem
    if text and not problem:
        _put(parameter, text)
        st.session_state[key] = ""


def _put(parameter: str, text: str) -> None:
    st.query_params[parameter] = list(dict.fromkeys([*st.query_params.get_all(parameter), text]))


def _take_back(parameter: str, text: str) -> None:
    st.query_params[parameter] = [one for one in st.query_params.get_all(parameter) if one != text]


def _only_now(view: FabricView, drawn: Drawing) -> None:
    """Draw the present fabric, to select from."""
    about = "Enter a name on the left, or select a link or a device on the map."
    if view.link_bytes is None:
        st.info(f"No running job has known traffic, so no effect on jobs can be computed. {about}")
        colours = colouring.capacity("Capacity of the cables", "Each direction", view.fabric.links.capacity)
    else:
        seconds = view.link_bytes / view.fabric.links.capacity
        colours = colouring.load(_title("now"), "Seconds per iteration", seconds)
        with st.container(horizontal=True):
            worst = units.short(float(seconds.max(initial=0.0)), units.SECONDS)
            number("Worst link now", worst, note=about)
    with st.container(border=True):
        _picture(view.fabric, drawn, colours)


def _picture(fabric: Fabric, drawn: Drawing, colours: Colouring, gone: Bools | None = None) -> None:
    """Draw a map, and buttons for possible changes of the selected link or device.

    Args:
        gone (bool[m]): Removed links, which are drawn too.
    """
    try:
        item = picking.from_address(fabric)
    except (UnknownName, InvalidValue):  # a link or device of the fabric before the change
        item = None
    picture = link_map(fabric, drawn, colours, lines=len(drawn.cables) <= LINES_LIMIT, height=HEIGHT)
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
            found.append((f"Remove {plain(short_link(fabric, item.link))}", DOWN, text))
        vertices = [int(fabric.links.source[item.link]), int(fabric.links.target[item.link])]
    else:
        vertices = [] if item.vertex is None else [item.vertex]
    for vertex in vertices:
        name = fabric.names[vertex]
        host = fabric.kind[vertex] == HOST
        found.append(
            (f"{'Drain' if host else 'Remove'} {plain(short_name(name))}", DRAIN if host else DOWN, name)
        )
    return [one for one in found if one[2] not in st.query_params.get_all(one[1])]


def _numbers(found: WhatIf) -> None:
    """Draw the worst link before and after, and the numbers of affected jobs."""
    total = totals(found)
    cards = [
        (
            "Worst link",
            units.short(total.after_seconds, units.SECONDS),
            f"{total.change}before: {units.short(total.before_seconds, units.SECONDS)}",
            State.ACT if total.worse else State.OK,
        ),
        (
            "Jobs slower",
            f"{total.slower:,} of {total.jobs:,}",
            f"largest factor {total.largest:.3g}" if total.slower else "none",
            State.LOOK if total.slower else State.OK,
        ),
        (
            "Cut pairs",
            f"{total.cut_pairs:,}",
            f"of {units.counted(total.cut_jobs, 'job')}" if total.cut_pairs else "all ranks connected",
            State.ACT if total.cut_pairs else State.OK,
        ),
    ]
    if total.lost_ranks:
        cards.append(("Ranks on drained hosts", f"{total.lost_ranks:,}", "removed", State.LOOK))
    for column, (label, value, note, state) in zip(st.columns(len(cards)), cards, strict=True):
        with column:
            number(label, value, note=note, state=state)


def _map(consequences: Consequences, drawn: Drawing) -> None:
    """Draw the map before the change, after it, or of the difference, all in one scale."""
    found = consequences.what_if
    side = toggle("Show", "colour", SIDES, default=AFTER, hide_label=True)
    before, after = found.unchanged.seconds, found.after.seconds
    worst = float(max(before.max(initial=0.0), after.max(initial=0.0)))
    legend = "Seconds per iteration"
    if side == BEFORE:
        colours = colouring.load(_title("before"), legend, before, worst=worst)
        _picture(found.before.fabric, drawn, colours)
        return
    if side == AFTER:
        colours = colouring.load(_title("after"), legend, after, worst=worst)
    else:
        more = seconds_more(found)
        unit = units.unit_for([float(abs(more).max(initial=0.0))], units.SECONDS)
        title = "Time of each link with the change minus without it, by the same routing rule"
        colours = colouring.difference(title, legend, more, unit, marked="largest increase")
    changed = consequences.changed
    colours = colouring.with_gone(colours, changed.values(colours.values), "removed")
    _picture(changed.fabric, consequences.drawing, colours, changed.gone)


def _title(when: str) -> str:
    return f"Estimated load by the running jobs {when}: time of each link, the worse direction"


def _jobs(found: WhatIf, site: Site, cluster: str) -> None:
    """Draw the table of the effects on each job."""
    table = effects(found, site.viewer)
    with st.expander(f"Effects on {units.counted(len(table), 'job')}"):
        if table.empty:
            st.caption("No running job has known traffic.")
            return
        seconds = ["before", "after"]
        bases = dict.fromkeys(seconds, units.SECONDS)
        shown = in_units(table.drop(columns="unreachable bytes"), bases)
        st.dataframe(shown, hide_index=True, key="effects")
        download("As CSV", lambda: csv_text(table, bases), f"{cluster}-what-if.csv", key="effects csv")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            job = st.selectbox("Job to open", table["job"].tolist(), key="what if job", width=300)
            job_link(site.jobs, cluster, str(job))
