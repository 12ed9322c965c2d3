"""The fabric page: a map of the wiring by load, errors, capacity or changes, and what is picked on it.

Colours of the fabric page's map: measured and estimated load, their difference, errors, capacity.

Beside the map while nothing is selected: the busiest links, ports with errors, or what the fabric is.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.map.layouts import Collapsed, Drawing
from dashboard.map.picture import FILL, Item, fabric_map
from dashboard.pages import fabric_changes, fabric_device
from dashboard.pages.fabric_device import change_marks, growth_table, ports_with_errors
from dashboard.shared import door
from dashboard.shared import fabric as picking
from dashboard.shared import link_map as colouring
from dashboard.shared.bar import link_to, time_range
from dashboard.shared.caching import cached_groups, drawing
from dashboard.shared.cards import (
    CONVENTION,
    State,
    badge,
    compact_number,
    csv_text,
    download,
    plain,
    reason_of,
    set_address,
    share_bar,
    show_no_fabric,
    show_unknown,
)
from dashboard.shared.controls import parsed_moment, timeline, toggle
from dashboard.shared.fabric import FabricView, cached_counters, cached_fabric_history, fabric_view
from dashboard.shared.link_map import LINES_LIMIT, Colouring, link_map
from dashboard.shared.names import LOADS, hottest_links
from dashboard.shared.traffic import in_units, most_loading
from dashboard.shared.viewer import Site
from mapping.traffic.names import short_link
from mapping.traffic.ports import CounterHistory
from registry import units
from registry.errors import InvalidValue, UnknownName
from registry.model import Bools, Floats, Longs
from registry.registry import Registry
from registry.store.fabric_history import FabricHistory, Timeline

MEASURED, ESTIMATED, DIFFERENCE = "measured", "estimated", "difference"
LOAD_KINDS = {MEASURED: "measured", ESTIMATED: "estimated", DIFFERENCE: "difference"}
ERRORS, CAPACITY, CHANGES = "errors", "capacity", "changes"
LOAD = "load"
OLD_NAMES = {"predicted": ESTIMATED, LOAD: MEASURED}
"""Colours of old addresses."""
NOTHING_RUNS = (
    "No running job has known traffic, so capacities are shown. Attach a profile with "
    "`almanac job attach JOB PROFILE`."
)
NOTHING_COUNTED = (
    "Fewer than two counter sweeps until then, so capacities are shown. Ingest sweeps with "
    "`almanac ingest COUNTERS --cluster NAME`."
)


def default_colour(view: FabricView) -> str:
    """Return the default: the measured load, else the estimated one, else the capacity."""
    if view.rates is not None and view.opened is None:
        return MEASURED
    return CAPACITY if view.link_bytes is None else ESTIMATED


def colouring_of(view: FabricView, colour: str, counters: CounterHistory | None) -> tuple[Colouring, str]:
    """Return colours, and the reason if they are not the requested ones."""
    links = view.fabric.links
    capacity = colouring.capacity("Capacity of the cables", "Each direction", links.capacity)
    if colour == CAPACITY:
        return capacity, ""
    if colour == ERRORS:
        return (capacity, NOTHING_COUNTED) if counters is None else (_errors(counters), "")
    if colour != MEASURED and view.seconds is None:
        return capacity, NOTHING_RUNS
    share = view.estimated_share if colour in (ESTIMATED, DIFFERENCE) else None
    if colour == ESTIMATED:
        assert view.seconds is not None
        whose = "a placement" if view.live is None else units.counted(len(view.live.shared), "running job")
        if share is not None:
            title = f"Estimated load of {whose} by times per iteration, the worse direction"
            return colouring.share(title, "Share of capacity", share), ""
        title = f"Estimated load of {whose}: time of each link, the worse direction"
        return colouring.load(title, "Seconds per iteration", view.seconds), ""
    if view.rates is None:
        return capacity, NOTHING_COUNTED
    span = f"{view.rates.start:%Y-%m-%d %H:%M} to {view.rates.end:%H:%M} UTC"
    if colour == MEASURED:
        title = f"Measured load, the worse direction, {span}"
        return colouring.share(title, "Share of capacity", view.rates.share), ""
    if share is not None:
        title = f"Measured minus estimated load by times per iteration, {span}"
        return colouring.difference(title, "Share of capacity", view.rates.share - share), ""
    against = view.against
    if against is None:
        return capacity, "No traffic was measured on the links of the jobs, so capacities are shown."
    scale = f"at {against.iterations_per_second:.3g} iterations per second"
    title = f"Measured minus estimated load {scale}, {span}"
    return colouring.difference(title, "Share of capacity", against.difference), ""


def _errors(counters: CounterHistory) -> Colouring:
    """Return the colours by new errors, with the period in the title."""
    grown = counters.errors.grown
    span = f"{grown.start:%Y-%m-%d %H:%M} to {grown.end:%Y-%m-%d %H:%M} UTC"
    return colouring.errors(f"New errors of ports, {span}", "Worse port of each cable", counters.excess)


LEFT = "<style>[class*='st-key-list'] button p { text-align: left }</style>"
"""Style that aligns long labels of buttons in lists, which Streamlit centres."""
SHOWN = 9
"""Number of listed links or ports, which fit beside the map."""
BASES = {"time": units.SECONDS, **LOADS}


def draw_list(site: Site, view: FabricView, counters: CounterHistory | None, colour: str) -> None:
    """Draw the list that belongs to the colours of the map."""
    picking.search(view.fabric)
    picking.show_failed_search()
    st.html(LEFT)
    if colour == ERRORS and counters is not None:
        _errors_list(view, counters)
    elif colour == CAPACITY or (view.share is None and view.seconds is None):
        _capacity(view)
    else:
        _busiest(site, view, colour)
    if view.opened is not None:
        _placement(site, view)


def _busiest(site: Site, view: FabricView, colour: str) -> None:
    """Draw the busiest links as buttons, by the measured or the estimated load, with the job on each."""
    measured = colour == MEASURED or view.seconds is None
    share = view.share if measured else view.estimated_share
    values = view.seconds if share is None and not measured else share
    st.header(
        f"Busiest links ({'measured' if measured else 'estimated'})",
        help=None if measured else CONVENTION,
        anchor=False,
    )
    if values is None:
        st.caption("Not measured.")
        return
    rows = _highest(values, SHOWN)
    owners = most_loading(view.live, rows, site.viewer)
    with st.container(gap="xxsmall", key="list of links"):
        for row, owner in zip(rows.tolist(), owners, strict=True):
            value = float(values[row])
            text = units.short(value, units.SECONDS) if share is None else f"{100 * value:.3g} %"
            about = plain(owner or "not attributed to a job")
            label = f"**{plain(text)}** {plain(short_link(view.fabric, row))}"
            picking.pick_button(
                label, view.fabric, Item(link=row), key=f"hot {row}", type="tertiary", help=about
            )
    if not len(rows):
        st.caption("No link is loaded.")
    if view.link_bytes is not None:
        _estimate(view)


def _estimate(view: FabricView) -> None:
    """Draw what the estimate consists of, and the table of all links that it loads."""
    if view.live is not None:
        live = view.live
        missing = [
            f"{count:,} {what}"
            for count, what in (
                (len(live.without_profile), "without a profile"),
                (len(live.unloaded), "not routable"),
            )
            if count
        ]
        jobs = f"{len(live.running.jobs):,} running jobs, {len(live.shared):,} with known traffic"
        st.caption(plain(", ".join([jobs, *missing])), help=plain(f"Routes: {live.routing}. {CONVENTION}"))
    with st.popover("Table of loaded links", width="stretch"):
        assert view.link_bytes is not None
        _, table = hottest_links(view.fabric, view.link_bytes, 50)
        st.dataframe(
            in_units(table, BASES),
            hide_index=True,
            column_config={"of the worst": share_bar()},
            key="hottest",
        )
        download("All as CSV", lambda: _csv(view), f"{view.cluster.name}-links.csv", key="links csv")


def _errors_list(view: FabricView, counters: CounterHistory) -> None:
    """Draw how many ports have new errors, those with most, and the growth of all counters."""
    st.header("New errors", help="Growth of the error counters in the chosen time range.", anchor=False)
    errors = counters.errors
    some, beyond = int((errors.amount > 0).any(axis=1).sum()), int((errors.excess > 1).sum())
    state = State.ACT if beyond else State.LOOK if some else State.OK
    badge(state, f"{beyond:,} of {len(errors.grown):,} ports beyond limits, {some:,} with new errors")
    with st.container(gap="xxsmall", key="list of ports"):
        for row, name, text in ports_with_errors(view.fabric, counters, SHOWN - 3):
            label = f"**{plain(name)}** {plain(text)}"
            item = Item(link=row) if row >= 0 else None
            picking.pick_button(
                label, view.fabric, item, key=f"errors {name}", type="tertiary", disabled=item is None
            )
    table = growth_table(counters.growth(np.arange(len(errors.grown))))
    with st.popover("Growth of all counters", width="stretch"):
        columns = {"per hour": compact_number()}
        st.dataframe(table, hide_index=True, column_config=columns, key="all growth", height="content")


def _capacity(view: FabricView) -> None:
    """Draw the size of the fabric and its cables by capacity."""
    fabric = view.fabric
    st.header("The fabric", anchor=False)
    facts = {
        "hosts": f"{len(fabric.hosts) - len(fabric.unnamed):,}",
        "adapters without a host's name": f"{len(fabric.unnamed):,}",
        "switches": f"{len(fabric.switches):,}",
        "adapters": f"{len(fabric.adapters):,}",
        "cables": f"{fabric.cable_count:,}",
        "capacity, one way": units.short(float(fabric.links.capacity.sum()) / 2, units.RATE),
        "scanned": units.moment_text(view.snapshot.observed_at),
        "snapshot": view.snapshot.id,
    }
    table = pd.DataFrame({"fact": list(facts), "value": list(facts.values())})
    st.dataframe(table, hide_index=True, height="content", key="fabric facts")
    kinds, number = np.unique(fabric.links.capacity / fabric.links.cables, return_inverse=True)
    cables = np.bincount(number, weights=fabric.links.cables) / 2
    speeds = pd.DataFrame(
        {
            "capacity, each direction": [units.short(kind, units.RATE) for kind in kinds.tolist()],
            "cables": cables.round().astype(int),
        }
    )
    st.dataframe(speeds, hide_index=True, height="content", key="capacities")


def _placement(site: Site, view: FabricView) -> None:
    """Draw whose traffic is shown, and links to the placement and back to the running jobs."""
    assert view.opened is not None
    st.info(f"Traffic of placement {plain(view.opened.stored.id)} alone, on its own fabric.")
    link_to(site.jobs, "Ranks, bounds and launcher files", placement=view.opened.stored.id)
    forgotten = dict.fromkeys(("placement", "colour", *picking.PARAMETERS))
    st.button("Show running jobs", on_click=set_address, kwargs=forgotten, key="running")


def _highest(values: Floats, count: int) -> Longs:
    """Return the rows with the highest values above 0, highest first; equal ones by row."""
    known = np.nan_to_num(values)
    order = np.argsort(-known, kind="stable")[:count]
    return order[known[order] > 0]


def _csv(view: FabricView) -> str:
    assert view.link_bytes is not None
    _, found = hottest_links(view.fabric, view.link_bytes, len(view.fabric.links))
    return csv_text(found, BASES)


VIEWS = {LOAD: "Load", ERRORS: "Errors", CAPACITY: "Capacity", CHANGES: "Changes"}
GROUPS, LINES, CELLS = "groups", "lines", "cells"
BELOW_MAP = 112
"""Pixels below the map for the time slider."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    _renamed()
    time = parsed_moment("at", instead="the present")
    try:
        found = cached_fabric_history(registry, _cluster(registry, site), time)
        if found.timeline is None:
            show_no_fabric()
        elif st.query_params.get("colour") == CHANGES:
            _changes(registry, found, found.timeline, time)
        else:
            placement = st.query_params.get("placement")
            _traffic(registry, site, found, fabric_view(registry, found, time, placement, site.viewer))
    except UnknownName as error:
        parameter = {"fabric": "at", "state": "from" if "from" in st.query_params else "at"}
        show_unknown(error, parameter.get(error.kind, error.kind))


