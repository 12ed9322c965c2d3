"""Part of the job page: a background search for a better placement, with progress, stop and result."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

import streamlit as st

from dashboard.pages.job_data import JobView
from dashboard.shared import cards as outside
from dashboard.shared.bar import refresh_seconds
from dashboard.shared.cards import plain, set_address, show_error
from dashboard.shared.door import cached_job
from dashboard.shared.searches import STOPPED, STOPPING, WAITING, Searches, SearchStatus
from mapping.cost.report import PlacementReport
from mapping.deadline import cores
from mapping.placement.search import SearchOptions
from mapping.questions.live import with_running_jobs
from mapping.questions.place import PlacementRequest, place
from registry import units
from registry.errors import AlmanacError
from registry.progress import Progress
from registry.registry import Registry
from registry.store.placement_rows import PRESENT
from registry.store.placements import OpenPlacement

OBJECTIVES = {"congestion": ("the worst link", units.SECONDS), "hop-bytes": ("hop-bytes", units.BYTES)}
"""Objectives of a search: displayed text and unit."""
SECONDS, MOST_SECONDS = 10, 600
EVERY = 1.0
"""Seconds between two updates of a running search."""
_DIALOG, _STATUS = "search dialog", "search status"


class SearchSubject(NamedTuple):
    """What a search places."""

    key: str
    """Name of the search: the job or the placement."""
    request: PlacementRequest
    """Profile, and job or hosts."""
    present: str | None
    """Id of the present placement, from which a limited number of ranks may move."""
    ranks: int
    runs: bool
    """True if the job is running now."""


def subject_of(view: JobView) -> SearchSubject | None:
    """Return what a new search would place, or None if the profile or the hosts are not known."""
    if view.file is None:
        return _subject_without_job(view.opened)
    stored = view.file.stored
    profile = stored.profile or (None if view.opened is None else view.opened.stored.profile)
    if profile is None or not stored.job.hosts:
        return None
    now = datetime.now(UTC)
    started, ended = stored.job.started_at, stored.job.ended_at
    present = next((info.id for info in view.file.placements if info.role == PRESENT), None)
    return SearchSubject(
        key=stored.id,
        request=PlacementRequest(profile=profile, job=stored.job.id, cluster=stored.cluster),
        present=present,
        ranks=stored.job.ranks or sum(stored.job.slots),
        runs=started is not None and started <= now and (ended is None or ended > now),
    )


def _subject_without_job(opened: OpenPlacement | None) -> SearchSubject | None:
    """Return the hosts and the profile of a placement that belongs to no job, or None without a profile."""
    if opened is None or opened.stored.profile is None:
        return None
    allocation, names = opened.stored.placement.allocation, opened.snapshot.fabric.names
    return SearchSubject(
        key=opened.stored.id,
        request=PlacementRequest(
            profile=opened.stored.profile,
            cluster=opened.stored.cluster,
            hosts=tuple(names[v] for v in allocation.hosts.tolist()),
            slots=tuple(allocation.slots.tolist()),
        ),
        present=opened.stored.id,
        ranks=opened.stored.placement.ranks,
        runs=False,
    )


def draw_button(searches: Searches, subject: SearchSubject) -> None:
    """Draw the button that opens the dialog of a search."""
    status = searches.status(subject.key)
    searching = status is not None and not status.ended
    if st.button("Find better placement", type="primary", disabled=searching, key="find"):
        outside.add(_DIALOG, partial(_dialog, searches, subject))


def follow(searches: Searches, key: str) -> None:
    """Let the page show the progress or the result of the last search, if there was one."""
    if searches.status(key) is not None and not outside.has(_STATUS):
        outside.add(_STATUS, partial(_draw_status, searches, key))


def _draw_status(searches: Searches, key: str) -> None:
    """Draw the progress or the result of the last search, if it is not dismissed."""
    status = searches.status(key)
    if status is None:
        outside.remove(_STATUS)
    else:
        every = refresh_seconds() if status.ended else EVERY
        st.fragment(_status, run_every=every)(searches, key, ended=status.ended)


@st.dialog("Find a better placement", on_dismiss=partial(outside.remove, _DIALOG))
def _dialog(searches: Searches, subject: SearchSubject) -> None:
    """Draw the form with the parameters of the search and its start button."""
    with st.form("place again", border=False):
        seconds = st.number_input(
            "Seconds", 1, MOST_SECONDS, SECONDS, key="place seconds", help="Time limit of the search."
        )
        objective = st.selectbox(
            "Minimise", list(OBJECTIVES), format_func=lambda name: OBJECTIVES[name][0], key="place objective"
        )
        moves = None
        if subject.present is not None:
            moves = st.number_input(
                "Ranks that may move",
                1,
                max(subject.ranks, 1),
                None,
                placeholder="all",
                key="place moves",
                help="Ranks that may leave their present hosts. All: a new placement from scratch.",
            )
        others = subject.runs and st.checkbox(
            "include the traffic of other running jobs", value=True, key="place others"
        )
        begin = st.form_submit_button("Find placement", type="primary", icon=":material/search:", key="place")
    st.caption(
        "The search uses the fabric as it is now. It continues if you leave or reload this page. "
        "Its result is saved to the history."
    )
    if begin:
        outside.remove(_DIALOG)
        _begin(searches, subject, float(seconds), str(objective), moves, others=bool(others))
        st.rerun()


def _begin(
    searches: Searches,
    subject: SearchSubject,
    seconds: float,
    objective: str,
    moves: int | None,
    *,
    others: bool,
) -> None:
    """Start a search with these parameters in the background."""
    workers = max(cores() - 1, 1)  # one core is left to the pages
    options = SearchOptions(seconds=seconds, objective=objective, moves=moves, workers=workers)
    keep = None if moves is None else subject.present
    request = replace(subject.request, options=options, keep=keep)

    def work(registry: Registry, progress: Progress) -> PlacementReport:
        found = place(registry, with_running_jobs(registry, request) if others else request, progress)
        cached_job.clear()  # so that the page lists the placement at once
        return found

    searches.start(subject.key, work, base=OBJECTIVES[objective][1])


def _status(searches: Searches, key: str, *, ended: bool) -> None:
    """Draw the progress or the result of a search; draw the whole page again when it has begun or ended."""
    status = searches.status(key)
    if status is None or status.ended != ended:
        st.rerun()
    if ended:
        _result(searches, key, status)
    else:
        _progress(searches, key, status)


def _progress(searches: Searches, key: str, status: SearchStatus) -> None:
    """Draw the progress of a running search, and the button that stops it."""
    st.progress(status.share, plain(progress_text(status)))
    stopping = status.state == STOPPING
    st.button(
        "Stopping and saving the best so far ..." if stopping else "Stop and save the best so far",
        disabled=stopping,
        on_click=searches.stop,
        args=(key,),
        icon=":material/stop_circle:",
        key="place stop",
    )


def progress_text(status: SearchStatus) -> str:
    """Return the progress of a search as one line."""
    if status.state == WAITING:
        return "waiting until another search ends"
    parts = [f"{status.done:.0f} of {status.total:.0f} s"] if status.total else []
    if status.best is not None:
        parts.append(f"best so far {units.short(status.best, status.base)}")
    return " · ".join([*parts, status.phase or "reading the fabric and the profile"])


def _result(searches: Searches, key: str, status: SearchStatus) -> None:
    """Draw the result or error of the last search."""
    result = status.result
    if result is not None:
        values = (
            units.short(value, units.SECONDS)
            for value in (result.congestion_seconds, result.in_order_seconds)
        )
        stopped = "" if result.complete else " The search was stopped early: this is its best placement."
        worst, in_order = values
        costs = f"worst link {plain(worst)}, ranks in order {plain(in_order)}.{stopped}"
        if result.unsaved:
            st.warning(f"Not saved, since {plain(result.unsaved)}: {costs}", icon=":material/warning:")
        else:
            saved = f"Saved to the history as {plain(result.placement)}: {costs}"
            st.success(saved, icon=":material/check:")
    elif status.state == STOPPED:
        st.info("The search was stopped before it had found a placement.")
    elif isinstance(status.error, AlmanacError):
        show_error(status.error)
    elif status.error is not None:
        st.exception(status.error)
    with st.container(horizontal=True):
        found = "" if result is None else result.placement
        shown = found in ("", st.query_params.get("placement"))
        if not shown and st.button("Show it", type="primary", key="place show"):
            set_address(placement=found, beside=None)
            st.rerun()
        st.button("Dismiss", on_click=searches.forget, args=(key,), key="place dismiss")
