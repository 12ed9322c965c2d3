"""The pages of the dashboard by name, with the current viewer and the background searches."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from dashboard.state.searches import Searches
from dashboard.state.viewer import Viewer
from mapping.checks.finding import ErrorLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What every page receives: the other pages, to link to them, the viewer and the searches.

    Attributes
    ----------
    viewer : Viewer
        What the current user may see of other users; every page that shows users or jobs must apply it.
    searches : Searches
        Searches that run in the background.
    limits : ErrorLimits
        Growth of error counters from which ports are reported.
    """

    overview: st.Page
    fabric: st.Page
    jobs: st.Page
    planner: st.Page
    trends: st.Page
    data: st.Page
    searches: Searches
    viewer: Viewer = field(default_factory=Viewer)
    limits: ErrorLimits = field(default_factory=ErrorLimits)
