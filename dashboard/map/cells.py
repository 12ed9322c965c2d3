"""A fabric's cables as cells of matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dashboard.map.layout import GRID, GROUPS, TREE, Cables, Layout, natural_order, repeat_number, switch_of
from registry.model import Fabric, Ints, Longs

DENSE = 0.5
"""Minimum share of cells with cables in a matrix with a column for each lower device."""
SHARED_WIDTH = 64
"""Cells per row if the rows have no meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A matrix of cells."""

    title: str
    section: int
    """Number of its section: panels of a section are side by side, sections one above the other."""
    rows: int
    columns: int
    row_names: tuple[str, ...] = ()
    """Device of each row; empty if the rows have no meaning."""
    block: int = 0
    """Number of columns that belong together, such as the cables of one switch; 0 for none."""
    heading: str = ""
    """Heading of the section; set in its first panel only."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """The cell of each cable of a fabric."""

    panels: tuple[Panel, ...]
    panel: Ints
    row: Ints
    column: Ints
    """int32[c]: Place of each cable of `dashboard.map.layout.cables`."""


class _Sheet:
    """Panels under construction, and the place of each cable."""

    def __init__(self, cables: int) -> None:
        self.panels: list[Panel] = []
        self.place = np.zeros((3, cables), np.int32)

    def add(
        self,
        chosen: Longs,
        title: str,
        section: int,
        row: Longs,
        column: Longs,
        *,
        row_names: tuple[str, ...] = (),
        block: int = 0,
        heading: str = "",
    ) -> None:
        """Add a panel with the chosen cables at these rows and columns; nothing without cables."""
        if not len(chosen):
            return
        self.place[:, chosen] = np.full(len(chosen), len(self.panels)), row, column
        rows, columns = int(row.max()) + 1, int(column.max()) + 1
        self.panels.append(
            Panel(
                title=title,
                section=section,
                rows=rows,
                columns=columns,
                row_names=row_names[:rows],
                block=block,
                heading=heading,
            )
        )


def cells(fabric: Fabric, layout: Layout, cables: Cables) -> Cells:
    """Return a cell for each cable, arranged by the form of the layout."""
    sheet = _Sheet(len(cables))
    forms: dict[str, Callable[[Fabric, Layout, Cables, _Sheet], None]] = {
        TREE: _levels,
        GRID: _slices,
        GROUPS: _groups,
    }
    forms.get(layout.form, _switch_by_switch)(fabric, layout, cables, sheet)
    panel, row, column = sheet.place
    return Cells(panels=tuple(sheet.panels), panel=panel, row=row, column=column)


def tier_name(tier: int, tree: bool) -> str:
    """Return the name of the devices of a tier."""
    if tier == 0:
        return "hosts"
    if not tree:
        return "switches"
    return "leaf switches" if tier == 1 else f"tier-{tier} switches"


def tier_text(tier: int, count: int) -> str:
    """Return the number and name of the devices of a tree's tier as text."""
    name = tier_name(tier, tree=True)
    if count == 1:
        name = name.removesuffix("es") if tier else name.removesuffix("s")
    return f"{count:,} {name}"


def _levels(fabric: Fabric, layout: Layout, cables: Cables, sheet: _Sheet) -> None:
    """Add a panel for each two tiers, highest first; columns are the lower devices in the layout's order."""
    tier, spot = layout.tier, _spot(fabric, layout)
    top, low = _ordered(cables, tier)
    pairs = np.unique(np.c_[tier[top], tier[low]], axis=0)[::-1]
    for section, (upper, lower) in enumerate(pairs.tolist()):
        chosen = np.flatnonzero((tier[top] == upper) & (tier[low] == lower))
        above, below = spot[top[chosen]], spot[low[chosen]]
        chosen = chosen[np.lexsort((chosen, below, above))]
        title = f"{tier_name(upper, True)} to {tier_name(lower, True)} · {len(chosen):,} cables"
        devices, row = np.unique(spot[top[chosen]], return_inverse=True)
        column = _aligned(row, spot[low[chosen]])
        name = np.empty(len(fabric), np.int64)
        name[spot] = np.arange(len(fabric))
        if len(devices) > int(column.max()) + 1:
            sheet.add(chosen, title, section, column, row)
        else:
            names = tuple(fabric.names[v] for v in name[devices])
            sheet.add(chosen, title, section, row, column, row_names=names)


