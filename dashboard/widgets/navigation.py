"""Links from a row of a table or list to another page, usable by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import streamlit as st

from dashboard.widgets.address import set_address
from dashboard.widgets.messages import plain
from dashboard.widgets.states import State, badge
from dashboard.widgets.tables import opening_column


def job_column(jobs: Sequence[str], *, width: int) -> Any:
    """Return the settings of a column of jobs, on a page that shows a job if its address names one.

    Parameters
    ----------
    jobs : sequence of str
        ``CLUSTER/ID`` of each row of the table.
    """

    def opened(row: int) -> None:
        set_address(**dict.fromkeys(st.query_params.keys()), job=jobs[row])

    return opening_column(opened, len(jobs), key="job of the table", width=width)


def open_job(page: st.Page, jobs: Sequence[str]) -> None:
    """Draw a choice of the jobs of a table, which needs no mouse, and a link to the chosen job's page.

    Parameters
    ----------
    jobs : sequence of str
        ``CLUSTER/ID`` of each row of the table.
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
    """A row of a list whose first column is a link.

    Attributes
    ----------
    label : str
        Text of the link, without markup.
    values : tuple of str, Share or Mark
        The other columns.
    address : mapping of str to str
        Address parameters of the linked page.
    help : str
        Full name, shown on hover.
    """

    label: str
    values: tuple[str | Share | Mark, ...]
    address: Mapping[str, str]
    help: str = ""


def linked_rows(page: st.Page, heads: Sequence[str], widths: Sequence[float], rows: Sequence[Row]) -> None:
    """Draw a list in which each row links to another page.

    Parameters
    ----------
    page : Page
        The linked page.
    heads : sequence of str
        Titles of the columns; the first column holds the links.
    widths : sequence of float
        Relative widths of the columns.
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
