"""Layouts by the shape of a fabric, and fabrics and placements as SVG.

Large fabrics with fewer devices: racks, pods or groups drawn as one, found from the graph.

Positions for any graph: switches spread by their links, hosts in a circle around their switch.

Positions for a torus or mesh: slices side by side.

Positions for a tree: hosts at the bottom, then leaf switches, and so on.

The drawing of a fabric: its layout, cables and cells, which depend on the wiring alone.

Fabrics and placements as SVG, for notebooks: no other library, no script, names escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html import escape

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra, laplacian
from scipy.sparse.linalg import LinearOperator, eigsh

from dashboard.map import layout as dragonfly
from dashboard.map.cells import Cells, cells, tier_text
from dashboard.map.layout import (
    FREE,
    GRID,
    GROUPS,
    TREE,
    Cables,
    Layout,
    cables,
    fitted,
    natural_order,
    surround,
    switch_of,
)
from mapping.cost.metrics import link_seconds
from mapping.cost.report import PlacementReport
from mapping.routing.tori import torus_coordinates
from mapping.traffic.job_loads import Neighbours
from registry.errors import InvalidValue, shorten
from registry.model import HOST, SWITCH, Bools, Fabric, Floats, HasFabric, Ints, Longs, Placement
from registry.model.views import content
from registry.units import counted

RACKS, PODS, PARTS = "racks", "pods", "groups"
"""What is drawn as one: hosts with the same switches (and above the leaves switches with the same ones below
them, if that is needed), all devices below the top switches, or a dragonfly's group."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Collapsed:
    """Devices that are drawn as one."""

    what: str
    """`RACKS`, `PODS` or `PARTS`."""
    member: Longs
    """int64[n]: First device of the group of each vertex, in natural order of names; itself if it is drawn
    alone."""
    names: dict[int, str]
    """Name of each group with several devices, by its first device."""
    has_hosts: Bools
    """bool[n]: True if the group of a vertex has hosts."""

    def devices(self, vertex: int) -> Longs:
        """Return all devices (int64) that are drawn as one with a device."""
        return np.flatnonzero(self.member == self.member[vertex])

    def layout(self, layout: Layout) -> Layout:
        """Return the layout with each group in the middle of its devices, on the highest of their tiers."""
        size = np.bincount(self.member, minlength=len(self.member))
        x, y = (
            np.bincount(self.member, weights=values, minlength=len(size)) / np.maximum(size, 1)
            for values in (layout.x, layout.y)
        )
        tier = np.zeros(len(size), np.int32)
        np.maximum.at(tier, self.member, layout.tier)
        return replace(layout, x=x, y=y, tier=tier)

    def level_text(self, vertices: Longs, text: str) -> str:
        """Return the text of a level with these groups; `text` if all of its devices are drawn alone."""
        if not self.names.keys() & set(vertices.tolist()):
            return text
        below = any(self.has_hosts[vertex] for vertex in vertices.tolist())
        what = self.what if below else "switch groups"
        return counted(len(vertices), what.removesuffix("s"), what)

    def cables(self, cables: Cables) -> Cables:
        """Return the cables between different groups, with the first devices of the groups as ends."""
        a, b = self.member[cables.a], self.member[cables.b]
        kept, swap = a != b, a > b
        ends = (np.where(swap, b, a), np.where(swap, a, b))
        rows = (np.where(swap, cables.back, cables.there), np.where(swap, cables.there, cables.back))
        return Cables(a=ends[0][kept], b=ends[1][kept], there=rows[0][kept], back=rows[1][kept])


def collapse(fabric: Fabric, layout: Layout, cables: Cables, most: int) -> Collapsed | None:
    """Return the groups in which a fabric has at most `most` lines; None if no kind of group achieves it.

    Args:
        most: Maximum number of pairs of groups with cables.
    """
    for found in _kinds(fabric, layout):
        part = found.cables(cables)
        lines = len(np.unique(part.a * len(fabric) + part.b))
        if 0 < lines <= most:
            return found
    return None


