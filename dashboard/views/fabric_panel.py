"""Part of the fabric page beside and below the map: the selected link or device, or the busiest links."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.components.fabric_map import Item
from dashboard.layouts.model import Layout
from dashboard.layouts.tree import hosts_below
from dashboard.queries.fabric import FabricView
from dashboard.queries.traffic import cached_rank_pairs, pairs_of_placement
from dashboard.state.site import Site
from dashboard.state.viewer import OTHERS
from dashboard.tables.columns import in_units
from dashboard.tables.links import LOADS, hottest_links, link_text, sender_text, shortened
from dashboard.tables.sharing import jobs_on_hosts, pairs_table, users_of_link
from dashboard.views.picking import pick_button
from dashboard.widgets.controls import choose
from dashboard.widgets.messages import plain, show_error
from dashboard.widgets.navigation import job_link, link_to
from dashboard.widgets.tables import csv_text, download, share_bar
from mapping.traffic.device_names import reverse_rows
from registry import units
from registry.errors import AlmanacError
from registry.model import HOST, Fabric, Longs, format_guid
from registry.registry import Registry

PAIRS = 50
"""Maximum number of listed pairs of ranks."""
OWN, SHORT, LONG = 8, 8, 50
"""Maximum number of links of a device, in the short list, and in the table."""
LETTERS = 36
"""Maximum length of a link's name in a list."""
BASES = {"time": units.SECONDS, **LOADS}


def draw(registry: Registry, site: Site, view: FabricView, layout: Layout, picked: Item) -> None:
    """Draw what is known of the selected link or device."""
    if picked.link is not None:
        _link(registry, site, view, picked.link)
    elif picked.vertex is not None:
        _device(site, view, layout, picked.vertex)
    pick_button("Clear", view.fabric, None, key="clear pick")


def _link(registry: Registry, site: Site, view: FabricView, row: int) -> None:
    """Draw a link: its facts, its ends, and whose traffic it carries."""
    fabric = view.fabric
    st.markdown(f"**{plain(link_text(fabric, row))}**")
    _link_facts(view, row)
    with st.container(horizontal=True):
        for vertex in (int(fabric.links.source[row]), int(fabric.links.target[row])):
            pick_button(plain(fabric.names[vertex]), fabric, Item(vertex=vertex), key=f"end {vertex}")
        for other in reverse_rows(fabric, np.array([row])).tolist()[:1]:
            pick_button("Other direction", fabric, Item(link=other), key="other direction")
    if view.live is not None:
        _users(registry, site, view, row)
    elif view.opened is not None:
        _ranks_of_placement(view, row)


def _link_facts(view: FabricView, row: int) -> None:
    """Draw a table with capacity, estimated load and measured load of a link."""
    links = view.fabric.links
    facts = {
        "kind": "between switches" if view.fabric.network_link[row] else "host cable",
        "capacity": units.text(float(links.capacity[row]), units.RATE),
    }
    if view.link_bytes is not None:
        load = float(view.link_bytes[row])
        facts["estimated load"] = f"{units.text(load, units.BYTES)} per period"
        facts["time"] = f"{units.text(load / float(links.capacity[row]), units.SECONDS)} per period"
    if view.rates is not None and not np.isnan(view.rates.share[row]):
        rate = units.text(float(view.rates.bytes_per_second[row]), units.RATE)
        facts["measured load"] = f"{rate}, {100 * float(view.rates.share[row]):.3g} % of capacity"
    table = pd.DataFrame({"fact": list(facts), "value": list(facts.values())})
    st.dataframe(table, hide_index=True, height="content", key="link facts")


def _users(registry: Registry, site: Site, view: FabricView, row: int) -> None:
    """Draw the jobs on a link, and the rank pairs of one of them."""
    assert view.live is not None
    users = users_of_link(view.live, row, site.viewer)
    if users.empty:
        st.caption("No running job is known to load this direction.")
        return
    st.markdown("**Jobs on this link**")
    shown = in_units(users, {"bytes": units.BYTES})
    st.dataframe(shown, hide_index=True, column_config={"part": share_bar()}, height="content", key="users")
    jobs = [job for job in users["job"] if job != OTHERS]
    if not jobs:
        return
    if st.query_params.get("load") not in (None, *jobs):
        st.query_params.pop("load")
    job = choose("Ranks of job", "load", jobs)
    if job is None:
        return
    try:
        pairs = cached_rank_pairs(registry, view.cluster, view.live, job, row, PAIRS)
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
        st.info("The profile of this placement is not known.")
        return
    _pairs(pairs_table(view.fabric, view.opened.stored.placement, pairs), pairs.pairs)


