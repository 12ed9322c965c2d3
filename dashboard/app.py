"""The dashboard: three pages on one registry; ``streamlit run`` starts it through a stub of the command."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard.messages import show_error
from dashboard.site import Site
from dashboard.views import fabric, history, job
from registry.errors import AlmanacError, DatabaseUnavailable
from registry.registry import Registry

ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="#0b6e8f" stroke="#0b6e8f">
<path d="M8 8 6 25M8 8 16 25M24 8 16 25M24 8 26 25M8 8 26 25M24 8 6 25" fill="none" stroke-width="1.5"/>
<path d="M5 5h6v6H5zM21 5h6v6h-6z"/><circle cx="6" cy="25" r="3"/><circle cx="16" cy="25" r="3"/>
<circle cx="26" cy="25" r="3"/></svg>"""
"""Ours, for the named icons come from another host."""

_TRIED_AGAIN = "tried again"


def run(connect: Callable[[], Registry]) -> None:
    """Draw the page that the browser asks for.

    Parameters
    ----------
    connect : callable
        Opens the registry; called once a process, and again where the database was lost.
    """
    st.set_page_config(page_title="Fabric Almanac", page_icon=ICON, layout="wide")

    def page(draw: Callable[[Registry, Site], None], title: str, icon: str, default: bool = False) -> st.Page:
        def body() -> None:
            _show(connect, draw, site)

        return st.Page(body, title=title, icon=icon, url_path=title.lower(), default=default)

    site = Site(
        fabric=page(fabric.draw, "Fabric", ":material/hub:", default=True),
        job=page(job.draw, "Job", ":material/view_in_ar:"),
        history=page(history.draw, "History", ":material/show_chart:"),
    )
    st.navigation([site.fabric, site.job, site.history], position="top").run()


def _show(connect: Callable[[], Registry], draw: Callable[[Registry, Site], None], site: Site) -> None:
    """Draw a page. Errors raised on purpose become messages; a database that is lost is asked for again."""
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
