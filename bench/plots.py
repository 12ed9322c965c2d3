"""Plots of benchmarks: lines over a size. Needs matplotlib (the extra ``bench``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line of a plot."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A plot; `log` makes both axes logarithmic."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    log: bool = False


COLUMNS = 3


def draw(path: Path, panels: Sequence[Panel]) -> None:
    """Write panels beside and below each other as one PNG; the same panels give the same bytes."""
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    drawing = Figure(figsize=(5.2 * columns, 3.8 * rows), layout="constrained")
    grid = drawing.subplots(rows, columns, squeeze=False).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        for curve in panel.curves:
            axes.plot(curve.x, curve.y, marker=".", label=curve.label)
        axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
        if panel.log:
            axes.set(xscale="log", yscale="log")
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize="small")
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    drawing.savefig(path, dpi=110, metadata={"Software": None})
