"""Part of the job page: the job's hosts on the fabric, the ranks on them, and who sends to whom."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard import figures, tables
from dashboard.figures.hosts import hosts_figure
from dashboard.queries.job import JobView
from dashboard.queries.jobs import seats
from dashboard.tables.hosts import host_cells, with_ranks
from registry.model import Ints
from registry.pages.placements import OpenPlacement

MOST_CELLS = 3_000
"""Hosts that are drawn as cells; of more only the table is shown."""


def draw(view: JobView, opened: OpenPlacement) -> None:
    """Draw the part."""
    name, before = _before(view, opened)
    _hosts(opened, name, before)
    left, right = st.columns(2)
    with left:
        _ranks(opened, name, before)
    with right:
        _communication(opened)


def _before(view: JobView, opened: OpenPlacement) -> tuple[str, Ints]:
    """What stands beside the placement, and the host of each rank there."""
    placement = opened.stored.placement
    if view.beside is None:
        return view.beside_name, placement.allocation.host_of_slot[: placement.ranks]
    return view.beside_name, view.beside.stored.placement.host_of_rank


def _hosts(opened: OpenPlacement, name: str, before: Ints) -> None:
    """Switch by switch the hosts and the ranks on them, before and after."""
    st.subheader("Its hosts on the fabric")
    placement, fabric = opened.stored.placement, opened.snapshot.fabric
    near = seats(opened.snapshot.id, fabric).neighbours
    hosts = np.union1d(placement.allocation.hosts, before)
    found = host_cells(fabric, near, hosts)
    if len(found.cells) > MOST_CELLS:
        st.caption(f"{len(hosts):,} hosts are too many for a picture; the table below has them.")
        return
    theme = figures.theme_of(st.context.theme.type)
    both = {name: before, "placed": placement.host_of_rank}
    for column, (title, host_of_rank) in zip(st.columns(2), both.items(), strict=True):
        cells = with_ranks(found.cells, fabric, host_of_rank)
        chart = hosts_figure(found.rows, cells, f"Its ranks, {title}", placement.ranks, theme)
        with column:
            st.altair_chart(chart, width="content", key=f"hosts {title}")
    st.caption(
        "A cell a host, a row for the hosts of the same switches. Outlined: hosts that are not the job's; "
        "grey: hosts of the job without a rank. Near colours on near cells: near ranks sit near each other."
    )


def _ranks(opened: OpenPlacement, name: str, before: Ints) -> None:
    st.subheader("Ranks of each host")
    stored, fabric = opened.stored, opened.snapshot.fabric
    columns = {name: [fabric.names[v] for v in before.tolist()], "placed": list(stored.hosts)}
    own = stored.placement.allocation.hosts.tolist()
    hosts = list(
        dict.fromkeys([*(fabric.names[v] for v in own), *columns[name]])
    )  # the other may sit elsewhere
    st.dataframe(tables.ranks_per_host(hosts, columns), hide_index=True, height=430, key="ranks")


def _communication(opened: OpenPlacement) -> None:
    st.subheader("Communication")
    if opened.profile is None:
        st.info("No profile of this placement is known.")
        return
    profile = opened.profile.profile
    theme = figures.theme_of(st.context.theme.type)
    chart = figures.communication_matrix(tables.communication(profile), profile.ranks, theme)
    st.altair_chart(chart, width="content", key="communication")
