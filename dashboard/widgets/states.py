"""States of things (fine, to look at, to act on, unknown), always with colour, icon and word."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import streamlit as st

from dashboard.widgets.messages import plain

Colour = Literal["green", "orange", "red", "grey"]


class State(Enum):
    """How urgent something is."""

    OK = "OK"
    LOOK = "look"
    ACT = "act"
    UNKNOWN = "unknown"

    @property
    def colour(self) -> Colour:
        """Colour of badges and numbers."""
        return _LOOKS[self][0]

    @property
    def icon(self) -> str:
        """Icon, as Streamlit names it."""
        return f":material/{_LOOKS[self][1]}:"

    @property
    def word(self) -> str:
        """The state as a word, for a badge without other text."""
        return self.value


_LOOKS: dict[State, tuple[Colour, str]] = {
    State.OK: ("green", "check_circle"),
    State.LOOK: ("orange", "warning"),
    State.ACT: ("red", "error"),
    State.UNKNOWN: ("grey", "help"),
}


def badge(state: State, text: str = "", *, help: str = "") -> None:
    """Draw a state as a badge.

    Parameters
    ----------
    text : str
        Text without markup (default: the state's word).
    help : str
        Explanation, shown on hover.
    """
    st.badge(plain(text) or state.word, icon=state.icon, color=state.colour, help=help or None)


def badge_text(state: State, text: str = "") -> str:
    """Return a state as Markdown, for use inside other text."""
    return f":{state.colour}-badge[{state.icon} {plain(text) or state.word}]"