def _pairs(table: pd.DataFrame, count: int) -> None:
    st.caption(
        f"{count:,} pairs of ranks load it" + (f", the {len(table)} largest:" if count > len(table) else ":")
    )
    shown = in_units(table, {"bytes": units.BYTES})
    st.dataframe(shown, hide_index=True, column_config={"part": share_bar()}, height=240, key="pairs")


def _device(site: Site, view: FabricView, layout: Layout, vertex: int) -> None:
    """Draw a host or switch: its facts, its busiest links, and the jobs on it or below it."""
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
    st.markdown("**Jobs on this host**" if host else "**Jobs below this switch**")
    jobs = jobs_on_hosts(view.live, below, site.viewer)
    if jobs.empty:
        st.caption("No running job has hosts here.")
        return
    st.dataframe(jobs, hide_index=True, height=min(38 + 35 * len(jobs), 320), key="jobs below")
    job = st.selectbox("Job to open", jobs["job"].tolist(), key="job below")
    job_link(site.job, view.cluster.name, job)


def _own_links(view: FabricView, vertex: int) -> None:
    """Draw the busiest links of a device as buttons."""
    fabric, link_bytes = view.fabric, view.link_bytes
    if link_bytes is None:
        return
    mine = (fabric.links.source == vertex) | (fabric.links.target == vertex)
    rows, table = hottest_links(fabric, np.where(mine, link_bytes, 0.0), OWN)
    if len(rows):
        st.markdown("**Its busiest links**")
    with st.container(gap=None):
        for row, seconds in zip(rows.tolist(), table["time"], strict=True):
            _link_button(fabric, row, seconds, link_text(fabric, row), f"own {row}")


def _link_button(fabric: Fabric, row: int, seconds: float, about: str, key: str) -> None:
    """Draw a button with the time and name of a link; a click selects the link."""
    label = f"{units.text(seconds, units.SECONDS)} · {shortened(sender_text(fabric, row), LETTERS)}"
    pick_button(plain(label), fabric, Item(link=row), help=plain(about), key=key, type="tertiary")


def short_list(view: FabricView, site: Site) -> None:
    """Draw the busiest links as buttons, with the job that loads each most."""
    st.markdown("**Busiest links**")
    if view.link_bytes is None:
        st.caption("No traffic is known.")
        return
    rows, table = hottest_links(view.fabric, view.link_bytes, SHORT)
    with st.container(gap=None):
        mostly = _most(view, site, rows)
        for row, seconds, job in zip(rows.tolist(), table["time"], mostly, strict=True):
            _link_button(view.fabric, row, seconds, f"{link_text(view.fabric, row)}{job}", f"hot {row}")
    if not len(rows):
        st.caption("No link is loaded.")
    st.caption("Select a link here or on the map to see the jobs and ranks on it.")


def _most(view: FabricView, site: Site, rows: Longs) -> list[str]:
    """Return the job that loads each link most, as text; empty for jobs that the viewer may not see."""
    if view.live is None:
        return [""] * len(rows)
    first = [link.users[0] for link in view.live.shared.links(rows.tolist())]
    return [f", mostly job {one.job}" if site.viewer.sees(one.user) else "" for one in first]


def table(view: FabricView, site: Site) -> None:
    """Draw the table of the busiest links, with its download."""
    if view.link_bytes is None:
        return
    with st.expander("Table of the busiest links"):
        _, found = hottest_links(view.fabric, view.link_bytes, LONG)
        shown = in_units(found, BASES)
        st.dataframe(shown, hide_index=True, column_config={"of the worst": share_bar()}, key="hottest")
        name = f"{view.cluster.name}-links.csv"
        download("All loaded links as CSV", lambda: _csv(view), name, key="links csv")
    if view.opened is not None:
        link_to(site.job, "Ranks, bounds and launcher files", placement=view.opened.stored.id)


def _csv(view: FabricView) -> str:
    assert view.link_bytes is not None
    _, found = hottest_links(view.fabric, view.link_bytes, len(view.fabric.links))
    return csv_text(found, BASES)
