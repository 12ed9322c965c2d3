"""Fabrics and placements as SVG, for notebooks: no other library, no script, names escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np

from dashboard.layouts.drawing import draw_fabric
from dashboard.layouts.model import Cables
from mapping.cost.metrics import link_seconds
from mapping.cost.report import PlacementReport
from registry.errors import shorten
from registry.model import HOST, Bools, Fabric, Floats, HasFabric, Longs, Placement
from registry.model.views import content

WIDTH, HEIGHT, MARGIN = 760, 380, 24
"""Size of a picture and of its margin in pixels."""
MOST_VERTICES = 1_500
"""Fabrics with more vertices are drawn without their hosts."""
MOST_NAMES = 40
"""Most vertices whose names are written beside them; all names are shown under the pointer."""
MOST_HOSTS = 256
"""Most hosts of a placement that are drawn."""
BOX, ROWS = 92, 3
"""Width of the box of a host in pixels, and lines of ranks in it."""
_STYLE = "font:10px sans-serif;max-width:100%;background:#fff"


def picture(value: Fabric | HasFabric | Placement | PlacementReport) -> str:
    """Return a fabric (or a snapshot), a placement or a report as SVG.

    A report shows its fabric: hosts with ranks filled, links from grey (idle) to red (the worst link). A
    placement alone, which has no fabric, is drawn as one box per host with its ranks.
    """
    if isinstance(value, Placement):
        return _boxes(value)
    if not isinstance(value, PlacementReport):
        return _fabric(content(value, Fabric, "value"), "", None, None)
    seconds = link_seconds(value.fabric, value.evaluation.link_bytes, value.case.costs.background)
    ranks = np.bincount(value.placement.host_of_rank, minlength=len(value.fabric))
    worst = f"worst link {value.evaluation.congestion_seconds:.4g} s"
    return _fabric(value.fabric, f"{value.placement.ranks} ranks, {worst}", seconds, ranks)


def _fabric(fabric: Fabric, caption: str, seconds: Floats | None, ranks: Longs | None) -> str:
    """Return a fabric with the time of each link and the number of ranks of each host, if they are given."""
    drawing = draw_fabric(fabric)
    x = MARGIN + drawing.layout.x * (WIDTH - 2 * MARGIN)
    y = HEIGHT - MARGIN - drawing.layout.y * (HEIGHT - 2 * MARGIN)
    host = fabric.kind == HOST
    shown = ~host if len(fabric) > MOST_VERTICES and not host.all() else np.ones(len(fabric), bool)
    hidden = int(len(fabric) - shown.sum())
    parts = [caption, repr(fabric)[len("Fabric(") : -1], f"{hidden} hosts are not drawn" if hidden else ""]
    body = [*_cables(fabric, drawing.cables, x, y, shown, seconds)]
    for vertex in np.flatnonzero(shown).tolist():
        count = 0 if ranks is None else int(ranks[vertex])
        fill = "#1f6feb" if count else ("#9db4d0" if host[vertex] else "#24292f")
        label = shorten(fabric.names[vertex], 60) + (f": {count} ranks" if count else "")
        mark = f'cx="{x[vertex]:.1f}" cy="{y[vertex]:.1f}" r="{3 if host[vertex] else 5}" fill="{fill}"'
        body.append(f"<circle {mark}><title>{_plain(label)}</title></circle>")
        if len(fabric) <= MOST_NAMES:
            body.append(_text(x[vertex] + 6, y[vertex] - 4, shorten(fabric.names[vertex], 20)))
    return _svg(HEIGHT, "; ".join(part for part in parts if part), body)


def _cables(
    fabric: Fabric, cables: Cables, x: Floats, y: Floats, shown: Bools, seconds: Floats | None
) -> Iterator[str]:
    """Yield a line per pair of neighbours; its colour is the larger time of its links."""
    worst = 0.0 if seconds is None else float(seconds.max(initial=0.0))
    heat: dict[tuple[int, int], float] = {}
    sides = (cables.a, cables.b, cables.there, cables.back)
    for a, b, *rows in zip(*(side.tolist() for side in sides), strict=True):
        if shown[a] and shown[b]:
            times = [0.0 if seconds is None or row < 0 else float(seconds[row]) for row in rows]
            heat[a, b] = max(heat.get((a, b), 0.0), *times)
    for (a, b), time in sorted(heat.items(), key=lambda item: item[1]):
        share = time / worst if worst > 0 else 0.0
        colour = f"rgb({160 + round(60 * share)},{round(160 * (1 - share))},{round(160 * (1 - share))})"
        line = f'x1="{x[a]:.1f}" y1="{y[a]:.1f}" x2="{x[b]:.1f}" y2="{y[b]:.1f}" stroke="{colour}"'
        names = " - ".join(shorten(fabric.names[end], 60) for end in (a, b))
        title = names if seconds is None else f"{names}: {time:.4g} s"
        yield f'<line {line} stroke-width="{1 + share:.1f}"><title>{_plain(title)}</title></line>'


def _boxes(placement: Placement) -> str:
    """Return one box per host with its ranks."""
    hosts = placement.allocation.hosts.tolist()
    columns = (WIDTH - MARGIN) // BOX
    height = 14 * (ROWS + 1)
    body = []
    for index, host in enumerate(hosts[:MOST_HOSTS]):
        left, top = MARGIN / 2 + index % columns * BOX, MARGIN + index // columns * (height + 6)
        ranks = np.flatnonzero(placement.host_of_rank == host).tolist()
        fill = "#ddf4ff" if ranks else "#f6f8fa"
        body.append(
            f'<rect x="{left}" y="{top}" width="{BOX - 6}" height="{height}" fill="{fill}" stroke="#8c959f">'
            f"<title>host {host}: ranks {', '.join(map(str, ranks)) or 'none'}</title></rect>"
        )
        body.append(_text(left + 4, top + 11, f"host {host}"))
        lines = [ranks[at : at + 4] for at in range(0, len(ranks), 4)]
        for row, line in enumerate(lines[:ROWS]):
            more = " ..." if row == ROWS - 1 and len(lines) > ROWS else ""
            body.append(_text(left + 4, top + 11 + 13 * (row + 1), " ".join(map(str, line)) + more))
    left_out = f"; {len(hosts) - MOST_HOSTS} hosts are not drawn" if len(hosts) > MOST_HOSTS else ""
    rows = -(-min(len(hosts), MOST_HOSTS) // columns)
    caption = f"{placement.ranks} ranks on {len(hosts)} hosts by {placement.strategy}{left_out}"
    return _svg(MARGIN + rows * (height + 6), caption, body)


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}">{_plain(text)}</text>'


def _plain(text: str) -> str:
    """Return a text as XML that neither markup nor control characters can leave."""
    return escape("".join(letter if letter.isprintable() else "?" for letter in text))


def _svg(height: float, caption: str, body: list[str]) -> str:
    """Return the picture with a caption above it."""
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" style="{_STYLE}">'
    return "".join([head, f"<title>{_plain(caption)}</title>", *body, _text(4, 12, caption), "</svg>"])
