"""Cards: a border around one number, one picture or one list, under a heading."""

from __future__ import annotations

import altair as alt
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.widgets.messages import plain
from dashboard.widgets.states import State, badge


def card(title: str, *, help: str = "", height: int | None = None) -> DeltaGenerator:
    """Draw an empty card with a heading and return it, to draw inside.

    Parameters
    ----------
    title : str
        Heading, without markup.
    help : str
        Explanation, shown behind a question mark.
    height : int, optional
        Height in pixels; longer content scrolls (default: as high as the content).
    """
    drawn = st.container(border=True, height="content" if height is None else height, gap="small")
    drawn.header(plain(title), help=help or None, anchor=False)
    return drawn


def number(
    label: str,
    value: str,
    *,
    help: str = "",
    note: str = "",
    chart: alt.Chart | None = None,
    state: State | None = None,
) -> DeltaGenerator:
    """Draw a card with one number and return it.

    Parameters
    ----------
    label, value : str
        Title and number with its unit, without markup.
    help : str
        Explanation, shown behind a question mark.
    note : str
        Small text below the number; the text of the badge if a state is given.
    chart : Chart, optional
        Values over time, drawn beside the number.
    state : State, optional
        Drawn as a badge.
    """
    drawn = st.container(border=True, height="stretch", gap="xsmall")
    with drawn, st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.metric(plain(label), plain(value), help=help or None, width="content")
        if chart is not None:
            st.altair_chart(chart, width="content")
    with drawn:
        if state is not None:
            badge(state, note)
        elif note:
            st.caption(plain(note))
    return drawn


def unknown(label: str, command: str, *, help: str = "") -> DeltaGenerator:
    """Draw a grey card for something that was never read, with the command that reads it.

    Parameters
    ----------
    label : str
        What is not known, without markup.
    """
    drawn = st.container(border=True, height="stretch", gap="xsmall")
    with drawn:
        st.caption(plain(label), help=help or None)
        badge(State.UNKNOWN, "never read")
        st.code(command, language=None, wrap_lines=True)
    return drawn
