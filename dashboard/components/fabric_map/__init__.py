"""A map of a fabric's links on a canvas: pan, zoom, point at a link, pick it; by mouse, touch or keyboard.

Input: a `Picture`, sent as bytes.
Output: the item that the user picked.

The script and the style are files of this package, sent with the page: nothing comes from another host, and
text from the database is only ever drawn or set as text.
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
"""Each may import what stands before it."""
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


def fabric_map(
    picture: Picture,
    *,
    key: str,
    picked: Item | None = None,
    on_pick: Callable[[Item | None], None] | None = None,
) -> None:
    """Draw a map.

    Parameters
    ----------
    key : str
        Of the element.
    picked : Item, optional
        What is picked, by the address for instance.
    on_pick : callable, optional
        Told what a person picks, or None where that is cleared, before the page runs again.
    """
    memory = st.session_state.setdefault(f"{key} told", _Told())
    memory.tell(picture.drawing, picked, again=key not in st.session_state)

    def heard() -> None:
        value = st.session_state[key].get("picked")
        if not isinstance(value, dict) or value.get("drawing") != picture.drawing:
            return
        item = picture.item(value.get("cable"), value.get("vertex"))
        memory.hear(item)
        if on_pick is not None:
            on_pick(item)

    data = pack(picture, memory.item, memory.turn)
    _renderer()(key=key, data=data, on_picked_change=heard)


def script() -> str:
    """The component's modules as one, for a page that has one address for each component only."""
    folder = files(__package__)
    texts = [folder.joinpath(f"{name}.js").read_text("utf-8") for name in MODULES]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


class _Told:
    """What the component was last told is picked. A person's own picks it knows: they need no new bytes."""

    def __init__(self) -> None:
        self.item: Item | None = None
        self.turn = 0
        self._now: Item | None = None
        self._drawing = ""

    def tell(self, drawing: str, item: Item | None, *, again: bool) -> None:
        """The page's pick; again where the component was not on the page before."""
        if again or item != self._now or drawing != self._drawing:
            self.item, self._now, self._drawing = item, item, drawing
            self.turn += 1

    def hear(self, item: Item | None) -> None:
        """The person's pick."""
        self._now = item


@cache
def _renderer() -> ComponentRenderer:
    style = files(__package__).joinpath("style.css").read_text("utf-8")
    return st.components.v2.component(NAME, js=script(), css=style)
