"""Links as tables: the busiest ones, their names, and lines between devices. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dashboard.layouts.model import Cables
from registry import units
from registry.model import NO_PORT, Bools, Fabric, Floats, Links, Longs
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
    """Return the columns that name both ends of some links."""
    columns = {}
    for column, end in (("from", "source"), ("to", "target")):
        vertices = getattr(fabric.links, end)[rows].tolist()
        columns[column] = [fabric.names[v] for v in vertices]
        columns[f"{column} port"] = [port_text(fabric, row, end) for row in rows.tolist()]
    return columns


def link_kinds(fabric: Fabric, rows: Longs) -> list[str]:
    """Return for each of some links whether it is between switches or a host's cable."""
    return ["network" if inner else "host cable" for inner in fabric.network_link[rows].tolist()]


def port_text(fabric: Fabric, row: int, end: str) -> str:
    """Return the port of one end of a link, with the adapter at a host; empty if it is not known."""
    port = int(getattr(fabric.links, f"{end}_port")[row])
    adapter = int(getattr(fabric.links, f"{end}_adapter")[row])
    number = "" if port == NO_PORT else str(port)
    if adapter == NO_PORT:
        return number
    name = fabric.adapters.names[adapter].split()
    return f"{name[-1]}/{number}" if name else number


def port_texts(fabric: Fabric) -> tuple[tuple[str, ...], Longs, Longs]:
    """Return the texts of all ports, without repetition, and where to find those of each link.

    Returns
    -------
    (tuple of str, int64[m], int64[m])
        Texts as returned by `port_text`, the first one empty; indices of the texts of the source and target
        port of each link.
    """
    links, m = fabric.links, len(fabric.links)
    port = np.r_[links.source_port, links.target_port].astype(np.int64)
    adapter = np.r_[links.source_adapter, links.target_adapter]
    words = [name.split()[-1] if name.split() else "" for name in fabric.adapters.names]
    known = {word: place for place, word in enumerate(sorted({"", *words}))}
    word = np.append(np.array([known[word] for word in words], np.int64), known[""])[adapter]
    pairs, place = np.unique(word * (int(port.max(initial=0)) + 2) + port + 1, return_inverse=True)
    named = sorted(known)
    texts = []
    for pair in pairs.tolist():
        which, number = divmod(pair, int(port.max(initial=0)) + 2)
        shown = "" if number - 1 == NO_PORT else str(number - 1)
        texts.append(f"{named[which]}/{shown}" if named[which] else shown)
    return ("", *texts), place[:m] + 1, place[m:] + 1


def link_text(fabric: Fabric, row: int) -> str:
    """Return a link as text: ``leaf1 port 4 → spine2 port 1``."""
    ends = []
    for end in ("source", "target"):
        vertex, port = int(getattr(fabric.links, end)[row]), port_text(fabric, row, end)
        ends.append(f"{fabric.names[vertex]} port {port}" if port else fabric.names[vertex])
    return " → ".join(ends)


def sender_text(fabric: Fabric, row: int) -> str:
    """Return the sending port of a link as short text: ``leaf1:4``."""
    port = port_text(fabric, row, "source")
    name = fabric.names[fabric.links.source[row]]
    return f"{name}:{port}" if port else f"{name} → {fabric.names[fabric.links.target[row]]}"


def shortened(text: str, most: int = 24) -> str:
    """Return a long name without its middle, since its beginning and end identify it best."""
    return text if len(text) <= most else f"{text[: most // 3]}…{text[-(most - most // 3 - 1) :]}"


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
