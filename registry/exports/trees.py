"""A network of switches as the tree that a scheduler needs, and host lists as Slurm reads them.

A network that is a tree is written as it is: each host is on one switch, each switch below at most one other,
and none has both hosts and switches below it. If the source has levels, as topology.conf has, every one is
kept; else the switch in the middle is at the top, and one with a single switch below is left out.

Other networks are no trees: a leaf has many spines above it. A scheduler needs the distances of hosts, so one
switch of the tree represents all switches with the same function:

1. Hosts on the same switches are a group: those of a leaf, or of all leaves of a set of rails. Hosts on only
   some of a group's switches belong to it if they are not more than its hosts: a broken rail makes no new
   group, and a login node on two leaves does not join them.
2. The level of a switch is its distance from the nearest host. For each level from 2 on, groups connected by
   switches up to that level get one switch of the tree above them; levels that connect nothing new are left
   out.

All groups of a dragonfly are thus directly below one switch, although hosts within a group are nearer.

A network of switches for Kubernetes: labels of nodes, Kueue's Topology, Volcano's HyperNodes.

The tree is that of `registry.exports.trees`. A host is the node of its name in lower case; names of
switches become lower-case words with ``-``. Hosts without a switch are left out.

Sources: the projects' published schemas (kueue.x-k8s.io/v1beta2, topology.volcano.sh/v1alpha1); not tested
with a cluster.

Slurm's ``topology.conf`` and ``topology.yaml``, from the observed wiring.

A switch of the files represents all switches with its function (`registry.exports.trees`), a block is
the hosts on the same leaf switches. Hosts without a switch are listed in a comment. Sources:
topology.conf(5), topology.yaml(5); blocks were tried with Slurm 24.11 and 26.05, YAML with 26.05.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from registry.errors import InvalidValue
from registry.model import HOST, Fabric, Floats, Ints, Longs
from registry.model.hosts import HOST_LABEL, label_lines, node_name

GIGABIT = 1e9 / 8
"""Bytes/s."""
_NUMBERED = re.compile(r"(?:.*\D)?\d{1,9}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


class Tier(NamedTuple):
    """A switch of the tree."""

    name: str
    """Name that configuration files can contain; unique, also among hosts."""
    represented: tuple[str, ...]
    """Switches of the fabric that it represents."""
    children: tuple[str, ...]
    """Switches of the tree directly below; empty at the lowest level."""
    hosts: tuple[str, ...]
    """Hosts directly below; empty except at the lowest level."""
    capacity: float
    """Least bytes/s from anything directly below to it."""


class Tree(NamedTuple):
    """Switches of the tree, a parent before its children."""

    tiers: tuple[Tier, ...]
    """Switches of the tree."""
    left_out: tuple[str, ...]
    """Hosts without a switch."""
    empty: tuple[str, ...]
    """Switches with neither hosts nor switches with hosts below, which are left out, too."""


def tiers(fabric: Fabric) -> Tree:
    """Return the tree of a switched network.

    Raises:
        InvalidValue: No host is on a switch, as in a torus; configuration files cannot contain a host's name.
    """
    for host in fabric.hosts.tolist():
        if not _NAME.fullmatch(fabric.names[host]):
            raise InvalidValue("fabric.names", f"a scheduler does not accept {fabric.names[host]!r}")
    groups, left_out = _groups(fabric)
    if not groups:
        raise InvalidValue("fabric.links", "no host is on a switch: a direct network has no tree of switches")
    if (tree := _as_it_is(fabric, left_out)) is not None:
        return tree
    names = _Names(fabric)
    level = _levels(fabric)
    upward = np.bincount(
        fabric.links.source, fabric.links.capacity * (level[fabric.links.target] == 1), minlength=len(fabric)
    )
    found, top = [], []
    for switches, hosts in groups:
        name = names.of(min(switches))
        represented = tuple(fabric.names[vertex] for vertex in sorted(switches))
        inside = tuple(fabric.names[host] for host in hosts)
        found.append(Tier(name, represented, (), inside, float(upward[hosts].min())))
        top.append((name, np.asarray(sorted(switches), np.int64)))
    for height in range(2, max(2, int(level.max())) + 1):
        top, new = _joined(fabric, level, height, top, names)
        found += new
    empty = tuple(fabric.names[switch] for switch in np.flatnonzero(level < 0).tolist())
    return Tree(tuple(reversed(found)), tuple(fabric.names[host] for host in left_out), empty)


def _as_it_is(fabric: Fabric, left_out: Sequence[int]) -> Tree | None:
    """Return the tree that a fabric is, or None if it is none; `left_out` are the hosts without a switch."""
    above = _switches_above(fabric)
    if above is None:
        return None
    first, height = _used(fabric, above)
    below = defaultdict[int, list[int]](list)
    for vertex in sorted(above, key=lambda vertex: first.get(vertex, -1)):
        if vertex in first:
            below[above[vertex][0]].append(vertex)
    if any(len({int(fabric.kind[vertex]) for vertex in inside}) > 1 for inside in below.values()):
        return None
    if fabric.level is None:
        _leave_out_single(fabric, above, below)
    names = _Names(fabric)
    found: dict[int, Tier] = {}
    for switch in sorted(below, key=lambda switch: (height[switch], first[switch])):
        hosts = tuple(fabric.names[vertex] for vertex in below[switch] if fabric.kind[vertex] == HOST)
        children = tuple(found[vertex].name for vertex in below[switch] if vertex in found)
        least = min(above[vertex][1] for vertex in below[switch])
        found[switch] = Tier(names.of(switch), (fabric.names[switch],), children, hosts, least)
    empty = tuple(fabric.names[switch] for switch in fabric.switches.tolist() if switch not in first)
    return Tree(tuple(reversed(found.values())), tuple(fabric.names[host] for host in left_out), empty)


def _leave_out_single(
    fabric: Fabric, above: dict[int, tuple[int, float]], below: dict[int, list[int]]
) -> None:
    """Leave switches with a single switch below out of the tree."""
    single = [one for one, inside in below.items() if len(inside) == 1 and fabric.kind[inside[0]] != HOST]
    for switch in single:
        (only,) = below.pop(switch)
        parent, capacity = above.get(switch, (-1, 0.0))
        if parent in below:
            below[parent][below[parent].index(switch)] = only
            above[only] = parent, min(above[only][1], capacity)


def _switches_above(fabric: Fabric) -> dict[int, tuple[int, float]] | None:
    """Return the switch above each host and switch, and the bytes/s to it; None if one has several."""
    level = _levels_of_tree(fabric) if fabric.level is None else fabric.level
    if level is None:
        return None
    rank = np.where(fabric.kind == HOST, 0, level)
    arc = np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr))
    upward = rank[arc] <= rank[fabric.neighbour]
    below, above = arc[upward], fabric.neighbour[upward]
    if bool((rank[below] == rank[above]).any()) or len(np.unique(below)) < len(below):
        return None
    both = zip(above.tolist(), fabric.capacity[upward].tolist(), strict=True)
    return dict(zip(below.tolist(), both, strict=True))


def _levels_of_tree(fabric: Fabric) -> Ints | None:
    """Return levels of a tree's switches, the highest in its middle; None if there is a ring of switches."""
    level = np.zeros(len(fabric), np.int32)
    around = {
        switch: [
            v
            for v in fabric.neighbour[fabric.indptr[switch] : fabric.indptr[switch + 1]].tolist()
            if fabric.kind[v] != HOST
        ]
        for switch in fabric.switches.tolist()
    }
    left = {switch: len(near) for switch, near in around.items()}
    height, ends = 0, [switch for switch, count in left.items() if count <= 1]
    while ends:
        height += 1
        level[ends] = height
        beside = [near for switch in ends for near in around[switch]]
        for near in beside:
            left[near] -= 1
        ends = [near for near in dict.fromkeys(beside) if left[near] <= 1 and not level[near]]
    return level if all(level[switch] for switch in around) else None


