"""Links as tables: which are hottest, lines between machines, cells of tiers, steps of a colour ramp."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dashboard.layouts import Layout, natural_order
from registry import units
from registry.model import NO_PORT, Fabric, Floats, Ints

CLASSES = 5
"""Steps of a ramp, an idle class not counted."""
SHARED_BELOW, SHARED_WIDTH = 12, 60
"""Where devices have fewer cables than the first, cells run on in rows of the second number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Classes:
    """Values sorted into a few steps, each with a label that tells its range and count.

    Attributes
    ----------
    labels : tuple of str
        From the least salient to the most.
    index : int32[...]
        Step of each value.
    idle : bool
        Whether step 0 holds the values that are exactly zero.
    """

    labels: tuple[str, ...]
    index: Ints
    idle: bool


def load_classes(seconds: Floats, what: str, worst: float | None = None) -> Classes:
    """Congestion in equal steps up to the worst; what has no traffic stands apart.

    Parameters
    ----------
    what : str
        What has the values: links, cables, ...
    worst : float, optional
        Top of the scale, not below the largest value, which it is by default.
    """
    worst = float(seconds.max(initial=0.0)) if worst is None else worst
    if worst == 0:
        return Classes(
            labels=(f"no traffic · {len(seconds):,} {what}",),
            index=np.zeros(len(seconds), np.int32),
            idle=True,
        )
    step = np.ceil(seconds / worst * CLASSES - 1e-9).clip(0, CLASSES)
    index = np.where(seconds > 0, np.maximum(step, 1), 0).astype(np.int32)
    counts = np.bincount(index, minlength=CLASSES + 1)
    unit = units.unit_for([worst], units.SECONDS)
    edges = [f"{worst * k / CLASSES / unit.size:.3g}" for k in range(CLASSES + 1)]
    labels = [f"no traffic · {counts[0]:,} {what}"]
    labels += [f"{edges[k]} to {edges[k + 1]} {unit.name} · {counts[k + 1]:,}" for k in range(CLASSES)]
    return Classes(labels=tuple(labels), index=index, idle=True)


def capacity_classes(capacity: Floats, what: str) -> Classes:
    """Each capacity a step of its own, or equal steps where there are too many; the highest last."""
    kinds, index = np.unique(capacity, return_inverse=True)
    unit = units.unit_for(kinds.tolist(), units.RATE)
    if len(kinds) <= CLASSES + 1:
        counts = np.bincount(index, minlength=len(kinds))
        labels = [
            f"{v / unit.size:.4g} {unit.name} · {n:,} {what}" for v, n in zip(kinds, counts, strict=True)
        ]
        return Classes(labels=tuple(labels), index=index.astype(np.int32), idle=False)
    edges = np.linspace(kinds[0], kinds[-1], CLASSES + 1)
    index = np.digitize(capacity, edges[1:-1], right=True)
    counts = np.bincount(index, minlength=CLASSES)
    labels = [
        f"{edges[k] / unit.size:.4g} to {edges[k + 1] / unit.size:.4g} {unit.name} · {counts[k]:,} {what}"
        for k in range(CLASSES)
    ]
    return Classes(labels=tuple(labels), index=index.astype(np.int32), idle=False)


def hottest_links(fabric: Fabric, link_bytes: Floats, count: int) -> pd.DataFrame:
    """The links with the most seconds, worst first; links without traffic are left out.

    Returns
    -------
    DataFrame
        Columns ``from``, ``from port``, ``to``, ``to port`` (text), ``time`` (s), ``load`` (bytes),
        ``capacity`` (bytes/s), ``of the worst`` (0 to 1) and ``kind``.
    """
    links = fabric.links
    seconds = link_bytes / links.capacity
    order = np.argsort(-seconds, kind="stable")[:count]
    order = order[seconds[order] > 0]
    worst = float(seconds.max(initial=0.0))
    network = fabric.network_link
    return pd.DataFrame(
        {
            "from": [fabric.names[v] for v in links.source[order]],
            "from port": [port_text(fabric, row, "source") for row in order.tolist()],
            "to": [fabric.names[v] for v in links.target[order]],
            "to port": [port_text(fabric, row, "target") for row in order.tolist()],
            "time": seconds[order],
            "load": link_bytes[order],
            "capacity": links.capacity[order],
            "of the worst": seconds[order] / worst if worst > 0 else seconds[order],
            "kind": np.where(network[order], "network", "host cable"),
        }
    )


