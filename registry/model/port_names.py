"""Names of ports: ``DEVICE:PORT``, or ``HOST ADAPTER:PORT`` where several adapters of a host have that port.

Commands accept these names; pages, findings and JSON show them.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

import numpy as np

from registry.model.arrays import Bools, Ints, Longs
from registry.model.fabric import Fabric, format_guid
from registry.model.links import NO_PORT

End = Literal["source", "target"]
ENDS: tuple[End, End] = ("source", "target")


class PortNames(NamedTuple):
    """Names of the ports of all links after the names of their devices, without repetition.

    Attributes
    ----------
    texts : tuple of str
        Such as ``:33`` or `` mlx5_0:1``; the first one is empty, as for a port that is not known.
    source, target : int64[m]
        Index of the text of each end of each link.
    """

    texts: tuple[str, ...]
    source: Longs
    target: Longs


def port_name(device: str, port: int) -> str:
    """Return ``DEVICE:PORT``, or the device alone if its port is not known (`NO_PORT`)."""
    return device if port == NO_PORT else f"{device}:{port}"


def end_name(fabric: Fabric, row: int, end: End = "source") -> str:
    """Return the name of the port at one end of a link (a row of ``fabric.links``)."""
    return "".join(end_parts(fabric, row, end))


def end_parts(fabric: Fabric, row: int, end: End = "source") -> tuple[str, str]:
    """Return the name of the port at one end of a link in two parts: ``node1`` and `` mlx5_0:1``."""
    vertices, ports, adapters = end_columns(fabric, end)
    vertex, port, adapter = int(vertices[row]), int(ports[row]), int(adapters[row])
    several = adapter != NO_PORT and int(((vertices == vertex) & (ports == port)).sum()) > 1
    name = adapter_names(fabric, [adapter])[adapter] if several and port != NO_PORT else ""
    return fabric.names[vertex], port_name(name and f" {name}", port)


def port_names(fabric: Fabric) -> PortNames:
    """Return the names of the ports at both ends of all links, as `end_parts` returns them."""
    m, (source, target) = len(fabric.links), (end_columns(fabric, "source"), end_columns(fabric, "target"))
    port = np.r_[source[1], target[1]].astype(np.int64)
    adapter = np.r_[source[2], target[2]].astype(np.int64)
    adapter[~np.r_[_repeated(*source[:2]), _repeated(*target[:2])] | (port == NO_PORT)] = NO_PORT
    which, place = np.unique(adapter, return_inverse=True)
    names = {NO_PORT: ""} | adapter_names(fabric, which[which != NO_PORT].tolist())
    words = [names[one] and f" {names[one]}" for one in which.tolist()]
    known = sorted(set(words))
    word = np.array([known.index(one) for one in words], np.int64)[place]
    most = int(port.max(initial=0)) + 2
    pairs, index = np.unique(word * most + port + 1, return_inverse=True)
    texts = (port_name(known[pair // most], pair % most - 1) for pair in pairs.tolist())
    return PortNames(("", *texts), index[:m] + 1, index[m:] + 1)


def adapter_names(fabric: Fabric, adapters: list[int]) -> dict[int, str]:
    """Return the names that distinguish some adapters from the others of their hosts.

    That is the last word of the description, or the GUID if another adapter has the same word.
    """
    about = fabric.adapters
    beside = np.flatnonzero(np.isin(about.host, about.host[adapters])).tolist()
    words = {row: (int(about.host[row]), (about.names[row].split() or [""])[-1]) for row in beside}
    count = Counter(words.values())
    alone = {row for row in adapters if words[row][1] and count[words[row]] == 1}
    return {row: words[row][1] if row in alone else format_guid(int(about.guid[row])) for row in adapters}


def end_columns(fabric: Fabric, end: End) -> tuple[Ints, Ints, Ints]:
    """Return the vertex, port and adapter at one end of all links."""
    links = fabric.links
    if end == "source":
        return links.source, links.source_port, links.source_adapter
    return links.target, links.target_port, links.target_adapter


def _repeated(vertex: Ints, port: Ints) -> Bools:
    """Return for each end whether another one has the same device and port."""
    keys = vertex.astype(np.int64) * (int(port.max(initial=0)) + 2) + port + 1
    _, place, count = np.unique(keys, return_inverse=True, return_counts=True)
    repeated: Bools = count[place] > 1
    return repeated
