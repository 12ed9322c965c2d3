"""The bar above every page: its title, cluster, time range, search, refresh and age of the data.

Links from a row of a table or list to another page, usable by mouse and keyboard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.shared.cards import State, badge, opening_column, plain, set_address
from registry import units
from registry.store.fabrics import ClusterInfo
from registry.store.ingest_runs import age_text

REFRESH_SECONDS = 30
"""Time between two refreshes of a page."""
KEPT = ("tab", "range", "live", "wall")
"""Parameters of the address that stay when another cluster is chosen."""
RANGES = {
    "1h": ("Last hour", timedelta(hours=1)),
    "24h": ("Last 24 hours", timedelta(days=1)),
    "7d": ("Last 7 days", timedelta(days=7)),
    "30d": ("Last 30 days", timedelta(days=30)),
    "90d": ("Last 90 days", timedelta(days=90)),
}
"""Text and length of each time range, by its value in the address."""
DEFAULT_RANGE = "24h"
_SEARCHED = "searched"
WALL_STYLE = """<style>
.stAppHeader { display: none }
@media (min-width: 1900px) { .stMainBlockContainer { zoom: 1.35 } }
@media (min-width: 3800px) { .stMainBlockContainer { zoom: 2.7 } }
</style>"""
"""Larger type on a wall display."""


def on_wall() -> bool:
    """Return True if the page is shown on a wall display, without controls (``wall=1`` in the address)."""
    return st.query_params.get("wall") == "1"


def is_live() -> bool:
    """Return True if pages refresh themselves (not ``live=off`` in the address)."""
    return st.query_params.get("live") != "off"


def refresh_seconds() -> int | None:
    """Return the time between two refreshes of a page, or None if pages do not refresh themselves."""
    return REFRESH_SECONDS if is_live() else None


def time_range() -> timedelta:
    """Return the time range in the address (default: 24 hours)."""
    wanted = st.query_params.get("range", DEFAULT_RANGE)
    return RANGES.get(wanted, RANGES[DEFAULT_RANGE])[1]


def draw(title: str, clusters: Sequence[str], *, all_clusters: bool) -> DeltaGenerator:
    """Draw the bar and return the place for `ages`.

    Args:
        clusters: Names of all clusters; empty if there are none or the database does not answer: no choices
            are drawn.
        all_clusters: True if the page can show all clusters together.
    """
    with st.container(horizontal=True, vertical_alignment="center", key="bar"):
        st.title(title, width="content", anchor=False)
        if on_wall():
            st.html(WALL_STYLE)
        elif clusters:
            _cluster(clusters, all_clusters=all_clusters)
            _range()
            _search()
            st.toggle(
                "Live",
                value=is_live(),
                key="live",
                help=f"Refresh every {REFRESH_SECONDS} s.",
                on_change=_set_live,
            )
        return st.container(width="content")


def ages(clusters: Mapping[str, ClusterInfo], read_at: datetime) -> None:
    """Show when the page was refreshed, and the age of the last scan of the chosen cluster.

    Args:
        clusters: All clusters by name.
        read_at: When they were read.
    """
    if not clusters:
        return
    info = clusters.get(_named() or next(iter(clusters)))
    updated = f"{read_at:%H:%M:%S} UTC"
    if info is None:
        st.caption(updated, width="content")
        return
    age = age_text(datetime.now(UTC) - info.last_observed_at)
    seen = f"Refreshed at {read_at:%H:%M:%S} UTC. Last scan: {units.moment_text(info.last_observed_at)}"
    st.caption(f"{updated} · scan {age} ago", width="content", help=seen)


def searched() -> str:
    """Return the text that was just entered in the search field, once; empty if there is none."""
    return str(st.session_state.pop(_SEARCHED, "")).strip()


def chosen_cluster(names: Sequence[str]) -> str | None:
    """Return the cluster that the address names, or the first one; None if it names an unknown one."""
    wanted = _named() or next(iter(names), None)
    return wanted if wanted in names else None


def _search() -> None:
    def entered() -> None:
        st.session_state[_SEARCHED] = st.session_state["search"]
        st.session_state["search"] = ""

    st.text_input(
        "Search",
        key="search",
        label_visibility="collapsed",
        placeholder="host, switch, link, job, user, placement",
        icon=":material/search:",
        on_change=entered,
    )


def _named() -> str | None:
    """Return the cluster that the address names, itself or as a part of a job."""
    job = st.query_params.get("job", "").rpartition("/")[0]
    return st.query_params.get("cluster") or job or None


def _cluster(names: Sequence[str], *, all_clusters: bool) -> None:
    """Draw the choice of the cluster; another cluster removes what belongs to the former one."""
    key, wanted = "choose cluster", _named()
    default = None if all_clusters or wanted is not None else names[0]
    st.session_state[key] = wanted if wanted in names else default

    def chosen() -> None:
        others = [name for name in st.query_params if name not in KEPT]
        set_address(**{**dict.fromkeys(others), "cluster": st.session_state[key]})

    st.selectbox(
        "Cluster",
        names,
        index=None if all_clusters else 0,
        key=key,
        placeholder="All clusters" if all_clusters else "Cluster",
        label_visibility="collapsed",
        on_change=chosen,
        width=150,
    )


def _range() -> None:
    key, wanted = "choose range", st.query_params.get("range", DEFAULT_RANGE)
    st.session_state[key] = wanted if wanted in RANGES else DEFAULT_RANGE
    st.selectbox(
        "Time range",
        list(RANGES),
        format_func=lambda name: RANGES[name][0],
        key=key,
        label_visibility="collapsed",
        on_change=lambda: set_address(range=st.session_state[key]),
        width=130,
    )


def _set_live() -> None:
    set_address(live=None if st.session_state["live"] else "off")


def job_column(jobs: Sequence[str], *, width: int) -> Any:
    """Return the settings of a column of jobs, on a page that shows a job if its address names one.

    Args:
        jobs: ``CLUSTER/ID`` of each row of the table.
    """

    def opened(row: int) -> None:
        set_address(**dict.fromkeys(st.query_params.keys()), job=jobs[row])

    return opening_column(opened, len(jobs), key="job of the table", width=width)


def open_job(page: st.Page, jobs: Sequence[str]) -> None:
    """Draw a choice of the jobs of a table, which needs no mouse, and a link to the chosen job's page.

    Args:
        jobs: ``CLUSTER/ID`` of each row of the table.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        found = st.selectbox(
            "Job to open",
            jobs,
            index=None,
            placeholder="click one above, or choose here",
            width=280,
            key="job to open",
        )
        if found is not None:
            cluster, _, job = found.rpartition("/")
            job_link(page, cluster, job)