def _traffic(registry: Registry, site: Site, found: FabricHistory, view: FabricView) -> None:
    """Draw the map with load, errors or capacity, and beside it what is selected."""
    assert found.timeline is not None
    drawn = drawing(view.snapshot.id, view.fabric, registry)
    if not len(drawn.cables):
        st.info("This fabric has no cables.")
        return
    left, right = st.columns([7, 3], gap="medium")
    with left:
        colour = _choose_colour(default_colour(view))
        picked = _picked(view)
        counters = None
        if view.opened is None and (colour == ERRORS or picked is not None):
            counters = _counters(registry, site, view)
        _map(view, drawn, picked, colour, counters)
        _below_map(found, found.timeline, view, drawn)
    with right:
        _drawer(registry, site, view, counters, colour, picked)


def _changes(registry: Registry, found: FabricHistory, line: Timeline, time: datetime | None) -> None:
    """Draw the map with the changes until a time, and beside it the list of changes."""
    between = fabric_changes.compared(registry, line, time)
    left, right = st.columns([7, 3], gap="medium")
    with left:
        _choose_colour(CHANGES)
        fabric_changes.draw_map(between, BELOW_MAP)
        _slider(found, line)
    with right:
        fabric_changes.draw_list(line, between)


def _slider(found: FabricHistory, line: Timeline) -> None:
    first = found.clusters[line.cluster].first_observed_at
    timeline("Time", "at", first, fabric_changes.rewirings(line), change_marks)


