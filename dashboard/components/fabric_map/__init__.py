"""A map of a fabric's links: pan, zoom, point at a link, select it; by mouse, touch or keyboard.

Input: a `Picture`, sent as bytes.
Output: the item that the user selected.

Script and style are files of this package and are sent with the page: nothing is loaded from another host.
Text from the database is only drawn or set as text, never as markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import streamlit as st

from dashboard.components.fabric_map.picture import Item, Picture, pack

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

__all__ = ["Item", "Picture", "fabric_map", "script"]

NAME = "fabric_map"
MODULES = ("scene", "view", "look", "matrix", "lines", "map")
"""The modules in order: each may import earlier ones."""
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


def fabric_map(
    picture: Picture,
    *,
    key: str,
    picked: Item | None = None,
    on_pick: Callable[[Item | None], None] | None = None,
    below: int = 0,
) -> None:
    """Draw a map.

    Parameters
    ----------
    key : str
        Key of the element.
    picked : Item, optional
        Selected item, for example from the address.
    on_pick : callable, optional
        Called with the item that the user selects, or None if the selection is cleared, before the rerun.
    below : int
        Pixels that are left free below a map whose height fills the window.
    """
    selection = st.session_state.setdefault(f"{key} selection", _Selection())
    selection.set_by_page(picture.drawing, picked, again=key not in st.session_state)

    def on_change() -> None:
        value = st.session_state[key].get("picked")
        if not isinstance(value, dict) or value.get("drawing") != picture.drawing:
            return
        item = picture.item(value.get("cable"), value.get("vertex"))
        selection.set_by_user(item)
        if on_pick is not None:
            on_pick(item)

    data = pack(picture, selection.item, selection.turn, below)
    _renderer()(key=key, data=data, on_picked_change=on_change)


def script() -> str:
    """Return the modules as one script, since Streamlit serves one script for each component."""
    folder = files(__package__)
    texts = [folder.joinpath(f"{name}.js").read_text("utf-8") for name in MODULES]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


class _Selection:
    """The selection last sent to the browser. A selection made in the browser need not be sent back."""

    def __init__(self) -> None:
        self.item: Item | None = None
        self.turn = 0
        self._now: Item | None = None
        self._drawing = ""

    def set_by_page(self, drawing: str, item: Item | None, *, again: bool) -> None:
        """Store the page's selection; `again` sends it again, for a component that is new on the page."""
        if again or item != self._now or drawing != self._drawing:
            self.item, self._now, self._drawing = item, item, drawing
            self.turn += 1

    def set_by_user(self, item: Item | None) -> None:
        """Store the user's selection."""
        self._now = item


@cache
def _renderer() -> ComponentRenderer:
    style = files(__package__).joinpath("style.css").read_text("utf-8")
    return st.components.v2.component(NAME, js=script(), css=style)
