"""Ways from a row of a table to a page: by a click into the table, or by a select box and the keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard.widgets.messages import plain


def picked_row(event: Any, rows: int) -> int | None:
    """The one row that is picked in a table; None where there is none (any more).

    Parameters
    ----------
    event
        What ``st.dataframe`` returned.
    rows : int
        That the table has.
    """
    chosen = event["selection"]["rows"]
    return chosen[0] if chosen and chosen[0] < rows else None


def open_job(page: st.Page, jobs: Sequence[str], picked: int | None, key: str) -> None:
    """A select box of the jobs of a table, at the row that is picked, and a link to the chosen one's page.

    Parameters
    ----------
    jobs : sequence of str
        ``CLUSTER/ID`` by row of the table.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        # another picked row is another widget: it stands at that row whatever was chosen before
        row = st.selectbox(
            "Job to open",
            range(len(jobs)),
            index=picked,
            format_func=lambda row: jobs[row],
            placeholder="pick a row above, or choose one here",
            width=360,
            key=f"{key} {picked}",
        )
        if row is not None:
            cluster, _, job = jobs[row].rpartition("/")
            job_link(page, cluster, job)


def job_link(page: st.Page, cluster: str, job: str) -> None:
    """A link to a job's page."""
    st.page_link(
        page,
        label=f"Open job {plain(job)}",
        icon=":material/arrow_forward:",
        query_params={"job": f"{cluster}/{job}"},
    )