def port_text(fabric: Fabric, row: int, end: str) -> str:
    """Port of one end of a link, with the adapter at a host; empty where the source knows none."""
    port = int(getattr(fabric.links, f"{end}_port")[row])
    adapter = int(getattr(fabric.links, f"{end}_adapter")[row])
    number = "" if port == NO_PORT else str(port)
    if adapter == NO_PORT:
        return number
    name = fabric.adapters.names[adapter].split()
    return f"{name[-1]}/{number}" if name else number


def link_text(fabric: Fabric, row: int) -> str:
    """A link in words: ``leaf1 port 4 → spine2 port 1``."""
    ends = []
    for end in ("source", "target"):
        vertex, port = int(getattr(fabric.links, end)[row]), port_text(fabric, row, end)
        ends.append(f"{fabric.names[vertex]} port {port}" if port else fabric.names[vertex])
    return " → ".join(ends)


def hotter(cables: pd.DataFrame, values: Floats) -> tuple[Floats, Ints]:
    """Of each cable the larger value of its two directions, and the row of that link.

    Parameters
    ----------
    cables : DataFrame
        Of `dashboard.layouts.cables`.
    values : float64[m]
        By link.
    """
    there, back = cables["there"].to_numpy(), cables["back"].to_numpy()
    padded = np.append(values, -np.inf)
    row = np.where(padded[there] >= padded[back], there, back).astype(np.int32)
    return values[row], row


def bundles(fabric: Fabric, cables: pd.DataFrame, values: Floats) -> pd.DataFrame:
    """Cables of one pair of vertices as one line: its hottest link and how many cables it has.

    Returns
    -------
    DataFrame
        Columns ``a``, ``b`` (vertices), ``row`` (of the hottest link), ``value``, ``cables``.
    """
    value, row = hotter(cables, values)
    table = cables[["a", "b"]].assign(value=value, row=row, cables=fabric.links.cables[row])
    count = table.groupby(["a", "b"])["cables"].sum().rename("cables")
    worst = table.loc[table.groupby(["a", "b"])["value"].idxmax(), ["a", "b", "row", "value"]]
    return worst.join(count, on=["a", "b"]).reset_index(drop=True)


def matrix_cells(fabric: Fabric, layout: Layout, cables: pd.DataFrame, values: Floats) -> pd.DataFrame:
    """Every cable as one cell: a panel for each pair of tiers, a row for each device of its upper tier.

    Within a row the cells follow the layout's order of the lower ends. Where devices have few cables
    they share rows, so that a torus fills its panel as well.

    Returns
    -------
    DataFrame
        Columns ``upper``, ``lower`` (tiers), ``line``, ``column``, ``device`` (name of the upper end),
        ``link`` (row of the hotter link) and ``value``.
    """
    a, b = cables["a"].to_numpy(), cables["b"].to_numpy()
    swap = layout.tier[a] > layout.tier[b]
    top, low = np.where(swap, a, b), np.where(swap, b, a)
    value, row = hotter(cables, values)
    spot = natural_order(fabric.names) / len(fabric) * 1e-9 + layout.x
    cells = pd.DataFrame(
        {"upper": layout.tier[top], "lower": layout.tier[low], "top": top, "link": row, "value": value}
    ).assign(at=spot[top], side=spot[low])
    cells = cells.sort_values(["upper", "lower", "at", "top", "side", "link"], ignore_index=True)
    panel = cells.groupby(["upper", "lower"], sort=False)
    number = panel.cumcount()
    place = cells.groupby(["upper", "lower", "top"], sort=False).cumcount()
    device = panel["top"].transform(lambda column: (column != column.shift()).cumsum() - 1)
    dense = place.groupby([cells["upper"], cells["lower"]]).transform("max") + 1 < SHARED_BELOW
    cells["line"] = np.where(dense, number // SHARED_WIDTH, device)
    cells["column"] = np.where(dense, number % SHARED_WIDTH, place)
    cells["device"] = [fabric.names[v] for v in cells["top"]]
    return cells[["upper", "lower", "line", "column", "device", "link", "value"]]
