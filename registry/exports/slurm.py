"""Slurm's ``topology.conf`` and ``topology.yaml``, from the observed wiring.

A switch of the files represents all switches with its function (`registry.exports.switch_tree`), a block is
the hosts on the same leaf switches. Hosts without a switch are listed in a comment. Sources:
topology.conf(5), topology.yaml(5); blocks were tried with Slurm 24.11 and 26.05, YAML with 26.05.
"""

from __future__ import annotations

from typing import Any

from registry.exports.switch_tree import GIGABIT, Tier, Tree, fold, tiers
from registry.model import Fabric

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
