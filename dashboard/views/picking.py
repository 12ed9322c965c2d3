"""The selected link or device of a fabric map, stored in the address; set by a click or a search."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.components.fabric_map import Item
from dashboard.widgets.address import set_address
from dashboard.widgets.messages import show_unknown
from mapping.traffic.names import find_device, find_links, link_text
from registry.errors import InvalidValue, UnknownName
from registry.model import HOST, Fabric

ITEMS = ("link", "switch", "host", "device")
"""Parameters of the address that select something: a link as ``DEVICE:PORT``, or a device."""
SHOW = "show"
"""Parameter of the address: what is shown of the selected item."""
PARAMETERS = (*ITEMS, "load")
"""Parameters that belong to what is selected; ``load`` is the job whose ranks are shown."""
_FAILED = "search failed"


def from_address(fabric: Fabric) -> Item | None:
    """Return the selected item of the address, or None.

    Raises
    ------
    UnknownName, InvalidValue
        The fabric has no such link or device.
    """
    for kind in ITEMS:
        text = st.query_params.get(kind)
        if text is None:
            continue
        if kind == "link":
            return Item(link=int(find_links(fabric, text)[0]))
        return Item(vertex=find_device(fabric, text, kind=kind).vertex)
    return None


def pick(fabric: Fabric, item: Item | None) -> None:
    """Store the selected item in the address."""
    link, vertex = (None, None) if item is None else item
    kind, text = "link", None if link is None else link_text(fabric, link)
    if st.query_params.get(SHOW) != "errors":  # errors are shown of one item after the other
        set_address(**{SHOW: None})
    if vertex is not None:
        kind, text = "host" if fabric.kind[vertex] == HOST else "switch", fabric.names[vertex]
    set_address(**dict.fromkeys(PARAMETERS) | {kind: text})


def pick_button(label: str, fabric: Fabric, item: Item | None, **settings: Any) -> None:
    """Draw a button that selects an item; further arguments are those of ``st.button``."""
    st.button(label, on_click=pick, args=(fabric, item), **settings)


def search(fabric: Fabric) -> None:
    """Draw a field that searches a host, a switch, an adapter, a GUID or a link."""
    st.text_input(
        "Find a host, a switch, a GUID or a link",
        key="find",
        placeholder="node0001, 0x0002c903000a1b2c, leaf3:17",
        on_change=_find,
        args=(fabric,),
    )


def show_failed_search() -> None:
    """Show that the last search found nothing, and the closest names."""
    error = st.session_state.get(_FAILED)
    if isinstance(error, UnknownName):
        show_unknown(error, "device")


def _find(fabric: Fabric) -> None:
    """Select what the search field names, a device first, then a link."""
    st.session_state.pop(_FAILED, None)
    text = str(st.session_state["find"]).strip()
    if not text:
        return
    try:
        pick(fabric, Item(vertex=find_device(fabric, text).vertex))
    except UnknownName as error:
        try:
            pick(fabric, Item(link=int(find_links(fabric, text)[0])))
        except (UnknownName, InvalidValue):
            st.session_state[_FAILED] = error
