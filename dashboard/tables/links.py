"""Links as tables: the busiest ones, their names, and lines between devices. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dashboard.layouts.model import Cables
from registry import units
from registry.model import Bools, Fabric, Floats, Links, Longs
from registry.model.fabric import port_names
from registry.model.links import LINK_COLUMNS

LOADS = {"load": units.BYTES, "capacity": units.RATE}
"""Base units of columns of tables of links."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bundles:
    """Lines of a map: one for all cables between two vertices.

    Attributes
    ----------
    cable : int64[l]
        Row of `dashboard.layouts.Cables` of the busiest cable of each line.
    row : int64[l]
        Busier direction of that cable, a row of ``fabric.links``.
    value : float64[l]
        Value of that link.
    cables : int64[l]
        Number of physical cables of each line.
    """

    cable: Longs
    row: Longs
    value: Floats
    cables: Longs

    def __len__(self) -> int:
        return len(self.cable)


def hottest_links(fabric: Fabric, link_bytes: Floats, count: int) -> tuple[Longs, pd.DataFrame]:
    """Return the links that take longest, worst first, without links that carry nothing.

    Returns
    -------
    int64[k], DataFrame
        Rows of ``fabric.links``, and their ends, times (s), loads (bytes) and capacities (bytes/s).
    """
    links = fabric.links
    seconds = link_bytes / links.capacity
    order = np.argsort(-seconds, kind="stable")[:count]
    order = order[seconds[order] > 0]
    worst = float(seconds.max(initial=0.0))
    return order, pd.DataFrame(
        {
            **_ends(fabric, order),
            "time": seconds[order],
            "load": link_bytes[order],
            "capacity": links.capacity[order],
            "of the worst": seconds[order] / worst if worst > 0 else seconds[order],
            "kind": link_kinds(fabric, order),
        }
    )


def _ends(fabric: Fabric, rows: Longs) -> dict[str, list[str]]:
    """Return the columns that name the ports at both ends of some links."""
    names, links = port_names(fabric), fabric.links
    ends = {"from": (links.source, names.source), "to": (links.target, names.target)}
    return {
        column: [
            fabric.names[vertex] + names.texts[port]
            for vertex, port in zip(vertices[rows].tolist(), ports[rows].tolist(), strict=True)
        ]
        for column, (vertices, ports) in ends.items()
    }


def link_kinds(fabric: Fabric, rows: Longs) -> list[str]:
    """Return for each of some links whether it is between switches or a host's cable."""
    return ["network" if inner else "host cable" for inner in fabric.network_link[rows].tolist()]


def busier_direction(cables: Cables, values: Floats) -> tuple[Floats, Longs]:
    """Return the larger value of the two directions of each cable (NaN is smallest), and its link's row.

    Parameters
    ----------
    values : float64[m]
        Value of each link.
    """
    padded = np.append(np.nan_to_num(values, nan=-np.inf), -np.inf)
    there, back = padded[cables.there], padded[cables.back]
    row = np.where(((there >= back) & (cables.there >= 0)) | (cables.back < 0), cables.there, cables.back)
    return values[row], row


def bundles(fabric: Fabric, cables: Cables, values: Floats, gone: Bools | None = None) -> Bundles:
    """Return one line for all cables between two vertices: its busiest link and its number of cables.

    Parameters
    ----------
    values : float64[m]
        Value of each link.
    gone : bool[c], optional
        Removed cables; those of two vertices are a separate line before the line of the remaining ones.
    """
    value, row = busier_direction(cables, values)
    left = np.ones(len(cables), np.bool_) if gone is None else ~gone
    order = np.lexsort((-np.nan_to_num(value, nan=-np.inf), left, cables.b, cables.a))
    keys = np.stack([cables.a, cables.b, left])[:, order]
    first = np.flatnonzero(np.r_[True, (np.diff(keys) != 0).any(axis=0)]) if len(order) else order
    count = fabric.links.cables[row[order]]
    total = np.add.reduceat(count, first) if len(first) else count
    hottest = order[first]
    return Bundles(cable=hottest, row=row[hottest], value=value[hottest], cables=total.astype(np.int64))


def with_removed(links: Links, older: Links, gone: Longs) -> Links:
    """Return links followed by some rows of the links of an earlier state."""
    columns = {name: np.r_[getattr(links, name), getattr(older, name)[gone]] for name in LINK_COLUMNS}
    return Links(**columns)


def loaded_links(
    fabric: Fabric, seconds: Mapping[str, Floats], link_bytes: Floats, count: int | None
) -> tuple[Longs, pd.DataFrame]:
    """Return the links that any of several placements loads, the longest time in any of them first.

    Parameters
    ----------
    seconds : mapping of str to float64[m]
        Time of each link, for each placement.
    link_bytes : float64[m]
        Loads of one placement, for the column ``load``.
    count : int or None
        Maximum number of rows; None for all.

    Returns
    -------
    int64[k], DataFrame
        Rows of ``fabric.links``; their ends, time for each placement (s), load (bytes), capacity (bytes/s).
    """
    links = fabric.links
    worst = np.max(list(seconds.values()), axis=0)
    order = np.argsort(-worst, kind="stable")[:count]
    order = order[worst[order] > 0]
    table = pd.DataFrame(
        {
            **_ends(fabric, order),
            "kind": link_kinds(fabric, order),
            **{name: values[order] for name, values in seconds.items()},
            "load": link_bytes[order],
            "capacity": links.capacity[order],
        }
    )
    return order, table
