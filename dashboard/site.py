"""The pages by name, so that one can lead to another."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The pages of the dashboard."""

    fabric: st.Page
    job: st.Page
    history: st.Page
