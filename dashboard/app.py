"""The dashboard application: connects, checks access, and draws the page that the browser requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import streamlit as st

from dashboard.state.searches import Searches
from dashboard.state.site import Site
from dashboard.state.viewer import EVERYTHING, NOBODY, Access, current, logged_in
from dashboard.views import (
    changes,
    circuits,
    fabric,
    history,
    ingest,
    interference,
    job,
    jobs,
    overview,
    simulated,
    what_if,
)
from dashboard.widgets.messages import show_error, show_login, show_nobody
from registry.errors import AlmanacError, DatabaseUnavailable
from registry.registry import Registry

ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="#0b6e8f" stroke="#0b6e8f">
<path d="M8 8 6 25M8 8 16 25M24 8 16 25M24 8 26 25M8 8 26 25M24 8 6 25" fill="none" stroke-width="1.5"/>
<path d="M5 5h6v6H5zM21 5h6v6h-6z"/><circle cx="6" cy="25" r="3"/><circle cx="16" cy="25" r="3"/>
<circle cx="26" cy="25" r="3"/></svg>"""
"""Icon of the browser tab, included here because Streamlit loads named icons from another host."""

TOP = "<style>.stMainBlockContainer { padding-top: 4.5rem }</style>"
"""Style that reduces Streamlit's space above the title."""

_TRIED_AGAIN = "tried again"

Draw = Callable[[Registry, Site], None]


class Entry(NamedTuple):
    """A page of the navigation: title, function that draws the page, and icon."""

    title: str
    draw: Draw
    icon: str

    def address(self, separator: str) -> str:
        """Return the title in lower case, its words joined by a character."""
        return self.title.lower().replace(" ", separator)


PAGES = (
    Entry("Overview", overview.draw, ":material/monitoring:"),
    Entry("Fabric", fabric.draw, ":material/hub:"),
    Entry("What if", what_if.draw, ":material/conversion_path:"),
    Entry("Jobs", jobs.draw, ":material/list:"),
    Entry("Job", job.draw, ":material/view_in_ar:"),
    Entry("Interference", interference.draw, ":material/compare_arrows:"),
    Entry("History", history.draw, ":material/show_chart:"),
    Entry("Runs", simulated.draw, ":material/play_circle:"),
    Entry("Circuits", circuits.draw, ":material/cable:"),
    Entry("Changes", changes.draw, ":material/difference:"),
    Entry("Ingest", ingest.draw, ":material/input:"),
)
"""All pages in the order of the navigation; the first is the start page."""


def run(connect: Callable[[], Registry], access: Callable[[], Access] = lambda: EVERYTHING) -> None:
    """Draw the page that the browser requests.

    Parameters
    ----------
    connect : callable
        Opens the registry; called once per process, and again after the database connection was lost.
    access : callable
        Returns who may see what; called for every page.
    """
    st.set_page_config(page_title="Fabric Almanac", page_icon=ICON, layout="wide")
    st.html(TOP)
    try:
        allowed = access()
        viewer, login = current(allowed), logged_in(allowed)
    except AlmanacError as error:
        show_error(error)
        return

    def page(entry: Entry) -> st.Page:
        def body() -> None:
            if viewer is None:
                show_nobody(login)
            else:
                _show(connect, entry.draw, site)
            if login is not None:
                show_login(login)

        path, first = entry.address("-"), entry is PAGES[0]
        return st.Page(body, title=entry.title, icon=entry.icon, url_path=path, default=first)

    pages = {entry.address("_"): page(entry) for entry in PAGES}
    site = Site(**pages, viewer=viewer or NOBODY, searches=_searches(connect))
    st.navigation(list(pages.values()), position="top").run()


def _show(connect: Callable[[], Registry], draw: Draw, site: Site) -> None:
    """Draw a page; show expected errors as messages, and reconnect once if the connection was lost."""
    try:
        draw(_registry(connect), site)
    except DatabaseUnavailable as error:
        _registry.clear()
        if not st.session_state.pop(_TRIED_AGAIN, False):
            st.session_state[_TRIED_AGAIN] = True
            st.rerun()
        show_error(error)
    except AlmanacError as error:
        show_error(error)
    else:
        st.session_state.pop(_TRIED_AGAIN, None)


@st.cache_resource(show_spinner="Opening the registry ...", on_release=Registry.close)
def _registry(_connect: Callable[[], Registry]) -> Registry:
    return _connect()


@st.cache_resource(show_spinner=False, on_release=Searches.close)
def _searches(_connect: Callable[[], Registry]) -> Searches:
    """Return the background searches of all sessions."""
    return Searches(_connect)
