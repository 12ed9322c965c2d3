"""Part of the tab Simulations: utilisation of the links, as map and table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st

from dashboard.components.fabric_map import fabric_map
from dashboard.figures import colouring
from dashboard.figures.link_map import LINES_LIMIT, link_map
from dashboard.queries.caching import cached_snapshot, drawing
from dashboard.tables.columns import in_units
from dashboard.tables.links import LOADS, loaded_links
from dashboard.tables.simulated import letter
from dashboard.widgets.controls import choose
from dashboard.widgets.tables import csv_text, download, share_bar
from mapping.traffic.names import full_link
from registry.model import Simulation
from registry.registry import Registry
from registry.store.fabrics import Snapshot
from registry.store.simulations import StoredSimulation

BUSIEST = 50
"""Maximum rows of the table of links."""
HEIGHT = 420
"""Height of the map, in pixels."""


def draw(registry: Registry, runs: Mapping[str, StoredSimulation]) -> None:
    """Draw map and table of the links of one run.

    Parameters
    ----------
    runs : mapping of str to StoredSimulation
        Runs by label, in the order of their letters.
    """
    by_id = {one.id: name for name, one in runs.items()}
    if st.query_params.get("map") not in (None, *by_id):
        st.query_params.pop("map")
    wanted = choose("Run on the map", "map", list(by_id), show=by_id.__getitem__, kind="run")
    if wanted is None:
        return
    name = by_id[wanted]
    run, snapshot = runs[name].simulation, cached_snapshot(registry, runs[name].content)
    if not run.link_bytes.any():
        st.info("The ranks sent nothing over cables, so no link was used.")
        return
    alike = {
        letter(number): one.simulation
        for number, one in enumerate(runs.values())
        if one.content == runs[name].content
    }
    _map(registry, snapshot, name, run, alike)
    _table(snapshot, wanted, run, alike)


def _map(
    registry: Registry, snapshot: Snapshot, name: str, run: Simulation, alike: Mapping[str, Simulation]
) -> None:
    """Draw the links that any of the runs used, coloured by their utilisation in one run."""
    fabric = snapshot.fabric
    used = np.any([one.link_bytes > 0 for one in alike.values()], axis=0)
    part = run.link_utilisation
    busiest = int(np.argmax(part))
    colours = colouring.share(name, "Share of the run spent sending", part)
    st.text(f"{name}: {100 * float(part[busiest]):.1f} % of the run on {full_link(fabric, busiest)}")
    fabric_map(
        link_map(
            fabric,
            drawing(snapshot.id, fabric, registry),
            colours,
            lines=int(used.sum()) <= LINES_LIMIT,
            only=used,
            height=HEIGHT,
        ),
        key="busy links",
    )


def _table(snapshot: Snapshot, run_id: str, run: Simulation, alike: Mapping[str, Simulation]) -> None:
    """Draw the links with the highest utilisation in any of the runs on this fabric."""
    parts = {which: one.link_utilisation for which, one in alike.items()}
    _, table = loaded_links(snapshot.fabric, parts, run.link_bytes, BUSIEST)
    st.dataframe(
        in_units(table, LOADS),
        hide_index=True,
        column_config=dict.fromkeys(parts, share_bar()),
        height=320,
        key="busy table",
    )
    download(
        "All used links as CSV",
        lambda: csv_text(loaded_links(snapshot.fabric, parts, run.link_bytes, None)[1], LOADS),
        f"{run_id}-links.csv",
        key="busy csv",
    )
