"""A fabric as Slurm's ``topology.conf`` for ``TopologyPlugin=topology/block``: a block a group of hosts.

A block is what hangs on the same leaf switches (`registry.exports.tiers`). ``BlockSizes`` is the number of
hosts of the smallest block: Slurm plans with blocks of one size, hosts beyond it in larger ones are spare.
Hosts on no switch stand in a comment. Source: topology.conf(5) of Slurm 23.11 and later, not seen accepted.
"""

from __future__ import annotations

from registry.exports.hostlists import fold
from registry.exports.tiers import tiers
from registry.model import Fabric


def write(fabric: Fabric) -> str:
    """Lines of ``BlockName=`` and one of ``BlockSizes=``.

    Raises
    ------
    InvalidValue
        No host is on a switch; a host's name that Slurm cannot take.
    """
    found = tiers(fabric)
    lines = ["# Slurm topology/block, from the wiring as it was seen"]
    lines += [f"# on no switch: {fold(found.left_out)}"] if found.left_out else []
    blocks = [tier for tier in reversed(found.tiers) if tier.hosts]
    lines += [f"BlockName={tier.name} Nodes={fold(tier.hosts)}" for tier in blocks]
    return "\n".join([*lines, f"BlockSizes={min(len(tier.hosts) for tier in blocks)}"]) + "\n"
