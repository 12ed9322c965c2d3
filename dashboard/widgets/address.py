"""Change parameters of the page's address, in which the pages store their state."""

from __future__ import annotations

import streamlit as st


def set_address(**parameters: str | None) -> None:
    """Set parameters of the page's address; None removes one."""
    for name, value in parameters.items():
        if value is None:
            st.query_params.pop(name, None)
        else:
            st.query_params[name] = value