def _used(fabric: Fabric, above: Mapping[int, tuple[int, float]]) -> tuple[dict[int, int], dict[int, int]]:
    """Return the first host below each switch with hosts, and of itself for a host; and their heights."""
    first, height = dict[int, int](), dict[int, int]()
    for host in fabric.hosts.tolist():
        vertex = host
        first[vertex], height[vertex] = host, 0
        while vertex in above and height.get(above[vertex][0], 0) <= height[vertex]:
            switch = above[vertex][0]
            first.setdefault(switch, host)
            height[switch] = height[vertex] + 1
            vertex = switch
    return first, height


def _groups(fabric: Fabric) -> tuple[list[tuple[frozenset[int], list[int]]], list[int]]:
    """Return switches and hosts of each group by its first host, and the hosts without a switch."""
    on: dict[frozenset[int], list[int]] = {}
    left_out = []
    for host in fabric.hosts.tolist():
        near = fabric.neighbour[fabric.indptr[host] : fabric.indptr[host + 1]]
        switches = frozenset(near[fabric.kind[near] != HOST].tolist())
        if switches:
            on.setdefault(switches, []).append(host)
        else:
            left_out.append(host)
    groups: dict[frozenset[int], list[int]] = {}
    of_switch: dict[int, list[frozenset[int]]] = {}
    for switches in sorted(on, key=lambda one: (-len(one), -len(on[one]), on[one][0])):
        larger = [
            one
            for one in of_switch.get(min(switches), ())
            if switches < one and len(on[one]) >= len(on[switches])
        ]
        into = max(larger, key=lambda one: (len(groups[one]), -groups[one][0]), default=switches)
        if into is switches:
            groups[switches] = []
            for switch in switches:
                of_switch.setdefault(switch, []).append(switches)
        groups[into] += on[switches]
    return sorted(
        ((key, sorted(hosts)) for key, hosts in groups.items()), key=lambda one: one[1][0]
    ), left_out


