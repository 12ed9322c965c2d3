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
from dashboard.tables.links import LOADS, link_text, loaded_links
from dashboard.tables.sharing import pairs_table
from dashboard.widgets.controls import choose
from dashboard.widgets.messages import plain, show_error
from dashboard.widgets.tables import csv_text, download, picked_row, share_bar
from mapping.traffic.device_names import find_link
from mapping.traffic.device_names import link_text as link_name
from registry import units
from registry.errors import AlmanacError
from registry.model import Bools, Evaluation, Fabric, Floats, Longs
from registry.pages.placements import OpenPlacement

HOTTEST = 50
"""Maximum rows of the table of links."""
HEIGHT = 380
"""Height of a map, in pixels."""
PAIRS = 200
"""Maximum rows of the table of rank pairs."""


def draw(view: JobView, opened: OpenPlacement, evaluation: Evaluation) -> None:
    """Draw the links that the placement and its comparison load."""
    st.subheader("Congested links")
    fabric = opened.snapshot.fabric
    loads = _loads(view, opened, evaluation)
    seconds = {name: link_bytes / fabric.links.capacity for name, link_bytes in loads.items()}
    used = np.any([values > 0 for values in seconds.values()], axis=0)
    if not used.any():
        st.info("The ranks send nothing between hosts, so no link is loaded.")
        return
    _figures(opened, seconds, used)
    _table(opened, evaluation, seconds)


def _loads(view: JobView, opened: OpenPlacement, evaluation: Evaluation) -> dict[str, Floats]:
    """Return the bytes on each link, for the compared placement and the shown one."""
    other = (
        cached_in_order(opened.stored.id, opened) if view.beside is None else view.beside.stored.evaluation
    )
    if other is None:
        return {"Placed": evaluation.link_bytes}
    name = view.beside_name
    return {name[0].upper() + name[1:]: other.link_bytes, "Placed": evaluation.link_bytes}


def _figures(opened: OpenPlacement, seconds: Mapping[str, Floats], used: Bools) -> None:
    """Draw maps of the links that either placement loads, on one scale; a click selects a link."""
    fabric = opened.snapshot.fabric
    drawn = drawing(opened.snapshot.id, fabric)
    worst = max(float(values.max()) for values in seconds.values())
    lines = int(used.sum()) <= LINES_LIMIT
    for column, (name, values) in zip(st.columns(len(seconds)), seconds.items(), strict=True):
        link = int(np.argmax(values))
        cost = units.text(float(values[link]), units.SECONDS)
        colours = colouring.load(name, "Bytes over capacity", values, worst=worst)
        with column:
            st.text(f"{name}: {cost} on {link_text(fabric, link)}")
            fabric_map(
                link_map(fabric, drawn, colours, lines=lines, only=used, height=HEIGHT),
                key=f"where {name}",
                on_pick=lambda item: _pick(fabric, None if item is None else item.link),
            )
    st.caption("The job's own bytes over the capacity of each link. Both maps have the same scale.")


def _table(opened: OpenPlacement, evaluation: Evaluation, seconds: Mapping[str, Floats]) -> None:
    """Draw the worst links of both placements, and the ranks on the link selected here or on a map."""
    st.markdown("**Worst links**")
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
        height=320,
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
        st.query_params["link"] = link_name(fabric, row)


def _chosen_link(fabric: Fabric, rows: Longs) -> int | None:
    """Draw a select box with the worst links, and return the chosen one or None."""
    by_name = {link_name(fabric, row): row for row in rows.tolist()}
    wanted = st.query_params.get("link")
    try:
        if wanted is not None and wanted not in by_name:
            by_name[wanted] = find_link(fabric, wanted)
    except AlmanacError as error:
        st.warning(plain(str(error)))
        st.query_params.pop("link")
    name = choose(
        "Ranks on link",
        "link",
        list(by_name),
        show=lambda name: link_text(fabric, by_name[name]),
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
    carried = plain(units.text(found.total_bytes, units.BYTES))
    st.markdown(
        f"{found.pairs:,} pairs of ranks send {carried} over {plain(link_text(fabric, row))}; the largest:"
    )
    shown = in_units(pairs_table(fabric, placement, found), {"bytes": units.BYTES})
    st.dataframe(
        shown, hide_index=True, column_config={"part": share_bar("share of link")}, height=280, key="pairs"
    )
