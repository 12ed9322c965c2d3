"""The links of a fabric as a map: cells of matrices, or lines between hosts and switches."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from dashboard.components.fabric_map.picture import HEIGHT, Level, Picture, Points, Step
from dashboard.figures.colouring import MARK, Colouring
from dashboard.layouts.cells import Cells, tier_text
from dashboard.layouts.collapsed import RACKS, Collapsed
from dashboard.layouts.drawing import Drawing
from dashboard.layouts.model import TREE, Cables, Layout
from dashboard.tables.links import bundles, busier_direction
from registry.model import SWITCH, Bools, Fabric, Floats, Longs
from registry.model.fabric import port_names

LINES_LIMIT = 2000
"""Maximum number of cables drawn as lines; more are drawn as cells."""


def link_map(
    fabric: Fabric,
    drawing: Drawing,
    colouring: Colouring,
    *,
    lines: bool,
    only: Bools | None = None,
    groups: Collapsed | None = None,
    height: int = HEIGHT,
) -> Picture:
    """Return a map of the links of a fabric.

    Parameters
    ----------
    lines : bool
        True to draw one line for all cables between two vertices, coloured as the busiest, and one for
        removed cables; False to draw a cell for each cable.
    only : bool[m], optional
        Links to draw, with their vertices and the other direction (default: all).
    groups : Collapsed, optional
        Devices to draw as one, with lines for the cables between them.
    """
    if groups is not None:
        return _collapsed(fabric, drawing, colouring, groups, height)
    chosen = np.arange(len(drawing.cables)) if only is None else _touched(drawing.cables, only)
    if lines:
        part = _taken(drawing.cables, chosen)
        found = bundles(fabric, part, colouring.values, _gone(part, colouring))
        counts = found.cables
        part, chosen = _taken(part, found.cable), chosen[found.cable]
    else:
        chosen = chosen[np.argsort(drawing.cells.panel[chosen], kind="stable")]
        part, counts = _taken(drawing.cables, chosen), np.ones(len(chosen), np.int64)
    whole = _picture(fabric, part, colouring, height)
    if not lines:
        counted = f"{colouring.legend} · cables"
        return replace(
            whole, shape=_cells(drawing.cells, chosen), drawing=_name("cells", chosen), legend=counted
        )
    points = _points(fabric, drawing.layout, whole.vertices, counts)
    counted = f"{colouring.legend} · lines, one for all cables between two devices"
    return replace(whole, shape=points, drawing=_name("lines", np.r_[part.a, -1, part.b]), legend=counted)


def _collapsed(
    fabric: Fabric, drawing: Drawing, colouring: Colouring, groups: Collapsed, height: int
) -> Picture:
    """Return a map with a line for all cables between two groups, coloured as the busiest of them."""
    part = groups.cables(drawing.cables)
    found = bundles(fabric, part, colouring.values)
    part = _taken(part, found.cable)
    whole = _picture(fabric, part, colouring, height)
    placed = groups.layout(drawing.layout)
    points = _points(fabric, placed, whole.vertices, found.cables)
    tiers = np.unique(placed.tier[whole.vertices])
    levels = tuple(
        level._replace(
            text=groups.level_text(whole.vertices[placed.tier[whole.vertices] == tier], level.text)
        )
        for tier, level in zip(tiers.tolist(), points.levels, strict=bool(points.levels))
    )
    nothing = np.zeros(len(part), np.int64)
    return replace(
        whole,
        shape=replace(points, levels=levels),
        names=tuple(groups.names.get(v, fabric.names[v]) for v in whole.vertices.tolist()),
        a_port=nothing,
        b_port=nothing,
        worst_text=colouring.marked if groups.what == RACKS else f"busiest between {groups.what}",
        drawing=_name(groups.what, np.r_[part.a, -1, part.b]),
        legend=f"{colouring.legend} · lines, one for all cables between two {groups.what} or switches",
    )


def _picture(fabric: Fabric, part: Cables, colouring: Colouring, height: int) -> Picture:
    """Return the picture of these cables, without their places."""
    values, rows = busier_direction(part, colouring.values)
    padded = np.append(colouring.values, np.nan)
    vertices, ends = np.unique(np.r_[part.a, part.b], return_inverse=True)
    texts, source, target = port_names(fabric)
    forth = part.there >= 0
    a_port = np.where(forth, source[part.there], target[part.back])
    b_port = np.where(forth, target[part.there], source[part.back])
    step = colouring.step_of(values)
    steps, step = _counted(colouring, step)
    worst = int(np.argmax(np.nan_to_num(values, nan=-np.inf))) if colouring.marked and len(values) else -1
    return Picture(
        drawing="",
        title=colouring.title,
        legend=colouring.legend,
        steps=steps,
        hot=max(len(steps) - 2, 1),
        unit=colouring.unit,
        signed=colouring.signed,
        names=tuple(fabric.names[v] for v in vertices.tolist()),
        vertices=vertices,
        ports=texts,
        a=ends[: len(part)],
        b=ends[len(part) :],
        a_port=a_port,
        b_port=b_port,
        there=padded[part.there],
        back=padded[part.back],
        step=step,
        rows=rows,
        other_rows=np.where(rows == part.there, part.back, part.there),
        worst=worst,
        worst_text=colouring.marked,
        shape=Cells(panels=(), panel=step, row=step, column=step),
        height=height,
        mark=MARK,
    )


def _gone(part: Cables, colouring: Colouring) -> Bools:
    """Return bool[c]: True for removed cables."""
    dashed = np.array([step.dashed for step in colouring.steps], np.bool_)
    found: Bools = dashed[colouring.step_of(busier_direction(part, colouring.values)[0])]
    return found


def _counted(
    colouring: Colouring, step: np.ndarray[tuple[int], np.dtype[np.int32]]
) -> tuple[tuple[Step, ...], np.ndarray[tuple[int], np.dtype[np.int32]]]:
    """Return the steps with counts in their labels, without "not known" if every value is known."""
    counts = np.bincount(step, minlength=len(colouring.steps)).tolist()
    steps = tuple(
        known._replace(label=f"{known.label} · {count:,}")
        for known, count in zip(colouring.steps, counts, strict=True)
    )
    return (steps, step) if counts[0] else (steps[1:], step - np.int32(1))


def _cells(cells: Cells, chosen: Longs) -> Cells:
    """Return the cells of some cables, without empty panels."""
    panels, panel = np.unique(cells.panel[chosen], return_inverse=True)
    return Cells(
        panels=tuple(cells.panels[number] for number in panels.tolist()),
        panel=panel.astype(np.int32),
        row=cells.row[chosen],
        column=cells.column[chosen],
    )


def _points(fabric: Fabric, layout: Layout, vertices: Longs, cables: Longs) -> Points:
    """Return the places of the drawn vertices; those of a tree evenly spread in each tier."""
    tier, switch = layout.tier[vertices], fabric.kind[vertices] == SWITCH
    if layout.form != TREE:
        x, y = _stretched(layout.x[vertices]), _stretched(layout.y[vertices])
        return Points(x=x, y=y, switch=switch, cables=cables)
    x = np.empty(len(vertices))
    levels, place = np.unique(tier, return_inverse=True)
    named = []
    for number, level in enumerate(levels.tolist()):
        members = np.flatnonzero(tier == level)
        order = members[np.argsort(layout.x[vertices[members]], kind="stable")]
        x[order] = (np.arange(len(order)) + 0.5) / len(order)
        height = number / max(len(levels) - 1, 1)
        named.append(Level(height, tier_text(level, len(members))))
    y = place / max(len(levels) - 1, 1)
    return Points(x=x, y=y, switch=switch, cables=cables, levels=tuple(named))


def _stretched(values: Floats) -> Floats:
    low, high = float(values.min(initial=1.0)), float(values.max(initial=0.0))
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)


def _touched(cables: Cables, only: Bools) -> Longs:
    wanted = np.append(only, False)  # -1 is no link
    return np.flatnonzero(wanted[cables.there] | wanted[cables.back])


def _taken(cables: Cables, chosen: Longs) -> Cables:
    return Cables(
        a=cables.a[chosen], b=cables.b[chosen], there=cables.there[chosen], back=cables.back[chosen]
    )


def _name(form: str, places: Longs) -> str:
    """Return a name that is equal for maps with the same cables at the same places."""
    return form + hashlib.blake2b(places.tobytes(), digest_size=8).hexdigest()
