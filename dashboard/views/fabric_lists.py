"""Beside the map while nothing is selected: the busiest links, ports with errors, or what the fabric is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.components.fabric_map import Item
from dashboard.queries.fabric import FabricView
from dashboard.state.site import Site
from dashboard.tables.columns import in_units
from dashboard.tables.links import LOADS, hottest_links
from dashboard.tables.ports import growth_table, ports_with_errors
from dashboard.tables.sharing import most_loading
from dashboard.views import picking
from dashboard.views.fabric_colours import CAPACITY, ERRORS, MEASURED
from dashboard.widgets.address import set_address
from dashboard.widgets.messages import CONVENTION, plain
from dashboard.widgets.navigation import link_to
from dashboard.widgets.states import State, badge
from dashboard.widgets.tables import compact_number, csv_text, download, share_bar
from mapping.traffic.names import short_link
from mapping.traffic.ports import CounterHistory
from registry import units
from registry.model import Floats, Longs

LEFT = "<style>[class*='st-key-list'] button p { text-align: left }</style>"
"""Style that aligns long labels of buttons in lists, which Streamlit centres."""
SHOWN = 9
"""Number of listed links or ports, which fit beside the map."""
BASES = {"time": units.SECONDS, **LOADS}


def draw(site: Site, view: FabricView, counters: CounterHistory | None, colour: str) -> None:
    """Draw the list that belongs to the colours of the map."""
    picking.search(view.fabric)
    picking.show_failed_search()
    st.html(LEFT)
    if colour == ERRORS and counters is not None:
        _errors(view, counters)
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


def _errors(view: FabricView, counters: CounterHistory) -> None:
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
