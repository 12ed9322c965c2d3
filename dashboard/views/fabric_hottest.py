"""Part of the fabric page: the hottest links, a few to pick from beside the map, and more in a table."""

from __future__ import annotations

import streamlit as st

from dashboard import tables
from dashboard.components.fabric_map import Item
from dashboard.queries.fabric import FabricView
from dashboard.state.site import Site
from dashboard.tables.csv_files import csv_text
from dashboard.tables.links import hottest_links, link_text, sender_text, shortened
from dashboard.views import picking
from dashboard.widgets.downloads import download
from dashboard.widgets.messages import plain
from registry import units
from registry.model import Longs

SHORT, LONG = 8, 50
"""Links of the list and of the table."""
LETTERS = 36
"""Of a link's name in the list."""
BASES = {"time": units.SECONDS, "load": units.BYTES, "capacity": units.RATE}


def short_list(view: FabricView, site: Site) -> None:
    """The hottest links as buttons, with the job that loads each most."""
    st.markdown("**Hottest links**")
    if view.link_bytes is None:
        st.caption("No traffic is known.")
        return
    rows, table = hottest_links(view.fabric, view.link_bytes, SHORT)
    with st.container(gap=None):
        mostly = _most(view, site, rows)
        for row, seconds, job in zip(rows.tolist(), table["time"], mostly, strict=True):
            time = units.text(seconds, units.SECONDS)
            st.button(
                plain(f"{time} · {shortened(sender_text(view.fabric, row), LETTERS)}"),
                help=plain(f"{link_text(view.fabric, row)}{job}"),
                key=f"hot {row}",
                type="tertiary",
                on_click=picking.pick,
                args=(view.fabric, Item(link=row)),
            )
    if not len(rows):
        st.caption("No link is loaded.")
    st.caption("Pick one here or on the map: whose traffic it is, and which ranks'.")


def _most(view: FabricView, site: Site, rows: Longs) -> list[str]:
    """The job that loads each link most, in words; nothing of those that may not be seen."""
    if view.live is None:
        return [""] * len(rows)
    first = [link.users[0] for link in view.live.shared.links(rows.tolist())]
    return [f", mostly job {one.job}" if site.viewer.sees(one.user) else "" for one in first]


def table(view: FabricView, site: Site) -> None:
    """The hottest links with all that is known of them."""
    if view.link_bytes is None:
        return
    with st.expander("Table of the hottest links"):
        _, found = hottest_links(view.fabric, view.link_bytes, LONG)
        bar = st.column_config.ProgressColumn("of the worst", format="percent", min_value=0, max_value=1)
        shown = tables.in_units(found, BASES)
        st.dataframe(shown, hide_index=True, column_config={"of the worst": bar}, key="hottest")
        download(
            "All loaded links as CSV", lambda: _csv(view), f"{view.cluster.name}-links.csv", key="links csv"
        )
    if view.opened is not None:
        st.page_link(
            site.job,
            label="Ranks, bounds and launcher files of this placement",
            icon=":material/arrow_forward:",
            query_params={"placement": view.opened.stored.id},
        )


def _csv(view: FabricView) -> str:
    assert view.link_bytes is not None
    _, found = hottest_links(view.fabric, view.link_bytes, len(view.fabric.links))
    return csv_text(found, BASES)
