"""Part of the job page: the job's hosts, the ranks on them, and the communication matrix."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.figures.placement import communication_matrix, hosts_figure
from dashboard.figures.style import theme_of
from dashboard.queries.job import JobView, neighbours
from dashboard.tables.hosts import host_cells, with_ranks
from dashboard.tables.placements import communication, ranks_per_host
from registry import units
from registry.model import Ints
from registry.pages.placements import OpenPlacement

MOST_CELLS = 3_000
"""Maximum number of hosts drawn as cells; more are shown in the table only."""


def draw_ranks(view: JobView, opened: OpenPlacement) -> None:
    """Draw the job's hosts and the ranks on them."""
    name, before = _before(view, opened)
    left, right = st.columns([2, 1])
    with left:
        _hosts(opened, name, before)
    with right:
        _ranks(opened, name, before)


def _before(view: JobView, opened: OpenPlacement) -> tuple[str, Ints]:
    """Return the name of the compared placement and the host of each rank in it."""
    placement = opened.stored.placement
    if view.beside is None:
        return view.beside_name, placement.allocation.host_of_slot[: placement.ranks]
    return view.beside_name, view.beside.stored.placement.host_of_rank


def _hosts(opened: OpenPlacement, name: str, before: Ints) -> None:
    """Draw the hosts of each switch and the ranks on them, for both placements."""
    placement, fabric = opened.stored.placement, opened.snapshot.fabric
    near = neighbours(opened.snapshot.id, fabric)
    hosts = np.union1d(placement.allocation.hosts, before)
    found = host_cells(fabric, near, hosts)
    if len(found.cells) > MOST_CELLS:
        st.caption(f"{len(hosts):,} hosts are too many to draw; the table below lists them.")
        return
    theme = theme_of(st.context.theme.type)
    both = {name: before, "placed": placement.host_of_rank}
    for column, (title, host_of_rank) in zip(st.columns(2), both.items(), strict=True):
        cells = with_ranks(found.cells, fabric, host_of_rank)
        chart = hosts_figure(found.rows, cells, f"Ranks, {title}", placement.ranks, theme)
        with column:
            st.altair_chart(chart, width="content", key=f"hosts {title}")
    st.caption(
        "Each cell is a host, each row a switch. Outlined: other hosts. Grey: hosts of this job "
        "without ranks. Similar colours side by side: consecutive ranks are close to each other."
    )


def _ranks(opened: OpenPlacement, name: str, before: Ints) -> None:
    """Draw a table of the ranks on each host, for both placements."""
    stored, fabric = opened.stored, opened.snapshot.fabric
    columns = {name: [fabric.names[v] for v in before.tolist()], "placed": list(stored.hosts)}
    own = stored.placement.allocation.hosts.tolist()
    # the compared placement may use other hosts
    hosts = list(dict.fromkeys([*(fabric.names[v] for v in own), *columns[name]]))
    st.dataframe(ranks_per_host(hosts, columns), hide_index=True, height=400, key="ranks")


def draw_communication(opened: OpenPlacement) -> None:
    """Draw the bytes between ranks."""
    if opened.profile is None:
        st.info("The profile of this placement is not known.")
        return
    profile = opened.profile.profile
    theme = theme_of(st.context.theme.type)
    chart = communication_matrix(communication(profile), profile.ranks, theme)
    left, right = st.columns([3, 2])
    with left:
        st.altair_chart(chart, width="content", key="communication")
    with right:
        facts = {
            "Profile": profile.name,
            "Application": profile.application,
            "Ranks": f"{profile.ranks:,}",
            "Pairs of ranks": f"{len(profile.bytes):,}",
            "Bytes": units.short(float(profile.bytes.sum()), units.BYTES),
        }
        table = pd.DataFrame({"fact": list(facts), "value": list(facts.values())})
        st.dataframe(table, hide_index=True, key="profile")
