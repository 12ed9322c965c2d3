"""What the map of a fabric is given, and how it is written as bytes.

``FMAP``, the header's length (uint32), the header (JSON, UTF-8), then arrays, each at a multiple of 8 bytes.
The header's ``arrays`` tells kind, offset from the start and length of each: unsigned integers of 1, 2 or 4
bytes, or float32. All numbers are little-endian.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dashboard.layouts import Panel
from registry.model import Bools, Floats, Ints, Longs
from registry.units import Unit

MAGIC = b"FMAP"
HEIGHT = 560
"""Of a map, in pixels, unless told."""


class Step(NamedTuple):
    """A class of links: its entry in the legend, what it is called for one link, its colours.

    Links of a dashed class are gone: they are drawn beside those that are left.
    """

    label: str
    text: str
    light: str
    dark: str
    dashed: bool = False


class Item(NamedTuple):
    """What is picked: a link (row of ``fabric.links``) or a vertex; the other is None."""

    link: int | None = None
    vertex: int | None = None


class Level(NamedTuple):
    """A height that is named at the left border, 0 to 1 upwards."""

    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """Where machines are when lines are drawn between them.

    Attributes
    ----------
    x, y : float64[n]
        0 to 1; y grows upwards.
    switch : bool[n]
    cables : int64[c]
        Physical cables that each line stands for.
    levels : tuple of Level
    """

    x: Floats
    y: Floats
    switch: Bools
    cables: Longs
    levels: tuple[Level, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Which cell each cable is.

    Attributes
    ----------
    panels : tuple of Panel
    count : int64[p]
        Cables of each panel; cables are in the order of the panels.
    row, column : int32[c]
    """

    panels: tuple[Panel, ...]
    count: Longs
    row: Ints
    column: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """A map of links.

    Attributes
    ----------
    drawing : str
        The same for pictures in which all is at the same place.
    title, legend : str
        Of the picture, and of its colours.
    steps : tuple of Step
    hot : int
        First step that is drawn large where cells are tiny.
    unit : Unit or None
        That values are shown in; None: the step's text is shown.
    signed : bool
        Whether values above zero get a sign.
    names : tuple of str
        Of the vertices that are drawn.
    vertices : int64[n]
        Of the fabric, one each name.
    ports : tuple of str
        Texts of ports; the first is empty, for ports that are not known.
    a, b : int64[c]
        Ends of each cable, as places in `names`.
    a_port, b_port : int64[c]
        Places in `ports`.
    there, back : float64[c]
        Values from a to b and from b to a; NaN for none.
    step : int32[c]
    rows : int64[c]
        Row of ``fabric.links`` that a pick of the cable means: its hotter direction.
    other_rows : int64[c]
        Row of the other direction; -1 for none.
    worst : int
        Cable that is pointed out; -1 for none.
    worst_text : str
    shape : Grid or Points
    height : int
        In pixels.
    """

    drawing: str
    title: str
    legend: str
    steps: tuple[Step, ...]
    hot: int
    unit: Unit | None
    signed: bool = False
    names: tuple[str, ...]
    vertices: Longs
    ports: tuple[str, ...]
    a: Longs
    b: Longs
    a_port: Longs
    b_port: Longs
    there: Floats
    back: Floats
    step: Ints
    rows: Longs
    other_rows: Longs
    worst: int = -1
    worst_text: str = "worst link"
    shape: Grid | Points
    height: int = HEIGHT
    mark: Mapping[str, str] = field(default_factory=dict)

    def place(self, item: Item | None) -> dict[str, int] | None:
        """The item as the component knows it; None where it is not drawn."""
        if item is None:
            return None
        if item.link is not None:
            found = np.flatnonzero((self.rows == item.link) | (self.other_rows == item.link))
            return {"cable": int(found[0])} if len(found) else None
        found = np.flatnonzero(self.vertices == item.vertex)
        return {"vertex": int(found[0])} if len(found) else None

    def item(self, cable: object, vertex: object) -> Item | None:
        """What the component says is picked; None for nothing, and for what cannot be."""
        if isinstance(cable, int) and 0 <= cable < len(self.rows):
            return Item(link=int(self.rows[cable]))
        if isinstance(vertex, int) and 0 <= vertex < len(self.vertices):
            return Item(vertex=int(self.vertices[vertex]))
        return None


def pack(picture: Picture, picked: Item | None = None, turn: int = 0) -> bytes:
    """The picture in bytes.

    Parameters
    ----------
    picked : Item, optional
        What is shown as picked.
    turn : int
        A number that changes when the page, and not the person, picks.
    """
    arrays = _arrays(picture)
    header = _header(picture)
    digest = hashlib.blake2b(json.dumps(header).encode(), digest_size=8)
    for values in arrays.values():
        digest.update(values.tobytes())
    header |= {"digest": digest.hexdigest(), "picked": picture.place(picked), "turn": turn}
    return _joined(header, arrays)


def _header(picture: Picture) -> dict[str, Any]:
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
        **(_grid_header(picture.shape) if isinstance(picture.shape, Grid) else _points_header(picture.shape)),
    }


def _grid_header(grid: Grid) -> dict[str, Any]:
    starts = np.cumsum(grid.count) - grid.count
    panels = [
        {
            "title": panel.title,
            "section": panel.section,
            "rows": panel.rows,
            "columns": panel.columns,
            "names": list(panel.row_names),
            "heading": panel.heading,
            "block": panel.block,
            "start": start,
            "count": count,
        }
        for panel, start, count in zip(grid.panels, starts.tolist(), grid.count.tolist(), strict=True)
    ]
    return {"form": "matrix", "panels": panels}


def _points_header(points: Points) -> dict[str, Any]:
    return {"form": "lines", "levels": [level._asdict() for level in points.levels]}


def _arrays(picture: Picture) -> dict[str, np.ndarray[Any, Any]]:
    whole: dict[str, np.ndarray[Any, Any]] = {
        "a": picture.a,
        "b": picture.b,
        "ap": picture.a_port,
        "bp": picture.b_port,
        "cls": picture.step,
    }
    real: dict[str, np.ndarray[Any, Any]] = {"there": picture.there, "back": picture.back}
    shape = picture.shape
    if isinstance(shape, Grid):
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
    """Offsets in the header depend on its length: so they are told with room to spare."""
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
        at = table[name][1]
        blob[at : at + values.nbytes] = values.tobytes()
    return bytes(blob)


def _whole(size: int) -> int:
    return -(-size // 8) * 8
