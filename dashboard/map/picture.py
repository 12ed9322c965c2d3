"""The data of a fabric map, and their encoding as bytes.

The bytes are ``FMAP``, the length of the header (uint32), the header (JSON, UTF-8), then arrays, each at a
multiple of 8 bytes. ``arrays`` in the header contains type, offset from the start, and length of each array:
unsigned integers of 1, 2 or 4 bytes, or float32. All numbers are little-endian.

A map of a fabric's links: pan, zoom, point at a link, select it; by mouse, touch or keyboard.

Script and style are files of this package and are sent with the page: nothing is loaded from another host.
Text from the database is only drawn or set as text, never as markup.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import streamlit as st

from dashboard.map.cells import Cells
from registry.model import Bools, Floats, Ints, Longs
from registry.units import Unit

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer


MAGIC = b"FMAP"
HEIGHT = 560
"""Default height of a map, in pixels."""
FILL = 0
"""Height of a map that fills the window."""


class Step(NamedTuple):
    """A class of links: its label in the legend, its text for one link, and its colours.

    Dashed classes are removed links, drawn beside the remaining ones.
    """

    label: str
    text: str
    light: str
    dark: str
    dashed: bool = False


class Item(NamedTuple):
    """A selected link (row of ``fabric.links``) or vertex; the other field is None."""

    link: int | None = None
    vertex: int | None = None


class Level(NamedTuple):
    """A height with a name at the left border, 0 to 1 upwards."""

    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """Positions of hosts and switches in a map of lines."""

    x: Floats
    y: Floats
    """float64[n]: Position, from 0 to 1; y grows upwards."""
    switch: Bools
    """bool[n]."""
    cables: Longs
    """int64[c]: Number of physical cables of each line."""
    levels: tuple[Level, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """A map of links."""

    drawing: str
    """Name that is equal for pictures with everything at the same places."""
    title: str
    legend: str
    """Title of the picture, and meaning of its colours."""
    steps: tuple[Step, ...]
    hot: int
    """First step that is drawn enlarged if cells are tiny."""
    unit: Unit | None
    """Unit of displayed values, or None to display the text of the step."""
    signed: bool = False
    """True if positive values get a sign."""
    names: tuple[str, ...]
    """Names of the drawn vertices."""
    vertices: Longs
    """int64[n]: Vertex of the fabric for each name."""
    ports: tuple[str, ...]
    """Texts of ports; the first is empty, for unknown ports."""
    a: Longs
    b: Longs
    """int64[c]: Ends of each cable, as indices of `names`."""
    a_port: Longs
    b_port: Longs
    """int64[c]: Ports of each cable, as indices of `ports`."""
    there: Floats
    back: Floats
    """float64[c]: Values from a to b and from b to a; NaN for none."""
    step: Ints
    """int32[c]."""
    rows: Longs
    """int64[c]: Row of ``fabric.links`` that selecting the cable means: its busier direction."""
    other_rows: Longs
    """int64[c]: Row of the other direction; -1 for none."""
    worst: int = -1
    """Highlighted cable; -1 for none."""
    worst_text: str = "worst link"
    shape: Cells | Points
    """Places of the cables: cells, in the order of their panels, or ends of lines."""
    height: int = HEIGHT
    """Height in pixels, or `FILL`."""
    mark: Mapping[str, str] = field(default_factory=dict)

    def place(self, item: Item | None) -> dict[str, int] | None:
        """Return the item as the script identifies it, or None if it is not drawn."""
        if item is None:
            return None
        if item.link is not None:
            found = np.flatnonzero((self.rows == item.link) | (self.other_rows == item.link))
            return {"cable": int(found[0])} if len(found) else None
        found = np.flatnonzero(self.vertices == item.vertex)
        return {"vertex": int(found[0])} if len(found) else None

    def item(self, cable: object, vertex: object) -> Item | None:
        """Return the item that the script reports as selected, or None if there is none or it is invalid."""
        if isinstance(cable, int) and 0 <= cable < len(self.rows):
            return Item(link=int(self.rows[cable]))
        if isinstance(vertex, int) and 0 <= vertex < len(self.vertices):
            return Item(vertex=int(self.vertices[vertex]))
        return None


def pack(picture: Picture, picked: Item | None = None, turn: int = 0, below: int = 0) -> bytes:
    """Return the picture as bytes.

    Args:
        picked: Selected item.
        turn: A number that changes when the page, and not the user, changes the selection.
        below: Pixels that are left free below a map whose height fills the window.
    """
    arrays = _arrays(picture)
    header = _header(picture)
    digest = hashlib.blake2b(json.dumps(header).encode(), digest_size=8)
    for values in arrays.values():
        digest.update(values.tobytes())
    header |= {"digest": digest.hexdigest(), "picked": picture.place(picked), "turn": turn, "below": below}
    return _joined(header, arrays)


def _header(picture: Picture) -> dict[str, Any]:
    """Return the header without the table of arrays."""
    unit = picture.unit
    return {
        "drawing": picture.drawing,
        "title": picture.title,
        "legend": picture.legend,
        "classes": [step._asdict() for step in picture.steps],
        "hot": picture.hot,
        "unit": None if unit is None else {"name": unit.name, "size": unit.size, "sign": picture.signed},
        "names": list(picture.names),
        "ports": list(picture.ports),
        "worst": picture.worst,
        "worst_text": picture.worst_text,
        "height": picture.height,
        "mark": dict(picture.mark),
        **(_cell_header(picture.shape) if isinstance(picture.shape, Cells) else _line_header(picture.shape)),
    }


def _cell_header(cells: Cells) -> dict[str, Any]:
    """Return the fields of the header for a map of cells."""
    counts = np.bincount(cells.panel, minlength=len(cells.panels))
    starts = np.cumsum(counts) - counts
    panels = [
        {**asdict(panel), "names": panel.row_names, "start": start, "count": count}
        for panel, start, count in zip(cells.panels, starts.tolist(), counts.tolist(), strict=True)
    ]
    for panel in panels:
        del panel["row_names"]
    return {"form": "matrix", "panels": panels}


def _line_header(points: Points) -> dict[str, Any]:
    return {"form": "lines", "levels": [level._asdict() for level in points.levels]}


def _arrays(picture: Picture) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays by name, integers in their smallest type."""
    whole: dict[str, np.ndarray[Any, Any]] = {
        "a": picture.a,
        "b": picture.b,
        "ap": picture.a_port,
        "bp": picture.b_port,
        "cls": picture.step,
    }
    real: dict[str, np.ndarray[Any, Any]] = {"there": picture.there, "back": picture.back}
    shape = picture.shape
    if isinstance(shape, Cells):
        whole |= {"row": shape.row, "column": shape.column}
    else:
        whole |= {"kind": shape.switch.astype(np.int64), "cables": shape.cables}
        real |= {"x": shape.x, "y": shape.y}
    narrow = {name: values.astype(_narrowest(values)) for name, values in whole.items()}
    return narrow | {name: values.astype("<f4") for name, values in real.items()}


