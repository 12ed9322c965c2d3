"""Which links wait for each other when nothing moves any more."""

from __future__ import annotations

import numpy as np

from registry.model import Fabric, Longs


def circle_of_links(fabric: Fabric, waiting_for: Longs, width: int) -> tuple[str, ...]:
    """Names of links whose buffers wait for each other in a circle, such as ``"s1 -> s2"``.

    Parameters
    ----------
    waiting_for : int64[channels]
        Channel that the first packet in the buffer of each channel waits for; -1 none.
    width : int
        Channels of a link.

    Returns
    -------
    tuple of str
        Each waits for the next and the last for the first; the first is the lowest. Empty where there is no
        circle.
    """
    seen = np.full(len(waiting_for), -1, np.int64)
    for start in np.flatnonzero(waiting_for >= 0).tolist():
        at = start
        while at >= 0 and seen[at] < 0:
            seen[at] = start
            at = int(waiting_for[at])
        if at >= 0 and seen[at] == start:
            return tuple(_name(fabric, channel // width) for channel in _circle(waiting_for, at))
    return ()


def _circle(waiting_for: Longs, start: int) -> list[int]:
    found, at = [start], int(waiting_for[start])
    while at != start:
        found.append(at)
        at = int(waiting_for[at])
    lowest = found.index(min(found))
    return found[lowest:] + found[:lowest]


def _name(fabric: Fabric, row: int) -> str:
    links = fabric.links
    return f"{fabric.names[links.source[row]]} -> {fabric.names[links.target[row]]}"
