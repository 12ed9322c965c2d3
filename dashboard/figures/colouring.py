"""Colours of links on a map: by load, utilisation, capacity, difference or kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dashboard.components.fabric_map.picture import Step
from dashboard.figures.style import DARK, HEAT, LIGHT
from registry import units
from registry.model import Floats, Ints
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
    """Values of links and their colours.

    Attributes
    ----------
    title, legend : str
        Title of the map, and meaning of the colours.
    values : float64[m]
        Value of each row of ``fabric.links``, NaN if not known. A cable shows the larger of its two values.
    edges : float64[k + 1] or None
        Borders of the steps; a step includes its upper border only.
    steps : tuple of Step
        Steps without counts, which a figure adds: "not known", "no traffic" if `idle`, then one for each two
        borders.
    unit : Unit or None
        Unit of displayed values, or None if the values are kinds.
    idle : bool
        True if zero is a separate step.
    signed : bool
        True if positive values are shown with a sign.
    marked : str
        Label of the link with the largest value; empty for no label.
    """

    title: str
    legend: str
    values: Floats
    edges: Floats
    steps: tuple[Step, ...]
    unit: Unit | None
    idle: bool = False
    signed: bool = False
    marked: str = ""

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

    Parameters
    ----------
    worst : float, optional
        Top of the scale (default: the largest value); at least the largest value.
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

    Parameters
    ----------
    gone : collection of str
        Kinds of removed links.
    """
    edges: Floats = np.arange(len(names) + 1, dtype=np.float64) + 0.5
    pairs = zip(names, colours[LIGHT], colours[DARK], strict=True)
    steps = (_unknown(), *(Step(name, name, light, dark, name in gone) for name, light, dark in pairs))
    return Colouring(title=title, legend=legend, values=values, edges=edges, steps=steps, unit=None)


def errors(title: str, legend: str, excess: Floats) -> Colouring:
    """Colour links by the new errors of their ports.

    Parameters
    ----------
    excess : float64[m]
        Largest growth of the error counters of the sending port over its limit; NaN if not counted.
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

    Parameters
    ----------
    values : float64[m]
        Value of each of its links; NaN for removed links.
    text : str
        Name of removed links.
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
