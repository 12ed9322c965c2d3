"""Plot curves over a size. Needs matplotlib (the extra ``bench``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from scipy.sparse import csr_matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line of a plot; without `line` points alone."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    line: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A plot; `log` makes both axes logarithmic."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    log: bool = False


COLUMNS = 3
COLOURS = 10
"""That matplotlib goes through; lines beyond are dashed."""
NAMES = 2
"""Of a legend that all panels share, below each."""


def draw_matrices(matrices: Sequence[tuple[str, csr_matrix]], columns: int) -> bytes:
    """Return a PNG of the entries of square matrices, each with its title, in rows of `columns`."""
    from matplotlib.figure import Figure

    rows = -(-len(matrices) // columns)
    drawing = Figure(figsize=(3.6 * columns, 3.8 * rows), layout="constrained")
    grid = drawing.subplots(rows, columns, squeeze=False).ravel()
    for axes, (title, matrix) in zip(grid, matrices, strict=False):
        axes.spy(matrix, markersize=0.8, color="black")
        axes.set_title(title, fontsize="small")
        axes.tick_params(labelsize="x-small")
    found = BytesIO()
    drawing.savefig(found, format="png", dpi=80, metadata={"Software": None})
    return found.getvalue()


def draw(path: Path, panels: Sequence[Panel]) -> None:
    """Write panels in a grid as one PNG; the same panels give the same bytes."""
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    drawing = Figure(figsize=(5.2 * columns, 3.8 * rows), layout="constrained")
    grid = drawing.subplots(rows, columns, squeeze=False).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        for number, curve in enumerate(panel.curves):
            style = "none" if not curve.line else "-" if number < COLOURS else "--"
            axes.plot(curve.x, curve.y, marker=".", linestyle=style, label=curve.label)
        axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
        if panel.log:
            axes.set(xscale="log", yscale="log")
        elif all(value.is_integer() for curve in panel.curves for value in map(float, curve.x)):
            axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(visible=True, alpha=0.3)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    named = [tuple(curve.label for curve in panel.curves) for panel in panels]
    if len(set(named)) == 1 and len(panels) > 1:  # one legend for all, where it hides no line
        handles = grid[0].get_legend_handles_labels()
        drawing.legend(*handles, loc="outside lower center", ncols=NAMES * columns)
    else:
        for axes in grid[: len(panels)]:
            axes.legend(fontsize="small")
    drawing.savefig(path, dpi=110, metadata={"Software": None})
