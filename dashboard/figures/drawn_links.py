"""Selection of links that are drawn as lines: a part of the fabric. Pure functions."""

from __future__ import annotations

import numpy as np

from dashboard.components.fabric_map import Item
from registry.model import Bools, Fabric, Floats

WIDER = 400
"""Maximum number of links drawn around a device; above it only the device's own links are drawn."""


def around(fabric: Fabric, item: Item) -> Bools:
    """Return bool[m]: links at both ends of a link, or of a device and, if few enough, its neighbours."""
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
    """Return bool[m]: loaded links, at most the `most` busiest ones; equal ones by row."""
    order = np.argsort(-seconds, kind="stable")[:most]
    chosen = np.zeros(len(seconds), bool)
    chosen[order[seconds[order] > 0]] = True
    return chosen
