"""The links of a fabric as a map: cells of matrices, or lines between hosts and switches.

Colours of links on a map: by load, utilisation, capacity, difference or kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dashboard.map.cells import Cells, tier_text
from dashboard.map.layout import TREE, Cables, Layout
from dashboard.map.layouts import RACKS, Collapsed, Drawing
from dashboard.map.picture import HEIGHT, Level, Picture, Points, Step
from dashboard.shared.cards import DARK, HEAT, LIGHT
from dashboard.shared.names import bundles, busier_direction
from registry import units
from registry.model import SWITCH, Bools, Fabric, Floats, Ints, Longs
from registry.model.fabric import port_names
from registry.units import Unit

STEPS = 5
"""Number of steps of a ramp, without those for unknown values and for no traffic."""
PERCENT = Unit(0.01, "%")
NEAR = 0.1
"""Share of the largest difference below which a difference counts as zero."""

CAPACITY = {
    LIGHT: ("#c6d3e3", "#9dbbdb", "#6f9fce", "#437fb9", "#1f5c99", "#0a3566"),
    DARK: ("#33455c", "#3b628c", "#4b82b8", "#6ca4d6", "#9cc7ec", "#d8ecfd"),
}
DIFFERENCE = {
    LIGHT: ("#2b6ca8", "#7fb0d6", "#dfe3e8", "#f0a15e", "#a5202b"),
    DARK: ("#4b9be0", "#31618c", "#454b57", "#b0562f", "#fbd24b"),
}
"""Colours for much less than estimated, less, equal, more, much more: the last stands out most."""
ERRORS = {LIGHT: ("#c9d6cd", "#e09a1f", "#b3262d"), DARK: ("#3c4b42", "#e0a33a", "#ff6b5e")}
"""Colours of ports without new errors, with errors within their limits, and beyond them."""
ERROR_STEPS = ("no new errors", "errors within the limits", "errors beyond the limits")
UNKNOWN = {LIGHT: "#f1f2f4", DARK: "#2b2f37"}
GONE = {LIGHT: "#4a5560", DARK: "#c3ccd6"}
MARK = {LIGHT: "#0077d6", DARK: "#3fd0ff"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Colouring:
    """Values of links and their colours."""

    title: str
    legend: str
    """Title of the map, and meaning of the colours."""
    values: Floats
    """float64[m]: Value of each row of ``fabric.links``, NaN if not known. A cable shows the larger of its
    two values."""
    edges: Floats
    """float64[k + 1]: Borders of the steps; a step includes its upper border only."""
    steps: tuple[Step, ...]
    """Steps without counts, which a figure adds: "not known", "no traffic" if `idle`, then one for each two
    borders."""
    unit: Unit | None
    """Unit of displayed values, or None if the values are kinds."""
    idle: bool = False
    """True if zero is a separate step."""
    signed: bool = False
    """True if positive values are shown with a sign."""
    marked: str = ""
    """Label of the link with the largest value; empty for no label."""

    def step_of(self, values: Floats) -> Ints:
        """Return int32[...]: the step of each value."""
        within = np.searchsorted(self.edges[1:-1], values, side="left") if len(self.edges) > 2 else 0
        step = 1 + int(self.idle) + np.broadcast_to(within, values.shape)
        if self.idle:
            step = np.where(values == 0, 1, step)
        found: Ints = np.where(np.isnan(values), 0, step).astype(np.int32)
        return found


def load(
    title: str, legend: str, seconds: Floats, *, worst: float | None = None, marked: str = "worst link"
) -> Colouring:
    """Colour links by the time of their bytes, in equal steps up to the worst, with a step for no traffic.

    Args:
        worst: Top of the scale (default: the largest value); at least the largest value.
    """
    top = float(np.nanmax(seconds, initial=0.0)) if worst is None else worst
    unit = units.unit_for([top], units.SECONDS)
    return _heat(title, legend, seconds, top, unit, marked if np.nanmax(seconds, initial=0.0) > 0 else "")


def share(title: str, legend: str, values: Floats) -> Colouring:
    """Colour links by utilisation, in equal steps up to the largest, with a step for no traffic."""
    top = float(np.nanmax(values, initial=0.0))
    return _heat(title, legend, values, top, PERCENT, "busiest link" if top > 0 else "")


def capacity(title: str, legend: str, values: Floats) -> Colouring:
    """Colour links by capacity: one step for each capacity, or equal steps if there are too many."""
    kinds = np.unique(values)
    unit = units.unit_for(kinds.tolist(), units.RATE)
    if len(kinds) <= STEPS + 1:
        edges = np.r_[0.0, kinds]
        texts = [f"{units.figures(value / unit.size)} {unit.name}" for value in kinds]
    else:
        edges = np.linspace(kinds[0], kinds[-1], STEPS + 1)
        texts = _ranges(edges, unit)
    colours = _spread(CAPACITY, len(texts))
    steps = (_unknown(), *(Step(text, text, *pair) for text, pair in zip(texts, colours, strict=True)))
    return Colouring(title=title, legend=legend, values=values, edges=edges, steps=steps, unit=unit)


def difference(
    title: str, legend: str, values: Floats, unit: Unit = PERCENT, *, marked: str = "most above"
) -> Colouring:
    """Colour links by a difference: far below zero, below, about zero, above, far above."""
    top = float(np.nanmax(np.abs(values), initial=0.0)) or unit.size
    edges = top * np.array([-1.0, -0.5, -NEAR, NEAR, 0.5, 1.0])
    edges[0] -= abs(edges[0])
    colours = zip(DIFFERENCE[LIGHT], DIFFERENCE[DARK], strict=True)
    borders = top * np.array([-1.0, -0.5, -NEAR, NEAR, 0.5, 1.0])
    texts = _ranges(borders, unit)
    steps = (_unknown(), *(Step(text, text, *pair) for text, pair in zip(texts, colours, strict=True)))
    return Colouring(
        title=title,
        legend=legend,
        values=values,
        edges=edges,
        steps=steps,
        unit=unit,
        signed=True,
        marked=marked if float(np.nanmax(values, initial=0.0)) > NEAR * top else "",
    )


def kinds(
    title: str,
    legend: str,
    values: Floats,
    names: Sequence[str],
    colours: Mapping[str, Sequence[str]],
    *,
    gone: Collection[str] = (),
) -> Colouring:
    """Colour links by kind: value k + 1 is name k; a cable shows the later kind of its two directions.

    Args:
        gone: Kinds of removed links.
    """
    edges: Floats = np.arange(len(names) + 1, dtype=np.float64) + 0.5
    pairs = zip(names, colours[LIGHT], colours[DARK], strict=True)
    steps = (_unknown(), *(Step(name, name, light, dark, name in gone) for name, light, dark in pairs))
    return Colouring(title=title, legend=legend, values=values, edges=edges, steps=steps, unit=None)


def errors(title: str, legend: str, excess: Floats) -> Colouring:
    """Colour links by the new errors of their ports.

    Args:
        excess (float64[m]): Largest growth of the error counters of the sending port over its limit; NaN if
            not counted.
    """
    pairs = zip(ERROR_STEPS, ERRORS[LIGHT], ERRORS[DARK], strict=True)
    steps = (_unknown(), *(Step(text, text, light, dark) for text, light, dark in pairs))
    worst = float(np.nanmax(excess, initial=0.0))
    return Colouring(
        title=title,
        legend=legend,
        values=excess,
        edges=np.array([-1.0, 0.0, 1.0, np.inf]),
        steps=steps,
        unit=None,
        marked="most errors" if worst > 0 else "",
    )


def with_gone(colours: Colouring, values: Floats, text: str) -> Colouring:
    """Return the same colours for a fabric that also contains removed links, drawn dashed.

    Args:
        values (float64[m]): Value of each of its links; NaN for removed links.
        text: Name of removed links.
    """
    gone = Step(text, text, GONE[LIGHT], GONE[DARK], dashed=True)
    return replace(colours, values=values, steps=(gone, *colours.steps[1:]))


def _heat(title: str, legend: str, values: Floats, top: float, unit: Unit, marked: str) -> Colouring:
    """Return colours of the heat ramp for values from 0 to `top`."""
    edges = np.linspace(0, top, STEPS + 1) if top > 0 else np.zeros(2)
    edges[-1] = np.inf
    colours = list(zip(HEAT[LIGHT], HEAT[DARK], strict=True))
    idle = Step("no traffic", "no traffic", *colours[0])
    texts = _ranges(np.linspace(0, top, STEPS + 1), unit) if top > 0 else []
    hot = [Step(text, text, *pair) for text, pair in zip(texts, colours[1:], strict=bool(texts))]
    return Colouring(
        title=title,
        legend=legend,
        values=values,
        edges=edges,
        steps=(_unknown(), idle, *hot),
        unit=unit,
        idle=True,
        marked=marked,
    )


def _ranges(edges: Floats, unit: Unit) -> list[str]:
    shown = [f"{edge / unit.size:.3g}".replace("-", "\N{MINUS SIGN}") for edge in edges]
    return [f"{low} to {high} {unit.name}" for low, high in pairwise(shown)]


def _unknown() -> Step:
    return Step("not known", "not known", UNKNOWN[LIGHT], UNKNOWN[DARK])


def _spread(ramps: Mapping[str, Sequence[str]], count: int) -> list[tuple[str, str]]:
    ramp = list(zip(ramps[LIGHT], ramps[DARK], strict=True))
    spots = np.linspace(0, len(ramp) - 1, count).round().astype(int) if count > 1 else [3]
    return [ramp[spot] for spot in spots]


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

    Args:
        lines: True to draw one line for all cables between two vertices, coloured as the busiest, and one for
            removed cables; False to draw a cell for each cable.
        only (bool[m]): Links to draw, with their vertices and the other direction (default: all).
        groups: Devices to draw as one, with lines for the cables between them.
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
