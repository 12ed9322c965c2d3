"""Which vertices and adapters of two sources are the same: by GUID, else by name, else by what hangs on them.

Switches of sources that know no ports (a scheduler's topology file), and often neither GUIDs nor the names
that switches give themselves, are told by the vertices they are linked to, from the hosts upwards.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from registry.model import HOST, NO_PORT, SWITCH, Fabric, Ints, format_guid, is_made_up

UNKNOWN = -1


def tells_ports(fabric: Fabric) -> bool:
    """Whether any cable has a port's number."""
    return bool((fabric.links.source_port >= 0).any())


def same_vertices(a: Fabric, b: Fabric) -> Ints:
    """int32[len(b)]: the vertex of `a` that each vertex of `b` is; `UNKNOWN` none."""
    same = np.full(len(b), UNKNOWN, np.int32)
    by_guid = {int(guid): v for v, guid in enumerate(a.guid.tolist()) if guid}
    for v, guid in enumerate(b.guid.tolist()):
        if guid in by_guid and a.kind[by_guid[guid]] == b.kind[v]:
            same[v] = by_guid[guid]
    _by_adapters(a, b, same)
    _by_name(a, b, same)
    if not (tells_ports(a) and tells_ports(b)):
        _by_neighbours(a, b, same)
    return same


def one_machine(a: Fabric, b: Fabric, same: Ints) -> dict[int, int]:
    """Hosts of `a` that are another host of it, as `b` knows: vertex of `a` by vertex of `a`.

    A tool that prints no machine's name for an adapter and no system image GUID leaves each such adapter a
    host of its own, under a name made up; another tool may know that they are one.
    """
    known, found = _ids(a), dict[int, int]()
    for number, adapter in _ids(b).items():
        own = int(a.adapters.host[known[number]]) if number in known else UNKNOWN
        host = int(same[b.adapters.host[adapter]])
        if own != UNKNOWN and host not in (UNKNOWN, own) and is_made_up(a.names[own]):
            found[own] = host
    return {own: host for own, host in found.items() if host not in found}


def same_adapters(a: Fabric, b: Fabric, same: Ints) -> Ints:
    """int32[len(b.adapters)]: the adapter of `a` that each of `b` is; `UNKNOWN` none.

    By node or port GUID (some sources tell one as the other); what that does not tell by the port of a
    switch that it hangs on, where it is of the same host; else by its name within the host, and where
    several have that name by the order of their GUIDs, where one source tells those of adapters and the
    other those of ports.
    """
    found = np.full(len(b.adapters), UNKNOWN, np.int32)
    known = _ids(a)
    for number, adapter in _ids(b).items():
        if number in known and found[adapter] == UNKNOWN:
            found[adapter] = known[number]
    hung = _hung(a, np.arange(len(a), dtype=np.int32))
    for socket, adapter in _hung(b, same).items():
        candidate = hung.get(socket, UNKNOWN)
        if found[adapter] == UNKNOWN and candidate != UNKNOWN:
            host = int(same[b.adapters.host[adapter]])
            if host == int(a.adapters.host[candidate]) and not _told(a, b, candidate, adapter):
                found[adapter] = candidate
    _by_description(a, b, same, found)
    return found


def stands_for_others(fabric: Fabric, other: Fabric, same: Iterable[int]) -> set[int]:
    """Switches of one source that stand for several real ones of the other, and so are left out.

    Such a switch has no GUID and its cables no ports; all it is linked to is known to the other source, or is
    another such switch; and the other source tells ports. A scheduler's one core above all leaves is such a
    switch, and so are the groups of groups of its blocks.

    Parameters
    ----------
    same : iterable of int
        Vertices of `fabric` that are vertices of `other`, too.
    """
    known = set(same)
    links = fabric.links
    if not tells_ports(other):
        return set()
    real = known.union(links.source[links.source_port >= 0].tolist())
    found = {v for v in fabric.switches.tolist() if v not in real and not fabric.guid[v]}
    around = {v: set(_neighbours(fabric, v)) for v in found}
    while strange := {v for v in found if not around[v] or around[v] - known - found}:
        found -= strange
    return found if any(around[v] & known for v in found) else set()


def _by_description(a: Fabric, b: Fabric, same: Ints, found: Ints) -> None:
    """Adapters without a partner that have the same host and name, as many on both sides."""
    left_a = _named(a, np.arange(len(a), dtype=np.int32), set(found.tolist()))
    left_b = _named(b, same, set(np.flatnonzero(found != UNKNOWN).tolist()))
    for key, members in left_b.items():
        others = left_a.get(key, [])
        told = {_told(a, b, one, other) for one, other in zip(others, members, strict=False)}
        if len(others) == len(members) and told == {False}:
            found[members] = others