def _kinds(fabric: Fabric, layout: Layout) -> Iterator[Collapsed]:
    """Yield the possible groups, the smallest first."""
    if layout.form == GROUPS and layout.group is not None:
        yield _named(fabric, PARTS, np.where(layout.group >= 0, layout.group, -1).astype(np.int64))
    if layout.form != TREE:
        return
    rack = Neighbours.of(fabric).group.astype(np.int64)
    yield _named(fabric, RACKS, rack)
    yield _named(fabric, RACKS, _with_alike(fabric, rack, layout.tier))
    top = layout.tier == layout.tier.max()
    pod = _pods(fabric, top)
    yield _named(fabric, PODS, pod)
    yield _named(fabric, PODS, _with_same_lower(fabric, pod, top))


def _pods(fabric: Fabric, top: Bools) -> Longs:
    """Return int64[n]: the pod of each vertex, -1 for top switches: what is connected without those."""
    links = fabric.links
    inner = ~top[links.source] & ~top[links.target]
    ends = (links.source[inner], links.target[inner])
    graph = coo_array((np.ones(int(inner.sum())), ends), shape=(len(fabric), len(fabric)))
    part = np.asarray(connected_components(graph.tocsr(), directed=False)[1], np.int64)
    part[top] = -1
    return part


def _with_alike(fabric: Fabric, group: Longs, tier: Ints) -> Longs:
    """Return the groups, with switches above the leaves as one if they have the same ones below them."""
    whole = group
    for level in range(2, int(tier.max()) + 1):
        whole = _with_same_lower(fabric, whole, tier == level, tier == level - 1)
    return whole


def _with_same_lower(fabric: Fabric, group: Longs, upper: Bools, lower: Bools | None = None) -> Longs:
    """Return the groups with some switches that have the same groups below them as one group.

    Args:
        upper (bool[n]): These switches.
        lower (bool[n]): The devices below them (default: all others).
    """
    links = fabric.links
    below = ~upper if lower is None else lower
    down = upper[links.source] & below[links.target]
    # devices without a group stand for themselves
    number = np.where(group >= 0, group, len(fabric) + np.arange(len(fabric)))
    pairs = np.unique(np.c_[links.source[down], number[links.target[down]]], axis=0)
    first = np.searchsorted(pairs[:, 0], np.arange(len(fabric) + 1))
    known: dict[tuple[int, ...], int] = {}
    whole, free = group.copy(), int(group.max(initial=0)) + 1
    for vertex in np.flatnonzero(upper).tolist():
        if under := tuple(pairs[first[vertex] : first[vertex + 1], 1].tolist()):
            whole[vertex] = known.setdefault(under, free + len(known))
    return whole


def _named(fabric: Fabric, what: str, group: Longs) -> Collapsed:
    """Return groups by number (-1: drawn alone) with the first device of each as its name."""
    member = np.arange(len(fabric), dtype=np.int64)
    rank = natural_order(fabric.names)
    order = np.lexsort((rank, ~fabric.forwards, group))
    order = order[group[order] >= 0]
    starts = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0]) if len(order) else order
    names = {}
    for devices in np.split(order, starts[1:]) if len(order) else ():
        member[devices] = devices[0]
        if len(devices) > 1:
            names[int(devices[0])] = _name(fabric, devices)
    hosts = np.zeros(len(fabric), np.bool_)
    hosts[member[fabric.kind == HOST]] = True
    return Collapsed(what=what, member=member, names=names, has_hosts=hosts[member])


def _name(fabric: Fabric, devices: Longs) -> str:
    """Return a name for some devices: the first one, and how many further switches and hosts they are."""
    first, *others = devices.tolist()
    hosts = int((fabric.kind[others] == HOST).sum())
    counts = [tier_text(0, hosts)] if hosts else []
    if switches := len(others) - hosts:
        counts.insert(0, counted(switches, "switch", "switches"))
    return f"{fabric.names[first]} + {', '.join(counts)}"


RULE = "free-1"
"""Name of this layout algorithm, under which positions are stored."""
SPRING_ROUNDS = 200
SPRING_LIMIT = 1500
"""Maximum number of vertices for a spring layout, whose work is quadratic; above it eigenvectors are used."""
PETAL = 0.25
"""Distance of a host from its switch, in mean lengths of the lines between switches."""