def _renamed() -> None:
    """Replace parameters of old addresses: names of colours, and those of the former page Changes."""
    address = st.query_params
    if address.get("tab") == CHANGES:
        set_address(tab=None, colour=CHANGES)
    if "to" in address:
        set_address(to=None, at=address["to"])
    if address.get("colour") in OLD_NAMES:
        address["colour"] = OLD_NAMES[address["colour"]]


def _cluster(registry: Registry, site: Site) -> str | None:
    """Return the cluster in the address, or the cluster of the placement in the address."""
    cluster, placement = st.query_params.get("cluster"), st.query_params.get("placement")
    if cluster is None and placement is not None:
        cluster = door.placement(registry, placement, site.viewer).stored.cluster
        st.query_params["cluster"] = cluster
        st.rerun()  # the bar shows the cluster of the address
    return cluster


def _choose_colour(default: str) -> str:
    """Draw the buttons above the map, and return the colours that they choose."""
    wanted = st.query_params.get("colour", default)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        shown = LOAD if wanted in LOAD_KINDS else wanted
        key = "choose view"
        st.session_state[key] = shown if shown in VIEWS else LOAD
        st.segmented_control(
            "Colour of the map",
            list(VIEWS),
            format_func=VIEWS.__getitem__,
            key=key,
            required=True,
            label_visibility="collapsed",
            on_change=lambda: _set_view(st.session_state[key]),
        )
        if shown not in VIEWS:
            st.warning(f"The map has no colour {plain(repr(wanted))}; the load is shown.")
            wanted = default
        if wanted in LOAD_KINDS:
            return toggle("Load", "colour", LOAD_KINDS, default=default, hide_label=True)
    return wanted