def _levels(fabric: Fabric) -> Ints:
    """Return the distance of each vertex from the nearest host; -1 if there is no path."""
    level = np.full(len(fabric), -1, np.int32)
    level[fabric.hosts] = 0
    source, target = fabric.links.source, fabric.links.target
    for distance in range(1, len(fabric) + 1):
        reached = target[(level[source] == distance - 1) & (level[target] < 0)]
        if not len(reached):
            break
        level[reached] = distance
    return level


def _joined(
    fabric: Fabric, level: Ints, height: int, top: list[tuple[str, Longs]], names: _Names
) -> tuple[list[tuple[str, Longs]], list[Tier]]:
    """Join the groups by switches up to a level; return the names and switches on top, and the new tiers."""
    part = _components(fabric, level, height, top)
    upward = _upward(fabric, part, top)
    children: dict[int, list[int]] = {}
    for index, (_, members) in enumerate(top):
        children.setdefault(int(part[members[0]]), []).append(index)
    above, new = [], []
    for label, below in children.items():
        if len(below) == 1:
            above.append(top[below[0]])
            continue
        members = np.flatnonzero(part == label)
        own = np.setdiff1d(members, np.concatenate([top[index][1] for index in below]))
        highest = own[level[own] == level[own].max()] if len(own) else own
        name = names.of(int(highest[0])) if len(highest) else names.made(f"tier{height}")
        represented = tuple(fabric.names[vertex] for vertex in own.tolist())
        inside = tuple(top[index][0] for index in below)
        new.append(Tier(name, represented, inside, (), float(upward[below].min())))
        above.append((name, members))
    return above, new


def _components(fabric: Fabric, level: Ints, height: int, top: list[tuple[str, Longs]]) -> Ints:
    """Return the component of each switch up to a level, with the groups on top joined; else -1."""
    inside = (level >= 1) & (level <= height) & (fabric.kind != HOST)
    links = inside[fabric.links.source] & inside[fabric.links.target]
    pairs = [np.stack((fabric.links.source[links], fabric.links.target[links]), axis=1).astype(np.int64)]
    pairs += [np.stack((np.full(len(one), one[0]), one), axis=1) for _, one in top]
    ends = np.concatenate(pairs)
    graph = coo_array((np.ones(len(ends)), ends.T), shape=(len(fabric),) * 2)
    label = connected_components(graph, directed=False)[1]
    return np.where(inside, label, -1).astype(np.int32)


def _upward(fabric: Fabric, part: Ints, top: list[tuple[str, Longs]]) -> Floats:
    """Return the bytes/s from the switches of each group to others of its component as float64[top].

    Shared switches count once.
    """
    child = np.full(len(fabric), -1, np.int64)
    for index in range(len(top) - 1, -1, -1):
        child[top[index][1]] = index
    source, target = fabric.links.source, fabric.links.target
    rows = (child[source] >= 0) & (child[source] != child[target]) & (part[source] == part[target])
    return np.bincount(child[source[rows]], fabric.links.capacity[rows], len(top)).astype(np.float64)