def job_link(page: st.Page, cluster: str, job: str) -> None:
    """Draw a link to a job's page."""
    link_to(page, f"Open job {plain(job)}", job=f"{cluster}/{job}")


def link_to(page: st.Page, label: str, *, icon: str = "arrow_forward", **address: str) -> None:
    """Draw a link to a page with these parameters of its address."""
    st.page_link(page, label=label, icon=f":material/{icon}:", query_params=address)


class Share(NamedTuple):
    """A part of a whole, 0 to 1, drawn as a bar."""

    part: float


class Mark(NamedTuple):
    """A state with a text, drawn as a badge."""

    state: State
    text: str


class Row(NamedTuple):
    """A row of a list whose first column is a link."""

    label: str
    """Text of the link, without markup."""
    values: tuple[str | Share | Mark, ...]
    """The other columns."""
    address: Mapping[str, str]
    """Address parameters of the linked page."""
    help: str = ""
    """Full name, shown on hover."""


def linked_rows(page: st.Page, heads: Sequence[str], widths: Sequence[float], rows: Sequence[Row]) -> None:
    """Draw a list in which each row links to another page.

    Args:
        page: The linked page.
        heads: Titles of the columns; the first column holds the links.
        widths: Relative widths of the columns.
    """
    with st.container(gap=None, key=f"rows {heads[0]} {heads[-1]}"):
        for column, head in zip(st.columns(list(widths), gap="xsmall"), heads, strict=True):
            column.caption(plain(head))
        for row in rows:
            columns = st.columns(list(widths), gap="xsmall", vertical_alignment="center")
            about = plain(row.help) or None
            columns[0].page_link(page, label=plain(row.label), help=about, query_params=dict(row.address))
            for column, value in zip(columns[1:], row.values, strict=True):
                with column:
                    _cell(value)


def _cell(value: str | Share | Mark) -> None:
    if isinstance(value, Share):
        st.progress(min(max(value.part, 0.0), 1.0))
    elif isinstance(value, Mark):
        badge(value.state, value.text)
    else:
        st.text(value)