def _named(fabric: Fabric, vertex: Ints, done: set[int]) -> dict[tuple[int, str], list[int]]:
    """Adapters by host, in the numbers of `vertex`, and name; each list by the GUIDs."""
    adapters = fabric.adapters
    lowest = {adapter: guid for guid, adapter in sorted(_ids(fabric).items(), reverse=True)}
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    for adapter in sorted(range(len(adapters)), key=lambda adapter: lowest.get(adapter, 0)):
        host = int(vertex[adapters.host[adapter]])
        if adapter not in done and host != UNKNOWN and adapters.names[adapter]:
            found[host, adapters.names[adapter]].append(adapter)
    return found


def _by_adapters(a: Fabric, b: Fabric, same: Ints) -> None:
    """Hosts whose adapters are the same; most of them, where they are of several."""
    known, votes = _ids(a), defaultdict[int, Counter[int]](Counter)
    for number, adapter in _ids(b).items():
        if number in known:
            votes[int(b.adapters.host[adapter])][int(a.adapters.host[known[number]])] += 1
    for host, counted in votes.items():
        same[host] = max(counted, key=lambda v: (counted[v], -v))


def _by_name(a: Fabric, b: Fabric, same: Ints) -> None:
    """What has the same name and kind, and no GUID that says otherwise."""
    taken = set(same.tolist())
    index = {name: v for v, name in enumerate(a.names)}
    for v, name in enumerate(b.names):
        w = index.get(name, UNKNOWN)
        if same[v] != UNKNOWN or w == UNKNOWN or w in taken or a.kind[w] != b.kind[v]:
            continue
        differ = a.guid[w] and b.guid[v] and a.guid[w] != b.guid[v]
        if not differ or (a.lid[w] and a.lid[w] == b.lid[v]):
            same[v] = w


def _by_neighbours(a: Fabric, b: Fabric, same: Ints) -> None:
    """Switches that are linked to the same known vertices; as many of equals on both sides go by name."""
    while True:
        back = {int(w): v for v, w in enumerate(same.tolist()) if w != UNKNOWN}
        sets_a = _sets(a, {v: v for v in back}, back.keys())
        sets_b = _sets(b, {v: int(w) for v, w in enumerate(same.tolist()) if w != UNKNOWN}, back.values())
        found = False
        for key, members in sets_b.items():
            others = sets_a.get(key, [])
            if len(others) == len(members):
                found = True
                members.sort(key=lambda v: b.names[v])
                others.sort(key=lambda v: a.names[v])
                same[members] = others
        if not found:
            return


def _sets(
    fabric: Fabric, known: Mapping[int, int], matched: Iterable[int]
) -> dict[frozenset[int], list[int]]:
    """Switches without a partner by the hosts they are linked to, of those without hosts by all they are."""
    found: dict[frozenset[int], list[int]] = defaultdict(list)
    done = set(matched)
    for v in fabric.switches.tolist():
        if v in done:
            continue
        around = _neighbours(fabric, v)
        hosts = [w for w in around if fabric.kind[w] == HOST]
        told = hosts or around
        if told and all(w in known for w in told):
            found[frozenset(known[w] for w in told)].append(v)
    return found


def _neighbours(fabric: Fabric, vertex: int) -> list[int]:
    found: list[int] = fabric.neighbour[fabric.indptr[vertex] : fabric.indptr[vertex + 1]].tolist()
    return found


def _ids(fabric: Fabric) -> dict[int, int]:
    """Adapter of each GUID, its own or that of a port."""
    adapters = fabric.adapters
    found = {guid: a for a, guid in enumerate(adapters.guid.tolist()) if guid}
    ports = zip(adapters.port_guid.tolist(), adapters.port_adapter.tolist(), strict=True)
    return {guid: a for guid, a in ports if guid} | found


def _hung(fabric: Fabric, vertex: Ints) -> dict[tuple[int, int], int]:
    """Adapter by the socket it hangs on: switch, by its number in `vertex`, and port."""
    links = fabric.links
    rows = np.flatnonzero(
        (fabric.kind[links.source] == SWITCH) & (links.source_port >= 0) & (links.target_adapter != NO_PORT)
    )
    sockets = zip(
        vertex[links.source[rows]].tolist(),
        links.source_port[rows].tolist(),
        links.target_adapter[rows].tolist(),
        strict=True,
    )
    return {(v, port): adapter for v, port, adapter in sockets if v != UNKNOWN}


def _told(a: Fabric, b: Fabric, one: int, other: int) -> bool:
    """Whether both adapters have node GUIDs: then they are not the same."""
    return bool(a.adapters.guid[one]) and bool(b.adapters.guid[other])


def described(fabric: Fabric, vertex: int) -> str:
    """A vertex in words: its kind, and its GUID where it has one."""
    kind = "host" if fabric.kind[vertex] == HOST else "switch"
    guid = format_guid(int(fabric.guid[vertex]))
    return f"{kind} {guid}" if guid else kind
