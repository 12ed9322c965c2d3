"""Weighted map of LibTopoMap: ``num: N w``, names, then each vertex with ``neighbour(weight)``.

A weight is the capacity of all cables of a pair in one direction, as a multiple of a unit: the largest unit
with which all weights are whole, down to a thousandth of the smallest capacity, else that thousandth,
rounded. The file does not contain the unit (`unit`): reading it with ``--rate`` unit gives the capacities.
Ports, adapters, parallel cables and the kinds of vertices are left out.

The library reads names up to a blank: blanks in names of switches become ``_``; the name of a host must be
one word, since ranks look it up.
"""

from __future__ import annotations

import numpy as np

from registry.errors import InvalidValue
from registry.model import HOST, Fabric

FINEST = 1000
"""Smallest unit: the smallest capacity divided by this."""


def write(fabric: Fabric) -> str:
    """Return the map; vertices in the fabric's order."""
    weights = np.maximum(1, np.rint(fabric.capacity / unit(fabric))).astype(np.int64).tolist()
    lines = [f"num: {len(fabric)} w"]
    lines += [f"{vertex} {name}" for vertex, name in enumerate(_names(fabric))]
    near, first = fabric.neighbour.tolist(), fabric.indptr.tolist()
    for vertex in range(len(fabric)):
        arcs = range(first[vertex], first[vertex + 1])
        lines.append(" ".join([str(vertex), *(f"{near[arc]}({weights[arc]})" for arc in arcs)]))
    return "\n".join(lines) + "\n"


def unit(fabric: Fabric) -> float:
    """Return the bytes/s of weight 1.

    Raises
    ------
    InvalidValue
        The fabric has no links.
    """
    if not len(fabric.capacity):
        raise InvalidValue("fabric.links", "a map needs at least one link")
    ratio = np.unique(fabric.capacity) / fabric.capacity.min()
    for parts in range(1, FINEST + 1):
        whole = np.rint(ratio * parts)
        if np.allclose(ratio * parts, whole, rtol=1e-9, atol=0.0):
            break
    return float(fabric.capacity.min() / parts)


def _names(fabric: Fabric) -> list[str]:
    """Return unique names of one word."""
    found: list[str] = []
    seen = {name for name in fabric.names if not any(map(str.isspace, name))}
    for name, kind in zip(fabric.names, fabric.kind.tolist(), strict=True):
        if not name.isprintable() or not name:
            raise InvalidValue("fabric.names", f"{name!r} would break the file")
        if name in seen:
            found.append(name)
            continue
        if kind == HOST:
            raise InvalidValue("fabric.names", f"host {name!r} is not one word: ranks could not find it")
        plain = unique = "_".join(name.split())
        count = 1
        while unique in seen:
            count += 1
            unique = f"{plain}-{count}"
        seen.add(unique)
        found.append(unique)
    return found
