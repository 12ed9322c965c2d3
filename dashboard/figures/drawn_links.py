"""Parts of a fabric that are small enough to be drawn as lines. Pure functions."""

from __future__ import annotations

import numpy as np

from dashboard.components.fabric_map import Item
from registry.model import Bools, Fabric, Floats

WIDER = 400
"""Most links around a machine that are drawn with its own."""


def around(fabric: Fabric, item: Item) -> Bools:
    """bool[m]: links at the ends of a link, or at a machine and, unless too many, its neighbours."""
    links = fabric.links
    if item.link is not None:
        ends = np.isin(np.arange(len(fabric)), [links.source[item.link], links.target[item.link]])
        return np.asarray(ends[links.source] | ends[links.target])
    own = (links.source == item.vertex) | (links.target == item.vertex)
    ends = np.zeros(len(fabric), bool)
    ends[links.source[own]] = ends[links.target[own]] = True
    far = ends[links.source] | ends[links.target]
    return np.asarray(far if int(far.sum()) <= WIDER else own)


def hottest_part(seconds: Floats, most: int) -> Bools:
    """bool[m]: links that are loaded, the hottest ones where they are too many; equals by their rows."""
    order = np.argsort(-seconds, kind="stable")[:most]
    chosen = np.zeros(len(seconds), bool)
    chosen[order[seconds[order] > 0]] = True
    return chosen
