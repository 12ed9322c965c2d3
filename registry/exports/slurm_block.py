"""Slurm's ``topology.conf`` for ``TopologyPlugin=topology/block``: one block per group of hosts.

A block is the hosts on the same leaf switches (`registry.exports.switch_tree`). ``BlockSizes`` is the number
of hosts of the smallest block: Slurm uses blocks of one size, more hosts of larger ones are spare. Hosts
without a switch are listed in a comment. Source: topology.conf(5) of Slurm 23.11 and later; not tested with
Slurm.
"""

from __future__ import annotations

from registry.exports.switch_tree import fold, tiers
from registry.model import Fabric


def write(fabric: Fabric) -> str:
    """Return lines with ``BlockName=`` and one with ``BlockSizes=``.

    Raises
    ------
    InvalidValue
        No host is on a switch, or Slurm cannot accept a host's name.
    """
    found = tiers(fabric)
    lines = ["# Slurm topology/block, from the wiring as it was seen"]
    lines += [f"# on no switch: {fold(found.left_out)}"] if found.left_out else []
    blocks = [tier for tier in reversed(found.tiers) if tier.hosts]
    lines += [f"BlockName={tier.name} Nodes={fold(tier.hosts)}" for tier in blocks]
    return "\n".join([*lines, f"BlockSizes={min(len(tier.hosts) for tier in blocks)}"]) + "\n"
