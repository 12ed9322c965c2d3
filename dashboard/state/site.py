"""The pages by name, so that one can lead to another, and who looks at them."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from dashboard.state.searches import Searches
from dashboard.state.viewer import Viewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The pages of the dashboard.

    Attributes
    ----------
    viewer : Viewer
        What the one who looks may see of users; every page that shows a user or lists jobs asks it.
    searches : Searches
        That run behind the pages.
    """

    overview: st.Page
    fabric: st.Page
    what_if: st.Page
    jobs: st.Page
    job: st.Page
    interference: st.Page
    history: st.Page
    runs: st.Page
    circuits: st.Page
    changes: st.Page
    ingest: st.Page
    searches: Searches
    viewer: Viewer = field(default_factory=Viewer)