def _set_view(view: str) -> None:
    """Store the pressed button in the address; the load is the default there."""
    set_address(colour=None if view == LOAD else view, inside=None)
    if view != CHANGES:
        set_address(**{"from": None})


def _counters(registry: Registry, site: Site, view: FabricView) -> CounterHistory | None:
    """Return the counters of the chosen time range, or None if there are no two sweeps in it."""
    return cached_counters(
        registry, view.cluster, view.snapshot, view.snapshot.id, view.time, time_range(), site.limits
    )


def _picked(view: FabricView) -> Item | None:
    """Return the selected item of the address; show an error if the fabric has no such item."""
    try:
        return picking.from_address(view.fabric)
    except UnknownName as error:
        show_unknown(error, error.kind)
    except InvalidValue as error:
        st.error(reason_of(error))
    return None


def _map(
    view: FabricView, drawn: Drawing, picked: Item | None, colour: str, counters: CounterHistory | None
) -> None:
    """Draw the map in this colour, or explain why another one is shown."""
    colours, why = colouring_of(view, colour, counters)
    if why:
        st.info(why)
    groups = _groups(view, drawn)
    shape = _shape(drawn, groups)
    only: Bools | None = None
    inside = st.query_params.get("inside")
    if groups is not None and shape == GROUPS and inside in view.fabric.names:
        st.button("Show the whole fabric", on_click=set_address, kwargs={"inside": None}, key="whole")
        only = _links_of(view, groups, view.fabric.names.index(inside))
        shape, groups = LINES if int(only.sum()) <= 2 * LINES_LIMIT else CELLS, None
    picture = link_map(
        view.fabric,
        drawn,
        colours,
        lines=shape == LINES,
        only=only,
        groups=groups if shape == GROUPS else None,
        height=FILL,
    )
    opened = groups if shape == GROUPS else None
    fabric_map(picture, key="map", picked=picked, on_pick=partial(_pick, view, opened), below=BELOW_MAP)


