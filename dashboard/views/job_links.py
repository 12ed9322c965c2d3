"""Part of the job page: the links that a job loads, before and after, and the ranks on a link."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st

from dashboard.components.fabric_map import fabric_map
from dashboard.figures import colouring
from dashboard.figures.link_map import LINES_LIMIT, link_map
from dashboard.queries.caching import cached_in_order, drawing
from dashboard.queries.job import JobView
from dashboard.queries.traffic import pairs_of_placement
from dashboard.tables.columns import in_units
from dashboard.tables.links import LOADS, loaded_links
from dashboard.tables.sharing import pairs_table
from dashboard.widgets.controls import choose
from dashboard.widgets.messages import plain, reason_of, show_error
from dashboard.widgets.tables import csv_text, download, picked_row, share_bar
from mapping.traffic.names import find_link, full_link, link_text, short_link
from registry import units
from registry.errors import AlmanacError
from registry.model import Evaluation, Fabric, Floats, Longs
from registry.pages.placements import OpenPlacement
from registry.store.placement_rows import PRESENT

HOTTEST = 50
"""Maximum rows of the table of links."""
HEIGHT = 270
"""Height of a map, in pixels."""
PAIRS = 200
"""Maximum rows of the table of rank pairs."""


def draw_maps(view: JobView, opened: OpenPlacement, evaluation: Evaluation) -> None:
    """Draw maps of the links that either placement loads, on one scale; a click selects a link."""
    fabric = opened.snapshot.fabric
    seconds = _seconds(view, opened, evaluation)
    used = np.any([values > 0 for values in seconds.values()], axis=0)
    if not used.any():
        st.info("The ranks send nothing between hosts, so no link is loaded.")
        return
    drawn = drawing(opened.snapshot.id, fabric)
    worst = max(float(values.max()) for values in seconds.values())
    lines = int(used.sum()) <= LINES_LIMIT
    for column, (name, values) in zip(st.columns(len(seconds)), seconds.items(), strict=True):
        link = int(np.argmax(values))
        cost = units.short(float(values[link]), units.SECONDS)
        title = f"{name}: {cost} on {short_link(fabric, link)}"
        colours = colouring.load(title, "Time on each link", values, worst=worst)
        with column:
            fabric_map(
                link_map(fabric, drawn, colours, lines=lines, only=used, height=HEIGHT),
                key=f"where {name}",
                on_pick=lambda item: _pick(fabric, None if item is None else item.link),
            )
    st.caption("The job's own bytes over the capacity of each link, both on one scale.")


def draw_links(view: JobView, opened: OpenPlacement, evaluation: Evaluation) -> None:
    """Draw the worst links of both placements, and the ranks on a selected one."""
    seconds = _seconds(view, opened, evaluation)
    if not any((values > 0).any() for values in seconds.values()):
        st.info("The ranks send nothing between hosts, so no link is loaded.")
        return
    _table(opened, evaluation, seconds)


def _seconds(view: JobView, opened: OpenPlacement, evaluation: Evaluation) -> dict[str, Floats]:
    """Return the time of each link by the name of the placement: the compared one and the shown one."""
    capacity = opened.snapshot.fabric.links.capacity
    own = _name(opened.stored.role)
    other = (
        cached_in_order(opened.stored.id, opened) if view.beside is None else view.beside.stored.evaluation
    )
    if other is None:
        return {own: evaluation.link_bytes / capacity}
    beside = "In order" if view.beside is None else _name(view.beside.stored.role)
    beside = f"{beside}, {view.beside_name}" if beside == own else beside
    return {beside: other.link_bytes / capacity, own: evaluation.link_bytes / capacity}


def _name(role: str) -> str:
    return "How it runs" if role == PRESENT else "Found"


def _table(opened: OpenPlacement, evaluation: Evaluation, seconds: Mapping[str, Floats]) -> None:
    """Draw the worst links of both placements, and the ranks on the link selected here or on a map."""
    fabric = opened.snapshot.fabric
    rows, table = loaded_links(fabric, seconds, evaluation.link_bytes, HOTTEST)
    bases = {**dict.fromkeys(seconds, units.SECONDS), **LOADS}

    def picked() -> None:
        row = picked_row(st.session_state["worst links"], len(rows))
        _pick(fabric, None if row is None else int(rows[row]))

    st.dataframe(
        in_units(table, bases),
        hide_index=True,
        on_select=picked,
        selection_mode="single-row",
        height=260,
        key="worst links",
    )
    download(
        "All loaded links as CSV",
        lambda: csv_text(loaded_links(fabric, seconds, evaluation.link_bytes, None)[1], bases),
        f"{opened.stored.id}-links.csv",
        key="links csv",
    )
    row = _chosen_link(fabric, rows)
    if row is not None:
        _pairs(opened, row)


def _pick(fabric: Fabric, row: int | None) -> None:
    """Store the selected link in the address; other selections change nothing."""
    if row is not None:
        st.query_params["link"] = link_text(fabric, row)


def _chosen_link(fabric: Fabric, rows: Longs) -> int | None:
    """Draw a select box with the worst links, and return the chosen one or None."""
    by_name = {link_text(fabric, row): row for row in rows.tolist()}
    wanted = st.query_params.get("link")
    try:
        if wanted is not None and wanted not in by_name:
            by_name[wanted] = find_link(fabric, wanted)
    except AlmanacError as error:
        st.warning(reason_of(error))
        st.query_params.pop("link")
    name = choose(
        "Ranks on link",
        "link",
        list(by_name),
        show=lambda name: full_link(fabric, by_name[name]),
        empty="select a link on a map or in the table, or choose here",
    )
    return None if name is None else by_name[name]


def _pairs(opened: OpenPlacement, row: int) -> None:
    """Draw the pairs of ranks that load a link."""
    fabric, placement = opened.snapshot.fabric, opened.stored.placement
    try:
        found = pairs_of_placement(opened, row, PAIRS)
    except AlmanacError as error:
        show_error(error)
        return
    if found is None:
        st.info("The profile of this placement is not known.")
        return
    carried = plain(units.short(found.total_bytes, units.BYTES))
    st.markdown(
        f"{found.pairs:,} pairs of ranks send {carried} over {plain(full_link(fabric, row))}; the largest:"
    )
    shown = in_units(pairs_table(fabric, placement, found), {"bytes": units.BYTES})
    st.dataframe(
        shown, hide_index=True, column_config={"part": share_bar("share of link")}, height=220, key="pairs"
    )