def free(fabric: Fabric) -> tuple[Floats, Floats]:
    """Return float64[n], float64[n]: x and y from 0 to 1; deterministic."""
    core = np.flatnonzero(fabric.forwards)
    links, n = fabric.links, len(fabric)
    inner = fabric.network_link & (links.source < links.target)
    source, target = links.source[inner].astype(np.int64), links.target[inner].astype(np.int64)
    x, y = np.full(n, 0.5), np.full(n, 0.5)
    if len(core):
        number = np.cumsum(fabric.forwards) - 1
        spread = _springs if len(core) <= SPRING_LIMIT else _eigenvectors
        x[core], y[core] = spread(len(core), number[source], number[target]).T
    lengths = np.hypot(x[source] - x[target], y[source] - y[target])
    surround(fabric, x, y, PETAL * (float(lengths.mean()) if len(lengths) else 1.0))
    return fitted(x), fitted(y)


def _springs(count: int, source: Longs, target: Longs) -> Floats:
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    spot = nx.spring_layout(graph, seed=0, iterations=SPRING_ROUNDS)
    return np.asarray([spot[v] for v in range(count)])


def _eigenvectors(count: int, source: Longs, target: Longs) -> Floats:
    """Return the ranks in the two smoothest Laplacian eigenvectors, with a fixed sign."""
    graph = coo_array((np.ones(len(source)), (source, target)), shape=(count, count)).tocsr()
    whole = laplacian(graph + graph.T, normed=True)
    flipped = LinearOperator(whole.shape, matvec=lambda vector: 2 * vector - whole @ vector, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(count)
    _, waves = eigsh(flipped, k=3, which="LA", v0=start, tol=1e-4)
    spot = waves[:, 1::-1]
    far = np.abs(spot).argmax(axis=0)
    spread = spot * np.sign(spot[far, np.arange(2)])
    order = np.argsort(spread, axis=0, kind="stable")
    return np.argsort(order, axis=0, kind="stable").astype(np.float64)  # ranks spread crowded places


GAP = 1
"""Number of empty columns between two slices."""
CORNER = 0.28
"""Distance of a host from its switch, in steps of the grid."""


def slices(fabric: Fabric, spot: Ints) -> tuple[Floats, Floats]:
    """Return float64[n], float64[n]: x and y. Further axes are drawn along x, slice by slice.

    Args:
        spot (int32[n, d]): Coordinates of forwarding vertices; -1 for hosts, which are drawn around their
            switch.
    """
    place = np.zeros((len(fabric), max(2, spot.shape[1])))
    place[:, : spot.shape[1]] = spot[switch_of(fabric)]
    width = float(place[:, 0].max()) + 1 + GAP
    x = place[:, 0].copy()
    for axis in range(2, place.shape[1]):
        x += place[:, axis] * width
        width *= float(place[:, axis].max()) + 1
    y = place[:, 1].copy()
    surround(fabric, x, y, CORNER, np.pi / 4)
    return fitted(x), fitted(y)


LEAF_SHARE = 0.25
"""Minimum share of the median number of hosts for a leaf switch: spines may carry a few management hosts."""


def tiers(fabric: Fabric) -> Ints:
    """Return int32[n]: tier of each vertex.

    These are the fabric's own levels if it has them. Otherwise hosts are tier 0, switches with hosts tier 1,
    and other switches one tier above their lowest neighbour. If a cable then connects two switches of one
    tier, the fabric is no tree and all switches are in tier 1.
    """
    if fabric.level is not None:
        return fabric.level
    switch = fabric.kind == SWITCH
    flat: Ints = switch.astype(np.int32)
    leaf = _leaves(fabric, switch)
    if not leaf.any():
        return flat
    links = fabric.links
    between = switch[links.source] & switch[links.target]
    graph = coo_array(
        (np.ones(int(between.sum())), (links.source[between], links.target[between])),
        shape=(len(fabric), len(fabric)),
    )
    hops = dijkstra(graph.tocsr(), unweighted=True, indices=np.flatnonzero(leaf), min_only=True)
    tier: Ints = np.where(switch, 1 + np.where(np.isfinite(hops), hops, 0), 0).astype(np.int32)
    sideways = tier[links.source[between]] == tier[links.target[between]]
    return flat if bool(sideways.any()) else tier


def columns(fabric: Fabric, tier: Ints) -> Floats:
    """Return float64[n]: x of each vertex, each tier evenly spread, ordered by the vertices below."""
    rank = natural_order(fabric.names)
    x = rank.astype(np.float64)
    top = int(tier.max())
    sweep = [(0, 0), *((level, level - 1) for level in range(1, top + 1)), (0, 1)]
    for level, beside in sweep:
        members = np.flatnonzero(tier == level)
        middle = _middles(fabric, x, tier == beside)[members]
        order = members[np.lexsort((rank[members], middle))]
        x[order] = (np.arange(len(order)) + 0.5) / max(len(order), 1)
    return x


def _leaves(fabric: Fabric, switch: Bools) -> Bools:
    """Return bool[n]: switches with enough hosts to be leaf switches."""
    links = fabric.links
    down = switch[links.source] & ~switch[links.target]
    attached = np.bincount(links.source[down], minlength=len(fabric))
    if not attached.any():
        return attached > 0
    return attached > LEAF_SHARE * float(np.median(attached[attached > 0]))


def _middles(fabric: Fabric, x: Floats, beside: Bools) -> Floats:
    """Return the mean x of the neighbours in `beside`; a vertex without such neighbours keeps its x."""
    links, n = fabric.links, len(fabric)
    counts = beside[links.target]
    source = links.source[counts]
    degree = np.bincount(source, minlength=n)
    total = np.bincount(source, weights=x[links.target[counts]], minlength=n)
    return np.where(degree > 0, total / np.maximum(degree, 1), x)


def hosts_below(fabric: Fabric, tier: Ints, vertex: int) -> Ints:
    """Return int32: hosts below a vertex, ascending; for a host itself."""
    reached = np.zeros(len(fabric), bool)
    reached[vertex] = True
    source, target = fabric.links.source, fabric.links.target
    down = tier[target] < tier[source]
    for level in range(int(tier[vertex]), 0, -1):
        step = down & reached[source] & (tier[source] == level)
        reached[target[step]] = True
    found: Ints = np.flatnonzero(reached & (fabric.kind == HOST)).astype(np.int32)
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawing:
    """Positions of the vertices of a fabric, its cables, and the cell of each cable."""

    layout: Layout
    cables: Cables
    cells: Cells


Spread = Callable[[Fabric], tuple[Floats, Floats]]


def draw_fabric(fabric: Fabric, spread: Spread = free) -> Drawing:
    """Return the drawing of a fabric.

    Args:
        spread: Returns the positions of a free layout.
    """
    placed, pairs = layout(fabric, spread), cables(fabric)
    return Drawing(layout=placed, cables=pairs, cells=cells(fabric, placed, pairs))


def redrawn(drawing: Drawing, fabric: Fabric) -> Drawing:
    """Return the drawing of a fabric with the same vertices at the same places but other links.

    Raises:
        InvalidValue: The number of vertices differs.
    """
    if len(fabric) != len(drawing.layout.x):
        raise InvalidValue("fabric", f"has {len(fabric)} vertices, not {len(drawing.layout.x)}")
    pairs = cables(fabric)
    return Drawing(layout=drawing.layout, cables=pairs, cells=cells(fabric, drawing.layout, pairs))


def layout(fabric: Fabric, spread: Spread = free) -> Layout:
    """Return the layout that suits a fabric: tree in levels, torus in slices, dragonfly in groups, or free.

    Args:
        spread: Returns the positions of a free layout.
    """
    tier = tiers(fabric)
    top = max(int(tier.max()), 1)
    if int(tier.max()) > 1 and fabric.coordinates is None:
        return Layout(form=TREE, x=columns(fabric, tier), y=tier / top, tier=tier)
    spot = _torus(fabric)
    if spot is not None:
        x, y = slices(fabric, spot)
        return Layout(form=GRID, x=x, y=y, tier=tier, spot=spot, sizes=spot.max(axis=0) + 1)
    group = dragonfly.groups(fabric)
    if group is not None:
        x, y = dragonfly.circles(fabric, group)
        return Layout(form=GROUPS, x=x, y=y, tier=tier, group=group)
    x, y = spread(fabric)
    return Layout(form=FREE, x=x, y=y, tier=tier)


def _torus(fabric: Fabric) -> Ints | None:
    """Return int32[n, d]: coordinates in a torus or mesh of two or more axes, -1 for hosts; or None."""
    found = torus_coordinates(fabric)
    if found is not None and found.coordinates.shape[1] > 1 and int(found.sizes.max()) > 2:
        return found.coordinates
    if fabric.coordinates is None or fabric.coordinates.shape[1] < 2:
        return None
    lowest = fabric.coordinates[fabric.forwards].min(axis=0)
    given: Ints = np.where(fabric.forwards[:, None], fabric.coordinates - lowest, -1).astype(np.int32)
    return given


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
