"""Part of the fabric page: what is known of the link or machine that is picked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import tables
from dashboard.components.fabric_map import Item
from dashboard.layouts import Layout
from dashboard.layouts.tree import hosts_below
from dashboard.queries.fabric import FabricView
from dashboard.queries.pairs import pairs_kept, pairs_of_placement
from dashboard.state.site import Site
from dashboard.state.viewer import OTHERS
from dashboard.tables.links import hottest_links, link_text, sender_text, shortened
from dashboard.tables.users import jobs_on_hosts, pairs_table, users_of_link
from dashboard.views import picking
from dashboard.widgets.choices import choose
from dashboard.widgets.job_selection import job_link
from dashboard.widgets.messages import plain, show_error
from mapping.traffic import naming
from registry import units
from registry.errors import AlmanacError
from registry.model import HOST, format_guid
from registry.registry import Registry

PAIRS = 50
"""Pairs of ranks that are listed."""
OWN = 8
"""Links of a machine that are listed."""
PART = st.column_config.ProgressColumn("part", format="percent", min_value=0, max_value=1)


def draw(registry: Registry, site: Site, view: FabricView, layout: Layout, picked: Item) -> None:
    """Draw the part."""
    if picked.link is not None:
        _link(registry, site, view, picked.link)
    elif picked.vertex is not None:
        _machine(site, view, layout, picked.vertex)
    st.button("Clear", on_click=picking.pick, args=(view.fabric, None), key="clear pick")


def _link(registry: Registry, site: Site, view: FabricView, row: int) -> None:
    fabric = view.fabric
    st.markdown(f"**{plain(link_text(fabric, row))}**")
    _link_facts(view, row)
    with st.container(horizontal=True):
        for vertex in (int(fabric.links.source[row]), int(fabric.links.target[row])):
            st.button(
                plain(fabric.names[vertex]),
                on_click=picking.pick,
                args=(fabric, Item(vertex=vertex)),
                key=f"end {vertex}",
            )
        for other in naming.reverse_rows(fabric, np.array([row])).tolist()[:1]:
            st.button(
                "Other direction",
                on_click=picking.pick,
                args=(fabric, Item(link=other)),
                key="other direction",
            )
    if view.live is not None:
        _users(registry, site, view, row)
    elif view.opened is not None:
        _ranks_of_placement(view, row)


def _link_facts(view: FabricView, row: int) -> None:
    links = view.fabric.links
    facts = {
        "kind": "between switches" if view.fabric.network_link[row] else "a host's own cable",
        "capacity": units.text(float(links.capacity[row]), units.RATE),
    }
    if view.link_bytes is not None:
        load = float(view.link_bytes[row])
        facts["predicted load"] = f"{units.text(load, units.BYTES)} a period"
        facts["time for it"] = f"{units.text(load / float(links.capacity[row]), units.SECONDS)} a period"
    if view.rates is not None and not np.isnan(view.rates.share[row]):
        rate = units.text(float(view.rates.bytes_per_second[row]), units.RATE)
        facts["measured"] = f"{rate}, {100 * float(view.rates.share[row]):.3g} % of capacity"
    table = pd.DataFrame({"fact": list(facts), "value": list(facts.values())})
    st.dataframe(table, hide_index=True, height="content", key="link facts")


def _users(registry: Registry, site: Site, view: FabricView, row: int) -> None:
    """Jobs on the link; of one of them the ranks."""
    assert view.live is not None
    users = users_of_link(view.live, row, site.viewer)
    if users.empty:
        st.caption("No running job is predicted to load this direction.")
        return
    st.markdown("**Jobs that load it**")
    shown = tables.in_units(users, {"bytes": units.BYTES})
    st.dataframe(shown, hide_index=True, column_config={"part": PART}, height="content", key="users")
    jobs = [job for job in users["job"] if job != OTHERS]
    if not jobs:
        return
    if st.query_params.get("load") not in (None, *jobs):
        st.query_params.pop("load")
    job = choose("Ranks of job", "load", jobs)
    if job is None:
        return
    try:
        pairs = pairs_kept(registry, view.cluster, view.at, view.live, job, row, PAIRS)
    except AlmanacError as error:
        show_error(error)
        return
    placement = view.live.placements[view.live.shared.index(job)]
    _pairs(pairs_table(view.fabric, placement, pairs), pairs.pairs)
    job_link(site.job, view.cluster.name, job)


def _ranks_of_placement(view: FabricView, row: int) -> None:
    assert view.opened is not None
    try:
        pairs = pairs_of_placement(view.opened, row, PAIRS)
    except AlmanacError as error:
        show_error(error)
        return
    if pairs is None:
        st.info("No profile of this placement is known.")
        return
    _pairs(pairs_table(view.fabric, view.opened.stored.placement, pairs), pairs.pairs)


def _pairs(table: pd.DataFrame, count: int) -> None:
    st.caption(
        f"{count:,} pairs of ranks load it" + (f", the {len(table)} largest:" if count > len(table) else ":")
    )
    shown = tables.in_units(table, {"bytes": units.BYTES})
    st.dataframe(shown, hide_index=True, column_config={"part": PART}, height=240, key="pairs")


def _machine(site: Site, view: FabricView, layout: Layout, vertex: int) -> None:
    fabric = view.fabric
    st.markdown(f"**{plain(fabric.names[vertex])}**")
    below = hosts_below(fabric, layout.tier, vertex)
    host = fabric.kind[vertex] == HOST
    guid = format_guid(int(fabric.guid[vertex]))
    cables = int(fabric.links.cables[fabric.links.source == vertex].sum())
    what = [
        "host" if host else "switch",
        guid,
        f"{cables:,} cables",
        "" if host else f"{len(below):,} hosts below",
    ]
    st.caption(plain(" · ".join(part for part in what if part)))
    _own_links(view, vertex)
    if view.live is None:
        return
    st.markdown("**Jobs on it**" if host else "**Jobs below it**")
    jobs = jobs_on_hosts(view.live, below, site.viewer)
    if jobs.empty:
        st.caption("No running job has a host here.")
        return
    st.dataframe(jobs, hide_index=True, height=min(38 + 35 * len(jobs), 320), key="jobs below")
    job = st.selectbox("Job to open", jobs["job"].tolist(), key="job below")
    job_link(site.job, view.cluster.name, job)


def _own_links(view: FabricView, vertex: int) -> None:
    """The hottest links at the machine, to pick."""
    fabric, link_bytes = view.fabric, view.link_bytes
    if link_bytes is None:
        return
    mine = (fabric.links.source == vertex) | (fabric.links.target == vertex)
    rows, table = hottest_links(fabric, np.where(mine, link_bytes, 0.0), OWN)
    if len(rows):
        st.markdown("**Its hottest links**")
    with st.container(gap=None):
        for row, seconds in zip(rows.tolist(), table["time"], strict=True):
            st.button(
                plain(f"{units.text(seconds, units.SECONDS)} · {shortened(sender_text(fabric, row), 36)}"),
                help=plain(link_text(fabric, row)),
                key=f"own {row}",
                type="tertiary",
                on_click=picking.pick,
                args=(fabric, Item(link=row)),
            )