def _groups(view: FabricView, drawn: Drawing) -> Collapsed | None:
    """Return the racks, pods or groups of a large fabric; None if it is small or has none."""
    if len(drawn.cables) <= LINES_LIMIT:
        return None
    return cached_groups(view.snapshot.id, view.fabric, drawn, LINES_LIMIT)


def _shape(drawn: Drawing, groups: Collapsed | None) -> str:
    """Return the shape in the address, or the default: lines, or groups or cells for a large fabric."""
    offered = _shapes(drawn, groups)
    wanted = st.query_params.get("shape", next(iter(offered)))
    return wanted if wanted in offered else next(iter(offered))


def _shapes(drawn: Drawing, groups: Collapsed | None) -> dict[str, str]:
    """Return the possible shapes of the map, the default first."""
    if len(drawn.cables) <= LINES_LIMIT:
        return {LINES: "Lines", CELLS: "Cells"}
    return ({} if groups is None else {GROUPS: groups.what.capitalize()}) | {CELLS: "Cells"}


def _links_of(view: FabricView, groups: Collapsed, vertex: int) -> Bools:
    """Return bool[m]: links with an end in the group of a device."""
    member, links = groups.member == groups.member[vertex], view.fabric.links
    found: Bools = member[links.source] | member[links.target]
    return found


def _pick(view: FabricView, groups: Collapsed | None, item: Item | None) -> None:
    """Store what the user selected; a group with several devices is opened instead."""
    if groups is not None and item is not None and item.vertex in groups.names:
        set_address(inside=view.fabric.names[item.vertex])
    else:
        picking.pick(view.fabric, item)


def _below_map(found: FabricHistory, line: Timeline, view: FabricView, drawn: Drawing) -> None:
    """Draw the time slider and the buttons for the shape of the map."""
    offered = _shapes(drawn, _groups(view, drawn))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if view.opened is None:
            _slider(found, line)
        if len(offered) > 1:
            toggle("Shape", "shape", offered, default=next(iter(offered)))


def _drawer(
    registry: Registry,
    site: Site,
    view: FabricView,
    counters: CounterHistory | None,
    colour: str,
    picked: Item | None,
) -> None:
    """Draw what is known of the selected link or device, or lists of the whole fabric if none is selected."""
    if picked is None:
        draw_list(site, view, counters, colour)
    elif picked.link is not None:
        fabric_device.draw_link(registry, site, view, counters, picked.link)
    elif picked.vertex is not None:
        fabric_device.draw(registry, site, view, counters, picked.vertex)
