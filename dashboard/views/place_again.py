"""Part of the job page: search a better placement behind the page, with progress, stop and result."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import streamlit as st

from dashboard.state.searches import STOPPED, STOPPING, WAITING, Searches, Standing
from dashboard.widgets.messages import plain, show_error
from mapping.evaluation.report import PlacementReport
from mapping.placement.search.options import SearchOptions
from mapping.service import PlacementRequest, place
from mapping.threads import cores
from registry import units
from registry.errors import AlmanacError
from registry.progress import Progress
from registry.registry import Registry

OBJECTIVES = {"congestion": ("the worst link", units.SECONDS), "hop-bytes": ("hop-bytes", units.BYTES)}
"""What can be searched for: its text, and its unit."""
SECONDS, MOST_SECONDS = 10, 600
EVERY = 1.0
"""Seconds between two looks at a search that runs."""


class Ground(NamedTuple):
    """What is placed again.

    Attributes
    ----------
    key : str
        What the search is known by: the job.
    request : PlacementRequest
        Profile, and job or hosts.
    present : str or None
        Id of the placement that few ranks may be moved from.
    ranks : int
    runs : bool
        Whether the job runs now, beside others.
    """

    key: str
    request: PlacementRequest
    present: str | None
    ranks: int
    runs: bool


def draw(searches: Searches, ground: Ground, shown: str | None) -> None:
    """Draw the part.

    Parameters
    ----------
    shown : str or None
        The placement that the page shows.
    """
    st.subheader("Place again")
    standing = searches.standing(ground.key)
    if standing is not None and not standing.ended:
        st.fragment(_progress, run_every=EVERY)(searches, ground.key)
        return
    if standing is not None:
        _result(searches, ground.key, standing, shown)
    _form(searches, ground)


def _form(searches: Searches, ground: Ground) -> None:
    """What to search, and the button that begins it."""
    with st.form("place again", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        seconds = st.number_input(
            "Seconds",
            1,
            MOST_SECONDS,
            SECONDS,
            width=130,
            key="place seconds",
            help="Time that the search may take.",
        )
        objective = st.selectbox(
            "Make small",
            list(OBJECTIVES),
            format_func=lambda name: OBJECTIVES[name][0],
            width=180,
            key="place objective",
        )
        moves = None
        if ground.present is not None:
            moves = st.number_input(
                "Ranks that may move",
                1,
                max(ground.ranks, 1),
                None,
                placeholder="all",
                width=170,
                key="place moves",
                help="From the placement that the job runs with; all: a placement from scratch.",
            )
        others = ground.runs and st.checkbox(
            "with the other running jobs' traffic on the links", value=True, key="place others"
        )
        begin = st.form_submit_button("Place again", type="primary", icon=":material/search:", key="place")
    st.caption(
        "On the fabric as it is now. The search goes on when this page is left or reloaded; what it finds is "
        "saved to the history."
    )
    if begin:
        _begin(searches, ground, float(seconds), str(objective), moves, others=bool(others))
        st.rerun()


def _begin(
    searches: Searches, ground: Ground, seconds: float, objective: str, moves: int | None, *, others: bool
) -> None:
    workers = max(cores() - 1, 1)  # one is left to the pages
    options = SearchOptions(seconds=seconds, objective=objective, moves=moves, workers=workers)
    keep = None if moves is None else ground.present
    request = replace(ground.request, options=options, keep=keep, running=others)

    def work(registry: Registry, progress: Progress) -> PlacementReport:
        return place(registry, request, progress)

    searches.start(ground.key, work, base=OBJECTIVES[objective][1])


def _progress(searches: Searches, key: str) -> None:
    """How far it is, looked at again and again; the whole page is drawn when it has ended."""
    standing = searches.standing(key)
    if standing is None or standing.ended:
        st.rerun(scope="app")
    st.progress(standing.share, plain(progress_text(standing)))
    stopping = standing.state == STOPPING
    st.button(
        "Stopping, the best so far is saved ..." if stopping else "Stop and keep the best so far",
        disabled=stopping,
        on_click=searches.stop,
        args=(key,),
        icon=":material/stop_circle:",
        key="place stop",
    )


def progress_text(standing: Standing) -> str:
    """How far a search is, in a line."""
    if standing.state == WAITING:
        return "waits until another search has ended"
    parts = [f"{standing.done:.0f} of {standing.total:.0f} s"] if standing.total else []
    if standing.best is not None:
        parts.append(f"best so far {units.text(standing.best, standing.base)}")
    return " · ".join([*parts, standing.phase or "reads the fabric and the profile"])


def _result(searches: Searches, key: str, standing: Standing, shown: str | None) -> None:
    """What the last search ended with."""
    found = standing.found
    if found is not None:
        values = (
            units.text(value, units.SECONDS) for value in (found.congestion_seconds, found.in_order_seconds)
        )
        stopped = "" if found.complete else " It was stopped early: this is the best until then."
        worst, in_order = values
        st.success(
            f"Saved to the history as {plain(found.placement)}: worst link {plain(worst)}, in order "
            f"{plain(in_order)}.{stopped}",
            icon=":material/check:",
        )
    elif standing.state == STOPPED:
        st.info("The search was stopped before it had found anything.")
    elif isinstance(standing.error, AlmanacError):
        show_error(standing.error)
    elif standing.error is not None:
        st.exception(standing.error)
    with st.container(horizontal=True):
        if found is not None and found.placement != shown:
            st.button("Show it", type="primary", on_click=_show, args=(found.placement,), key="place show")
        st.button("Dismiss", on_click=searches.forget, args=(key,), key="place dismiss")


def _show(placement: str) -> None:
    st.query_params["placement"] = placement
    st.query_params.pop("beside", None)
