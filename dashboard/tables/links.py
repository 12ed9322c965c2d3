"""Links as tables: which are hottest, how they are called, and lines between machines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dashboard.layouts import Cables
from registry.model import NO_PORT, Bools, Fabric, Floats, Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bundles:
    """Pairs of vertices that cables join, one line each.

    Attributes
    ----------
    cable : int64[l]
        The hottest of the pair's `dashboard.layouts.Cables`.
    row : int64[l]
        The hotter direction of it, a row of ``fabric.links``.
    value : float64[l]
        Of that link.
    cables : int64[l]
        Physical cables of the pair.
    """

    cable: Longs
    row: Longs
    value: Floats
    cables: Longs

    def __len__(self) -> int:
        return len(self.cable)


def hottest_links(fabric: Fabric, link_bytes: Floats, count: int) -> tuple[Longs, pd.DataFrame]:
    """The links with the most seconds, worst first; links without traffic are left out.

    Returns
    -------
    (int64[k], DataFrame)
        Rows of ``fabric.links``; and a table of them with columns ``from``, ``from port``, ``to``,
        ``to port`` (text), ``time`` (s), ``load`` (bytes),
        ``capacity`` (bytes/s), ``of the worst`` (0 to 1) and ``kind``.
    """
    links = fabric.links
    seconds = link_bytes / links.capacity
    order = np.argsort(-seconds, kind="stable")[:count]
    order = order[seconds[order] > 0]
    worst = float(seconds.max(initial=0.0))
    network = fabric.network_link
    return order, pd.DataFrame(
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


def port_texts(fabric: Fabric) -> tuple[tuple[str, ...], Longs, Longs]:
    """Texts of all ports once, the first empty, and the place there of both ends' port of each link.

    Returns
    -------
    (tuple of str, int64[m], int64[m])
        Texts as of `port_text`; places for the source's and the target's end.
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
    """A link in words: ``leaf1 port 4 → spine2 port 1``."""
    ends = []
    for end in ("source", "target"):
        vertex, port = int(getattr(fabric.links, end)[row]), port_text(fabric, row, end)
        ends.append(f"{fabric.names[vertex]} port {port}" if port else fabric.names[vertex])
    return " → ".join(ends)


def sender_text(fabric: Fabric, row: int) -> str:
    """The port that a link leaves, in short: ``leaf1:4``."""
    port = port_text(fabric, row, "source")
    name = fabric.names[fabric.links.source[row]]
    return f"{name}:{port}" if port else f"{name} → {fabric.names[fabric.links.target[row]]}"


def shortened(text: str, most: int = 24) -> str:
    """A long name without its middle, as its two ends tell most."""
    return text if len(text) <= most else f"{text[: most // 3]}…{text[-(most - most // 3 - 1) :]}"


def hotter(cables: Cables, values: Floats) -> tuple[Floats, Longs]:
    """Of each cable the larger value of its two directions, NaN below all, and the row of that link.

    Parameters
    ----------
    values : float64[m]
        By link.
    """
    padded = np.append(np.nan_to_num(values, nan=-np.inf), -np.inf)
    there, back = padded[cables.there], padded[cables.back]
    row = np.where(((there >= back) & (cables.there >= 0)) | (cables.back < 0), cables.there, cables.back)
    return values[row], row


def bundles(fabric: Fabric, cables: Cables, values: Floats, gone: Bools | None = None) -> Bundles:
    """Cables of one pair of vertices as one line: its hottest link and how many cables it has.

    Parameters
    ----------
    values : float64[m]
        By link.
    gone : bool[c], optional
        Cables that make a line of their own, before that of the others of their pair.
    """
    value, row = hotter(cables, values)
    left = np.ones(len(cables), np.bool_) if gone is None else ~gone
    order = np.lexsort((-np.nan_to_num(value, nan=-np.inf), left, cables.b, cables.a))
    keys = np.stack([cables.a, cables.b, left])[:, order]
    first = np.flatnonzero(np.r_[True, (np.diff(keys) != 0).any(axis=0)]) if len(order) else order
    count = fabric.links.cables[row[order]]
    total = np.add.reduceat(count, first) if len(first) else count
    hottest = order[first]
    return Bundles(cable=hottest, row=row[hottest], value=value[hottest], cables=total.astype(np.int64))