def _narrowest(values: np.ndarray[Any, Any]) -> str:
    most = int(values.max(initial=0))
    return "<u1" if most < 1 << 8 else "<u2" if most < 1 << 16 else "<u4"


def _joined(header: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> bytes:
    """Return header and arrays as bytes; repeated until the offsets fit the header that contains them."""
    text, start = b"", 0
    while True:
        end = start
        table: dict[str, tuple[str, int, int]] = {}
        for name, values in arrays.items():
            table[name] = f"{values.dtype.kind}{values.dtype.itemsize}", end, len(values)
            end = _whole(end + values.nbytes)
        text = json.dumps(header | {"arrays": table}, ensure_ascii=False, separators=(",", ":")).encode()
        if start == _whole(8 + len(text)):
            break
        start = _whole(8 + len(text))
    blob = bytearray(end)
    blob[:8] = MAGIC + len(text).to_bytes(4, "little")
    blob[8 : 8 + len(text)] = text
    for name, values in arrays.items():
        start = table[name][1]
        blob[start : start + values.nbytes] = values.tobytes()
    return bytes(blob)


def _whole(size: int) -> int:
    return -(-size // 8) * 8


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

    Args:
        key: Key of the element.
        picked: Selected item, for example from the address.
        on_pick: Called with the item that the user selects, or None if the selection is cleared, before the
            rerun.
        below: Pixels that are left free below a map whose height fills the window.
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
