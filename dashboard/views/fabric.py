"""The fabric page: a map of the wiring by load, errors, capacity or changes, and what is picked on it."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import streamlit as st

from dashboard.components.fabric_map import Item, fabric_map
from dashboard.components.fabric_map.picture import FILL
from dashboard.figures.link_map import LINES_LIMIT, link_map
from dashboard.figures.over_time import change_marks
from dashboard.layouts.collapsed import Collapsed
from dashboard.layouts.drawing import Drawing
from dashboard.queries import door
from dashboard.queries.caching import cached_groups, drawing
from dashboard.queries.fabric import FabricView, cached_counters, cached_fabric_history, fabric_view
from dashboard.state.site import Site
from dashboard.views import fabric_changes, fabric_device, fabric_link, fabric_lists, picking
from dashboard.views.fabric_colours import (
    CAPACITY,
    CHANGES,
    ERRORS,
    LOAD,
    LOADS,
    OLD_NAMES,
    colouring_of,
    default_colour,
)
from dashboard.widgets.address import set_address
from dashboard.widgets.bar import time_range
from dashboard.widgets.controls import parsed_moment, timeline, toggle
from dashboard.widgets.messages import plain, reason_of, show_no_fabric, show_unknown
from mapping.traffic.ports import CounterHistory
from registry.errors import InvalidValue, UnknownName
from registry.model import Bools
from registry.pages.changes import Timeline
from registry.pages.fabric import FabricHistory
from registry.registry import Registry

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
        shown = LOAD if wanted in LOADS else wanted
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
        if wanted in LOADS:
            return toggle("Load", "colour", LOADS, default=default, hide_label=True)
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
        fabric_lists.draw(site, view, counters, colour)
    elif picked.link is not None:
        fabric_link.draw(registry, site, view, counters, picked.link)
    elif picked.vertex is not None:
        fabric_device.draw(registry, site, view, counters, picked.vertex)