def _slices(fabric: Fabric, layout: Layout, cables: Cables, sheet: _Sheet) -> None:
    """Add a panel for each slice; cells of a node are its host cables and its next link along each axis."""
    assert layout.spot is not None
    assert layout.sizes is not None
    spot, sizes = layout.spot[switch_of(fabric)], layout.sizes
    a, b = cables.a, cables.b
    step = (spot[b] - spot[a]) % sizes
    axis = np.where((step != 0).any(axis=1), (step != 0).argmax(axis=1), len(sizes))
    length = np.take_along_axis(np.c_[step, np.zeros(len(step), np.int32)], axis[:, None], axis=1)[:, 0]
    # owner: the end whose next node along the axis is the other end
    owner = np.where(length == 1, switch_of(fabric)[a], switch_of(fabric)[b])
    index = repeat_number(owner, axis)
    most = np.zeros(len(sizes) + 1, np.int64)
    np.maximum.at(most, axis, index + 1)
    slot = (np.cumsum(most) - most)[axis] + index
    width = int(most.sum())
    place = np.c_[layout.spot[owner], np.zeros((len(owner), 2), np.int32)]
    layer = np.zeros(len(owner), np.int64)
    for other in range(len(sizes) - 1, 1, -1):
        layer = layer * int(sizes[other]) + place[:, other]
    layers = np.unique(layer).tolist()
    nodes = "a block for each node: cables of its hosts, then its next cable along each axis"
    for number in layers:
        chosen = np.flatnonzero(layer == number)
        column = place[chosen, 0] * width + slot[chosen]
        title, heading = _slice_title(number, sizes), nodes if number == layers[0] else ""
        sheet.add(chosen, title, 0, place[chosen, 1], column, block=width, heading=heading)


def _groups(fabric: Fabric, layout: Layout, cables: Cables, sheet: _Sheet) -> None:
    """Add a panel for cables between groups, then a panel for each group with a row for each switch."""
    assert layout.group is not None
    spot, group = _spot(fabric, layout), layout.group
    low, high = np.minimum(group[cables.a], group[cables.b]), np.maximum(group[cables.a], group[cables.b])
    between = np.flatnonzero((low != high) & (low >= 0))
    twin = repeat_number(low[between], high[between])
    column = high[between] * (int(twin.max(initial=0)) + 1) + twin
    count = len(np.unique(group[group >= 0]))
    title = f"between the {count:,} groups, a row and a column for each · {len(between):,} cables"
    names = tuple(f"group {number}" for number in range(count))
    sheet.add(between, title, 0, low[between].astype(np.int64), column, row_names=names)
    switch = switch_of(fabric)
    for number in range(count):
        chosen = np.flatnonzero((low == number) & (high == number))
        a, b = switch[cables.a[chosen]], switch[cables.b[chosen]]
        rank = np.unique(spot[np.r_[a, b]], return_inverse=True)[1]
        one, other = rank[: len(a)], rank[len(a) :]
        size = int(rank.max(initial=0)) + 1
        forth = (other - one) % size <= (one - other) % size
        owner, step = np.where(forth, one, other), np.where(forth, other - one, one - other) % size
        order = np.lexsort((chosen, step, owner))
        chosen, owner = chosen[order], owner[order]
        heading = "within each group, a row for each switch" if number == 0 else ""
        sheet.add(chosen, f"group {number}", 1, owner, repeat_number(owner), heading=heading)
    _rest(np.flatnonzero((low != high) & (low < 0)), "cables of no group", sheet)


def _switch_by_switch(fabric: Fabric, layout: Layout, cables: Cables, sheet: _Sheet) -> None:
    """Add a panel for cables between switches and one for host cables, in the layout's order."""
    spot = _spot(fabric, layout)
    forwards = fabric.forwards[cables.a] & fabric.forwards[cables.b]
    first = np.minimum(spot[cables.a], spot[cables.b])
    order = np.lexsort((np.maximum(spot[cables.a], spot[cables.b]), first))
    for section, (chosen, title) in enumerate(((forwards, "between switches"), (~forwards, "to hosts"))):
        found = order[chosen[order]]
        _rest(found, f"{title} · {len(found):,} cables", sheet, section)


def _rest(chosen: Longs, title: str, sheet: _Sheet, section: int = 2) -> None:
    width = max(SHARED_WIDTH, int(np.ceil(np.sqrt(4 * len(chosen)))))
    number = np.arange(len(chosen))
    sheet.add(chosen, title, section, number // width, number % width)


def _aligned(row: Longs | Ints, below: Longs | Ints) -> Longs:
    """Return columns by the lower end if most such cells would be filled; else cables follow one another."""
    rank = np.unique(below, return_inverse=True)[1]
    twin = repeat_number(row.astype(np.int64), below.astype(np.int64))
    width = int(twin.max(initial=0)) + 1
    slots = (int(np.max(row, initial=0)) + 1) * (int(rank.max(initial=0)) + 1) * width
    if len(row) >= DENSE * slots:
        return rank * width + twin
    return repeat_number(row.astype(np.int64))


def _ordered(cables: Cables, tier: Ints) -> tuple[Longs, Longs]:
    swap = tier[cables.a] > tier[cables.b]
    return np.where(swap, cables.a, cables.b), np.where(swap, cables.b, cables.a)


def _spot(fabric: Fabric, layout: Layout) -> Longs:
    """Return int64[n]: rank of each vertex from left to right, then in natural order of names."""
    spot = np.empty(len(fabric), np.int64)
    key = layout.x if layout.group is None else layout.group
    spot[np.lexsort((natural_order(fabric.names), key))] = np.arange(len(fabric))
    return spot


def _slice_title(number: int, sizes: Ints) -> str:
    if len(sizes) <= 2:
        return "all nodes"
    parts = []
    for axis in range(2, len(sizes)):
        number, place = divmod(number, int(sizes[axis]))
        parts.append(f"{'zuvw'[axis - 2] if axis < 6 else f'axis {axis}'} = {place}")
    return ", ".join(parts)
