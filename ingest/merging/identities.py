"""Matching of the vertices and adapters of two sources: by GUID, else by name, else by their neighbours.

Sources without ports (a scheduler's topology file) often have neither GUIDs nor the switches' own names.
Their switches are identified by the vertices they are linked to, from the hosts upwards.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from registry.model import HOST, NO_PORT, SWITCH, Fabric, Ints, format_guid, is_made_up
from registry.model.host_names import same_hosts

UNKNOWN = -1


def has_ports(fabric: Fabric) -> bool:
    """Return True if any cable has a port number."""
    return bool((fabric.links.source_port >= 0).any())


def guids(fabric: Fabric) -> set[int]:
    """Return all GUIDs of switches, adapters and their ports."""
    return {*fabric.guid[fabric.guid > 0].tolist(), *_ids(fabric)}


def same_vertices(a: Fabric, b: Fabric) -> Ints:
    """Return the vertex of `a` for each vertex of `b` (int32[len(b)]), `UNKNOWN` if there is none."""
    same = np.full(len(b), UNKNOWN, np.int32)
    by_guid = {int(guid): v for v, guid in enumerate(a.guid.tolist()) if guid}
    for v, guid in enumerate(b.guid.tolist()):
        if guid in by_guid and a.kind[by_guid[guid]] == b.kind[v]:
            same[v] = by_guid[guid]
    _by_adapters(a, b, same)
    _by_name(a, b, same)
    if not (has_ports(a) and has_ports(b)):
        _by_neighbours(a, b, same)
    return same


def one_machine(a: Fabric, b: Fabric, same: Ints) -> dict[int, int]:
    """Return hosts of `a` that are one machine according to `b`, as a map from vertex to vertex of `a`.

    If a tool prints neither the machine's name nor the system image GUID of an adapter, each such adapter
    becomes a host with a made-up name; another tool may know that they are in one machine.
    """
    known, found = _ids(a), dict[int, int]()
    for number, adapter in _ids(b).items():
        own = int(a.adapters.host[known[number]]) if number in known else UNKNOWN
        host = int(same[b.adapters.host[adapter]])
        if own != UNKNOWN and host not in (UNKNOWN, own) and is_made_up(a.names[own]):
            found[own] = host
    return {own: host for own, host in found.items() if host not in found}


def same_adapters(a: Fabric, b: Fabric, same: Ints) -> Ints:
    """Return the adapter of `a` for each adapter of `b` (int32[len(b.adapters)]), `UNKNOWN` if there is none.

    Adapters are matched by node or port GUID (some sources print one as the other). The rest is matched by
    the switch port it is connected to, if the host is the same; else by its name within the host, and if
    several have that name, in the order of their GUIDs, since one source may have the GUIDs of adapters and
    the other those of ports.
    """
    found = np.full(len(b.adapters), UNKNOWN, np.int32)
    known = _ids(a)
    for number, adapter in _ids(b).items():
        if number in known and found[adapter] == UNKNOWN:
            found[adapter] = known[number]
    connected = _by_switch_port(a, np.arange(len(a), dtype=np.int32))
    for socket, adapter in _by_switch_port(b, same).items():
        candidate = connected.get(socket, UNKNOWN)
        if found[adapter] == UNKNOWN and candidate != UNKNOWN:
            host = int(same[b.adapters.host[adapter]])
            if host == int(a.adapters.host[candidate]) and not _both_have_guids(a, b, candidate, adapter):
                found[adapter] = candidate
    _by_description(a, b, same, found)
    return found


def represent_others(fabric: Fabric, other: Fabric, same: Iterable[int]) -> set[int]:
    """Return the switches of one source that represent several real ones of the other, to be left out.

    Such a switch has no GUID and its cables have no ports; all its neighbours are in the other source or are
    such switches; and the other source has ports. Examples are a scheduler's single core above all leaves,
    and the groups of groups of its blocks.

    Args:
        fabric, other: Fabrics of the two sources.
        same: Vertices of `fabric` that are also in `other`.
    """
    known = set(same)
    links = fabric.links
    if not has_ports(other):
        return set()
    real = known.union(links.source[links.source_port >= 0].tolist())
    found = {v for v in fabric.switches.tolist() if v not in real and not fabric.guid[v]}
    around = {v: set(_neighbours(fabric, v)) for v in found}
    while others := {v for v in found if not around[v] or around[v] - known - found}:
        found -= others
    return found if any(around[v] & known for v in found) else set()


def _by_description(a: Fabric, b: Fabric, same: Ints, found: Ints) -> None:
    """Match remaining adapters with the same host and name, if both sources have as many of them."""
    left_a = _named(a, np.arange(len(a), dtype=np.int32), set(found.tolist()))
    left_b = _named(b, same, set(np.flatnonzero(found != UNKNOWN).tolist()))
    for key, members in left_b.items():
        others = left_a.get(key, [])
        guids = {_both_have_guids(a, b, one, other) for one, other in zip(others, members, strict=False)}
        if len(others) == len(members) and guids == {False}:
            found[members] = others


def _named(fabric: Fabric, vertex: Ints, done: set[int]) -> dict[tuple[int, str], list[int]]:
    """Return adapters by host (in the numbers of `vertex`) and name, each list in the order of GUIDs."""
    adapters = fabric.adapters
    lowest = {adapter: guid for guid, adapter in sorted(_ids(fabric).items(), reverse=True)}
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    for adapter in sorted(range(len(adapters)), key=lambda adapter: lowest.get(adapter, 0)):
        host = int(vertex[adapters.host[adapter]])
        if adapter not in done and host != UNKNOWN and adapters.names[adapter]:
            found[host, adapters.names[adapter]].append(adapter)
    return found


def _by_adapters(a: Fabric, b: Fabric, same: Ints) -> None:
    """Match hosts with the same adapters; if those belong to several hosts, the one with most of them."""
    known, votes = _ids(a), defaultdict[int, Counter[int]](Counter)
    for number, adapter in _ids(b).items():
        if number in known:
            votes[int(b.adapters.host[adapter])][int(a.adapters.host[known[number]])] += 1
    for host, counted in votes.items():
        same[host] = max(counted, key=lambda v: (counted[v], -v))


def _by_name(a: Fabric, b: Fabric, same: Ints) -> None:
    """Match vertices of the same name and kind, hosts in short or in full, unless their GUIDs differ."""
    taken = set(same.tolist())
    index = {name: v for v, name in enumerate(a.names)}
    free = [b.names[v] for v in b.hosts.tolist() if same[v] == UNKNOWN]
    alike = same_hosts(free, [a.names[w] for w in a.hosts.tolist() if w not in taken])
    for v, name in enumerate(b.names):
        w = index.get(alike.get(name, name), UNKNOWN)
        if same[v] != UNKNOWN or w == UNKNOWN or w in taken or a.kind[w] != b.kind[v]:
            continue
        differ = a.guid[w] and b.guid[v] and a.guid[w] != b.guid[v]
        if not differ or (a.lid[w] and a.lid[w] == b.lid[v]):
            same[v] = w


def _by_neighbours(a: Fabric, b: Fabric, same: Ints) -> None:
    """Match switches linked to the same known vertices; several such switches are matched by name."""
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
    """Return unmatched switches by their neighbouring hosts, or by all neighbours if they have no hosts."""
    found: dict[frozenset[int], list[int]] = defaultdict(list)
    done = set(matched)
    for v in fabric.switches.tolist():
        if v in done:
            continue
        around = _neighbours(fabric, v)
        hosts = [w for w in around if fabric.kind[w] == HOST]
        significant = hosts or around
        if significant and all(w in known for w in significant):
            found[frozenset(known[w] for w in significant)].append(v)
    return found


def _neighbours(fabric: Fabric, vertex: int) -> list[int]:
    found: list[int] = fabric.neighbour[fabric.indptr[vertex] : fabric.indptr[vertex + 1]].tolist()
    return found


def _ids(fabric: Fabric) -> dict[int, int]:
    """Return the adapter of each GUID, of the adapter itself or of one of its ports."""
    adapters = fabric.adapters
    found = {guid: a for a, guid in enumerate(adapters.guid.tolist()) if guid}
    ports = zip(adapters.port_guid.tolist(), adapters.port_adapter.tolist(), strict=True)
    return {guid: a for guid, a in ports if guid} | found


def _by_switch_port(fabric: Fabric, vertex: Ints) -> dict[tuple[int, int], int]:
    """Return adapters by the switch (in the numbers of `vertex`) and port they are connected to."""
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


def _both_have_guids(a: Fabric, b: Fabric, one: int, other: int) -> bool:
    """Return True if both adapters have node GUIDs: unequal ones, since equal ones were matched before."""
    return bool(a.adapters.guid[one]) and bool(b.adapters.guid[other])


def described(fabric: Fabric, vertex: int) -> str:
    """Return the kind of a vertex, with its GUID if it has one."""
    kind = "host" if fabric.kind[vertex] == HOST else "switch"
    guid = format_guid(int(fabric.guid[vertex]))
    return f"{kind} {guid}" if guid else kind


MOST = 10
"""Largest number of lines of one kind; the rest is counted."""


class Disagreements:
    """Disagreements between an earlier and a later source.

    Args:
        first, second: Paths of the two sources.
    """

    def __init__(self, first: str, second: str) -> None:
        self.first = first
        self.second = second
        self._kinds: dict[str, list[str]] = {}

    def add(self, kind: str, line: str) -> None:
        """Add one disagreement of a kind."""
        self._kinds.setdefault(kind, []).append(line)

    def lines(self, *, without: str = "") -> Iterator[str]:
        """Yield one line per disagreement, ordered by kind, except those of the kind `without`."""
        between = f"{self.first} and {self.second} disagree"
        for kind, lines in self._kinds.items():
            if kind == without:
                continue
            for line in lines[:MOST]:
                yield f"{between}: {line}"
            if len(lines) > MOST:
                yield f"{between}: {len(lines) - MOST} more of {kind}"
