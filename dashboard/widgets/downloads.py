"""Buttons that give a file."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st


def download(
    label: str, content: str | Callable[[], str], name: str, *, key: str, mime: str = "text/csv"
) -> None:
    """A button that gives a text as a file; the page is not drawn again for it.

    Parameters
    ----------
    content : str or callable
        The text, or what makes it when it is asked for.
    name : str
        Of the file.
    """
    st.download_button(
        label,
        content,
        file_name=name,
        mime=mime,
        on_click="ignore",
        icon=":material/download:",
        key=key,
    )
