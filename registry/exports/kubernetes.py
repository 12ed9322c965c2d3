"""A network of switches for Kubernetes: labels of nodes, Kueue's Topology, Volcano's HyperNodes.

The tree is that of `registry.exports.switch_tree`. A host is the node of its name in lower case; names of
switches become lower-case words with ``-``. Hosts without a switch are left out.

Sources: the projects' published schemas (kueue.x-k8s.io/v1beta2, topology.volcano.sh/v1alpha1); not tested
with a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from registry.errors import InvalidValue
from registry.exports.switch_tree import Tier, tiers
from registry.model import Fabric
from registry.model.kubernetes_nodes import HOST_LABEL, label_lines, node_name

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
    levels = _levels(fabric)
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

    Raises
    ------
    InvalidValue
        The tree has more levels than a Topology.
    """
    most = max(level.height for level in _levels(fabric).values())
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
    levels = _levels(fabric)
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


def _levels(fabric: Fabric) -> dict[str, _Level]:
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
