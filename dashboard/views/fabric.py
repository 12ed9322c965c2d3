"""The fabric page: a map of the wiring, the load of each link now or earlier, and whose traffic it is."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import numpy as np
import streamlit as st

from dashboard.components.fabric_map import Item, fabric_map
from dashboard.figures import colouring
from dashboard.figures.colouring import Colouring
from dashboard.figures.link_map import LINES_LIMIT, around, hottest_part, link_map
from dashboard.layouts.drawing import Drawing
from dashboard.queries.caching import cached_placement, drawing
from dashboard.queries.fabric import FabricView, fabric_view
from dashboard.state.site import Site
from dashboard.views import fabric_panel, picking
from dashboard.widgets.address import set_address
from dashboard.widgets.controls import choose, moment, parsed_moment, stops, toggle
from dashboard.widgets.messages import CONVENTION, plain, show_no_fabric, show_unknown
from mapping.traffic.shared_load import against_counters
from registry import units
from registry.errors import InvalidValue, UnknownName
from registry.model import Bools
from registry.pages.fabric import FabricHistory, read_fabric_history
from registry.registry import Registry

PREDICTED, MEASURED, DIFFERENCE, CAPACITY = "predicted", "measured", "difference", "capacity"
COLOURS = {
    PREDICTED: "Estimated load",
    MEASURED: "Measured load",
    DIFFERENCE: "Measured minus estimated",
    CAPACITY: "Capacity",
}
CELLS, LINES, PART = "cells", "lines", "part"
NOTHING_RUNS = (
    "No running job has known traffic, so capacities are shown. Attach a profile with "
    "`almanac job attach JOB PROFILE`."
)
NOTHING_COUNTED = (
    "Fewer than two counter sweeps until then, so capacities are shown. Ingest sweeps with "
    "`almanac ingest COUNTERS --cluster NAME`."
)


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Fabric")
    colour = st.query_params.get("colour", PREDICTED)
    time, counters = parsed_moment("at"), colour in (MEASURED, DIFFERENCE)
    try:
        found = read_fabric_history(registry.database, _cluster(registry), time, counters=counters)
        if not found.clusters:
            show_no_fabric()
            return
        view = fabric_view(registry, found, _when(found), st.query_params.get("placement"))
        drawn = drawing(view.snapshot.id, view.fabric, registry)
    except UnknownName as error:
        show_unknown(error, "at" if error.kind == "fabric" else error.kind)
        return
    _whose(view, site)
    if not len(drawn.cables):
        st.info("This fabric has no cables.")
        return
    colour, shape = _looks(view, drawn)
    picked = _picked(view)
    left, right = st.columns([7, 3])
    with left:
        _map(view, drawn, picked, colour, shape)
    with right:
        if picked is None:
            fabric_panel.short_list(view, site)
        else:
            fabric_panel.draw(registry, site, view, drawn.layout, picked)
    fabric_panel.table(view, site)


def _cluster(registry: Registry) -> str | None:
    """Return the cluster in the address, or the cluster of the placement in the address."""
    cluster, placement = st.query_params.get("cluster"), st.query_params.get("placement")
    if cluster is None and placement is not None:
        cluster = cached_placement(registry, placement).stored.cluster
        st.query_params["cluster"] = cluster
    return cluster


def _when(found: FabricHistory) -> datetime | None:
    """Draw the controls for cluster and time, and return the time; None means now."""
    line = found.timeline
    assert line is not None
    info = found.clusters[line.cluster]
    name_column, time_column, slider_column = st.columns([2, 2, 5])
    with name_column:
        choose("Cluster", "cluster", list(found.clusters), resets=("placement", "at", *picking.PARAMETERS))
    if "placement" in st.query_params:
        return None
    with time_column:
        time = moment("As of (UTC)", "at", info.first_observed_at, datetime.now(UTC))
    with slider_column:
        stops("State of the wiring", "at", [state.at for state in line.states])
    return time


def _whose(view: FabricView, site: Site) -> None:
    """Describe the shown fabric and traffic."""
    fabric, snapshot = view.fabric, view.snapshot
    parts = [
        f"{len(fabric.hosts):,} hosts",
        f"{len(fabric.switches):,} switches",
        f"{fabric.cable_count:,} cables",
        f"{units.text(float(fabric.links.capacity.sum()) / 2, units.RATE)} one way",
        f"snapshot {snapshot.id} of {units.moment_text(snapshot.observed_at)}",
    ]
    st.caption(plain(" · ".join(parts)))
    if view.opened is not None:
        left, right = st.columns([6, 2], vertical_alignment="center")
        left.info(f"Traffic of placement {plain(view.opened.stored.id)} alone, on its own fabric.")
        forgotten = dict.fromkeys(("placement", *picking.PARAMETERS))
        right.button("Show running jobs", on_click=set_address, kwargs=forgotten, key="running")
        return
    live = view.live
    assert live is not None
    missing = len(live.without_profile) + len(live.unloaded)
    jobs = f"Running jobs: {len(live.running.jobs):,}, with known traffic: {len(live.shared):,}"
    if missing:
        jobs += f", without profile: {len(live.without_profile):,}, not routable: {len(live.unloaded):,}"
    st.caption(plain(f"{jobs}. Routes: {live.routing}, {live.costs.rails}. {CONVENTION}"))


def _picked(view: FabricView) -> Item | None:
    """Return the selected item of the address; show an error if the fabric has no such item."""
    try:
        return picking.from_address(view.fabric)
    except UnknownName as error:
        show_unknown(error, error.kind)
    except InvalidValue as error:
        st.error(plain(str(error)))
    return None


def _looks(view: FabricView, drawing: Drawing) -> tuple[str, str]:
    """Draw the buttons for colour and shape and the search field; return colour and shape."""
    few = len(drawing.cables) <= LINES_LIMIT
    shapes = {CELLS: "One cell per cable"} | ({LINES: "Lines"} if few else {PART: "Lines of a part"})
    with st.container(horizontal=True):
        colour = toggle("Colour", "colour", COLOURS, default=PREDICTED)
        shape = toggle("Shape", "shape", shapes, default=LINES if few else CELLS)
        picking.search(view.fabric)
    picking.show_failed_search()
    return colour, shape


def _map(view: FabricView, drawing: Drawing, picked: Item | None, colour: str, shape: str) -> None:
    """Draw the map in this colour and shape, or explain why another one is shown."""
    colours, why, note = _colouring(view, colour)
    if why:
        st.info(why)
    only = _part(view, picked) if shape == PART else None
    if shape == PART and only is None:
        st.info("Select a link or a device, or search for one: the lines around it are then drawn.")
        shape = CELLS
    picture = link_map(view.fabric, drawing, colours, lines=shape != CELLS, only=only)
    fabric_map(picture, key="map", picked=picked, on_pick=partial(picking.pick, view.fabric))
    if note:
        st.caption(plain(note))


def _colouring(view: FabricView, colour: str) -> tuple[Colouring, str, str]:
    """Return colours, the reason if they are not the requested ones, and a note."""
    links, link_bytes, rates = view.fabric.links, view.link_bytes, view.rates
    capacity = colouring.capacity("Capacity of the cables", "Each direction", links.capacity)
    if colour == CAPACITY:
        return capacity, "", ""
    if colour != MEASURED and link_bytes is None:
        return capacity, NOTHING_RUNS, ""
    if colour == PREDICTED:
        assert link_bytes is not None
        whose = "a placement" if view.live is None else f"{len(view.live.shared):,} running jobs"
        title = f"Estimated load by {whose}: time of each link, the worse direction of each cable"
        return colouring.load(title, "Seconds per period", link_bytes / links.capacity), "", ""
    if rates is None:
        return capacity, NOTHING_COUNTED, ""
    span = f"Measured from {units.moment_text(rates.start)} to {units.moment_text(rates.end)}."
    if colour == MEASURED:
        title = "Measured load: utilisation, the worse direction of each cable"
        return colouring.share(title, "Share of capacity", rates.share), "", span
    assert link_bytes is not None
    against = against_counters(view.fabric, link_bytes, rates.bytes_per_second)
    if np.isnan(against.periods_per_second):
        return capacity, "No traffic was measured on the links of the jobs, so capacities are shown.", span
    scale = f"Assumes {against.periods_per_second:.4g} periods per second, which makes both totals equal."
    title = "Measured minus estimated load, as a share of capacity"
    return colouring.difference(title, "Share of capacity", against.difference), "", f"{span} {scale}"


def _part(view: FabricView, picked: Item | None) -> Bools | None:
    """Return bool[m]: links to draw as lines, of a job or around the selected item; None for none."""
    job = st.query_params.get("load")
    if job is not None and view.live is not None:
        shared = view.live.shared
        if job in [one.job for one in shared.jobs]:
            load = shared.jobs[shared.index(job)].link_bytes
            return hottest_part(load / view.fabric.links.capacity, LINES_LIMIT)
    return None if picked is None else around(view.fabric, picked)