def fold(names: Iterable[str]) -> str:
    """Return host names as a list of Slurm, ``node[01-16],login``: one bracket per name, at its end.

    Names that end in a number of at most 9 digits are folded and come first.
    """
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    given = sorted(set(names))
    ends = [name for name in given if _NUMBERED.fullmatch(name)]
    numbered = NodeSet.fromlist(ends, resolver=RESOLVER_NOGROUP)
    numbered.fold_axis = (-1,)
    others = sorted(set(given).difference(ends))
    return ",".join(part for part in (str(numbered), *others) if part)


class _Names:
    """Unique names of the switches of the tree that configuration files can contain."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._taken = Counter(fabric.names[host] for host in fabric.hosts.tolist())

    def of(self, vertex: int) -> str:
        """Return a name made from a switch of the fabric."""
        return self.made(self._fabric.names[vertex])

    def made(self, text: str) -> str:
        """Return a name made from a text, with a number if it is taken."""
        plain = name = _NOT_IN_NAMES.sub("_", text).lstrip(".-") or "switch"
        while name in self._taken:
            self._taken[plain] += 1
            name = f"{plain}-{self._taken[plain]}"
        self._taken[name] += 1
        return name


LABEL = "fabric-almanac/level-{}"
"""Label of a node with its switch of a level; level 1 is next to the hosts."""
MOST_LEVELS = 15
"""Levels of a Kueue Topology, without the hosts."""
_LONGEST_LABEL = 63


class _Level(NamedTuple):
    """A switch of the tree, with its name in Kubernetes and its height above the hosts."""

    tier: Tier
    name: str
    height: int


def write_labels(fabric: Fabric) -> str:
    """Return commands that label each node with its switch of each level, for Kueue's Topology.

    A node whose way up skips a level has the switch below it as that level's label, too.
    """
    levels = _label_levels(fabric)
    above = {child: level for level in levels.values() for child in level.tier.children}
    most = max(level.height for level in levels.values())

    def labels() -> Iterator[tuple[str, dict[str, str]]]:
        for level in (one for one in levels.values() if one.tier.hosts):
            way = [level, *_way_up(level, above)]
            of = {
                LABEL.format(height): max(
                    (one for one in way if one.height <= height), key=lambda one: one.height
                ).name
                for height in range(most, 0, -1)
            }
            yield from ((node, of) for node in _nodes(level.tier))

    return label_lines(labels())


def write_kueue(fabric: Fabric) -> str:
    """Return a Topology of Kueue (YAML): the labels of `write_labels`, highest level first, then the host.

    Raises:
        InvalidValue: The tree has more levels than a Topology.
    """
    most = max(level.height for level in _label_levels(fabric).values())
    if most > MOST_LEVELS:
        raise InvalidValue("fabric.links", f"{most} levels of switches: Kueue allows {MOST_LEVELS}")
    labels = [*(LABEL.format(height) for height in range(most, 0, -1)), HOST_LABEL]
    return _yaml(
        [
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "Topology",
                "metadata": {"name": "fabric"},
                "spec": {"levels": [{"nodeLabel": label} for label in labels]},
            }
        ]
    )


def write_volcano(fabric: Fabric) -> str:
    """Return a HyperNode of Volcano (YAML) for each switch of the tree; its tier is its level."""
    levels = _label_levels(fabric)
    return _yaml(
        {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": level.name},
            "spec": {
                "tier": level.height,
                "members": [
                    {"type": kind, "selector": {"exactMatch": {"name": name}}}
                    for kind, names in (
                        ("HyperNode", [levels[child].name for child in level.tier.children]),
                        ("Node", _nodes(level.tier)),
                    )
                    for name in names
                ],
            },
        }
        for level in levels.values()
    )


def _label_levels(fabric: Fabric) -> dict[str, _Level]:
    """Return the switches of the tree by their names there, those next to hosts first."""
    found: dict[str, _Level] = {}
    taken: set[str] = set()
    nodes: dict[str, str] = {}
    for tier in reversed(tiers(fabric).tiers):
        height = 1 + max((found[child].height for child in tier.children), default=0)
        found[tier.name] = _Level(tier, _object_name(tier.name, taken), height)
        for host, node in zip(tier.hosts, _nodes(tier), strict=True):
            if nodes.setdefault(node, host) != host:
                raise InvalidValue("fabric.names", f"{host!r} and {nodes[node]!r} are one node's name")
    return found


def _way_up(level: _Level, above: Mapping[str, _Level]) -> Iterator[_Level]:
    while (upper := above.get(level.tier.name)) is not None:
        yield upper
        level = upper


def _nodes(tier: Tier) -> list[str]:
    return [node_name(host) for host in tier.hosts]


def _object_name(text: str, taken: set[str]) -> str:
    """Return a new name of an object that is also a label's value (RFC 1123), made from a text."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "switch"
    plain = name = plain[:_LONGEST_LABEL].rstrip("-")
    number = 1
    while name in taken:
        number += 1
        end = f"-{number}"
        name = plain[: _LONGEST_LABEL - len(end)].rstrip("-") + end
    taken.add(name)
    return name


