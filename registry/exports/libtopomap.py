"""A fabric as LibTopoMap's weighted map: ``num: N w``, names, then each vertex with ``neighbour(weight)``.

A weight is the capacity of all cables of a pair in one direction, as a multiple of a unit: the largest that
makes all of them whole, down to a thousandth of the smallest capacity, else that thousandth, rounded. The
file has no place for the unit (`unit`): reading it back with ``--rate`` unit gives the capacities. Ports,
adapters, parallel cables and which vertices are hosts are left out.

The library reads names up to a blank: blanks in switches' names become ``_``; a host's name must be one word,
as ranks find themselves by it.
"""

from __future__ import annotations

import numpy as np

from registry.errors import InvalidValue
from registry.model import HOST, Fabric

FINEST = 1000
"""Parts of the smallest capacity that the unit may be."""


def write(fabric: Fabric) -> str:
    """The map; vertices in the fabric's order.

    Raises
    ------
    InvalidValue
        A fabric without links; a host whose name is not one word.
    """
    weights = np.maximum(1, np.rint(fabric.capacity / unit(fabric))).astype(np.int64).tolist()
    lines = [f"num: {len(fabric)} w"]
    lines += [f"{vertex} {name}" for vertex, name in enumerate(_names(fabric))]
    near, first = fabric.neighbour.tolist(), fabric.indptr.tolist()
    for vertex in range(len(fabric)):
        arcs = range(first[vertex], first[vertex + 1])
        lines.append(" ".join([str(vertex), *(f"{near[arc]}({weights[arc]})" for arc in arcs)]))
    return "\n".join(lines) + "\n"


def unit(fabric: Fabric) -> float:
    """Bytes/s of weight 1.

    Raises
    ------
    InvalidValue
        A fabric without links.
    """
    if not len(fabric.capacity):
        raise InvalidValue("fabric.links", "there are none, which a map needs")
    ratio = np.unique(fabric.capacity) / fabric.capacity.min()
    for parts in range(1, FINEST + 1):
        whole = np.rint(ratio * parts)
        if np.allclose(ratio * parts, whole, rtol=1e-9, atol=0.0):
            break
    return float(fabric.capacity.min() / parts)


def _names(fabric: Fabric) -> list[str]:
    """Names of one word, unique."""
    found: list[str] = []
    seen = {name for name in fabric.names if not any(map(str.isspace, name))}
    for name, kind in zip(fabric.names, fabric.kind.tolist(), strict=True):
        if not name.isprintable() or not name:
            raise InvalidValue("fabric.names", f"{name!r} would break the file")
        if name in seen:
            found.append(name)
            continue
        if kind == HOST:
            raise InvalidValue("fabric.names", f"host {name!r} is not one word, as ranks would look for it")
        plain = alone = "_".join(name.split())
        count = 1
        while alone in seen:
            count += 1
            alone = f"{plain}-{count}"
        seen.add(alone)
        found.append(alone)
    return found