def _yaml(objects: Iterable[Mapping[str, Any]]) -> str:
    import yaml

    return "".join(f"---\n{yaml.safe_dump(one, sort_keys=False, width=100_000)}" for one in objects)


TOPOLOGY = "fabric"
"""Name of the topology in ``topology.yaml``, which partitions can select."""
_SHOWN = 8
"""Most switches that a comment lists."""


def write_tree(fabric: Fabric) -> str:
    """Return ``topology.conf`` for ``TopologyPlugin=topology/tree``; a switch comes after those below it.

    Comments list the switches that a switch represents. ``LinkSpeed`` is the least Gbit/s from anything below
    to it, which Slurm does not use; it is left out below 1.
    """
    found = tiers(fabric)
    lines = ["# Slurm topology/tree, from the wiring as it was seen", *_left_out(found)]
    for tier in reversed(found.tiers):
        lines += _comment(tier)
        below = f"Switches={fold(tier.children)}" if tier.children else f"Nodes={fold(tier.hosts)}"
        speed = round(tier.capacity / GIGABIT)
        lines.append(f"SwitchName={tier.name} {below}" + (f" LinkSpeed={speed}" if speed > 1 else ""))
    return "\n".join(lines) + "\n"


def write_block(fabric: Fabric) -> str:
    """Return ``topology.conf`` for ``TopologyPlugin=topology/block`` (Slurm 23.11 and later).

    ``BlockSizes`` is the number of hosts of the smallest block: Slurm uses blocks of one size, more hosts of
    larger ones are spare.
    """
    found = tiers(fabric)
    lines = ["# Slurm topology/block, from the wiring as it was seen", *_left_out(found)]
    blocks = [tier for tier in reversed(found.tiers) if tier.hosts]
    lines += [f"BlockName={tier.name} Nodes={fold(tier.hosts)}" for tier in blocks]
    return "\n".join([*lines, f"BlockSizes={min(len(tier.hosts) for tier in blocks)}"]) + "\n"


def write_yaml(fabric: Fabric) -> str:
    """Return ``topology.yaml`` (Slurm 25.05 and later): one tree, the default of the cluster.

    Slurm ignores ``topology.conf`` if there is a ``topology.yaml``.
    """
    import yaml

    found = tiers(fabric)
    switches: list[dict[str, str]] = [
        {"switch": tier.name}
        | ({"children": fold(tier.children)} if tier.children else {"nodes": fold(tier.hosts)})
        for tier in found.tiers
    ]
    topologies: list[dict[str, Any]] = [
        {"topology": TOPOLOGY, "cluster_default": True, "tree": {"switches": switches}}
    ]
    head = "\n".join(["---", "# Slurm topology, from the wiring as it was seen", *_left_out(found)])
    return head + "\n" + str(yaml.safe_dump(topologies, sort_keys=False, width=100_000))


def _left_out(tree: Tree) -> list[str]:
    """Return comments with the hosts and switches that are not in the tree."""
    comments = [f"# on no switch: {fold(tree.left_out)}"] if tree.left_out else []
    if tree.empty:
        shown = ", ".join(name.replace("\\", "/") for name in tree.empty[:_SHOWN])
        more = len(tree.empty) - _SHOWN
        comments.append(f"# no hosts below: {shown}" + (f" and {more} more" if more > 0 else ""))
    return comments


def _comment(tier: Tier) -> list[str]:
    """Return a comment with the switches that a switch represents, unless it is only itself."""
    if tier.represented == (tier.name,) or not tier.represented:
        return []
    shown = [name.replace("\\", "/") for name in tier.represented[:_SHOWN]]
    more = len(tier.represented) - len(shown)
    return [f"# {tier.name}: {', '.join(shown)}" + (f" and {more} more" if more else "")]
