"""A placement as the order of nodes for torchrun: one host a line, the first is node rank 0.

torchrun gives consecutive ranks to a node, ``--nproc-per-node`` each, so a placement can be said only where
every host has as many consecutive ranks. On each host::

    node=$(($(grep -nxF "$(hostname)" FILE | cut -d: -f1) - 1))
    torchrun --nnodes NODES --nproc-per-node RANKS_A_NODE --node-rank $node \\
        --master-addr "$(head -n 1 FILE)" ...

From PyTorch's documentation, not tried.
"""

from __future__ import annotations

from mapping.launchers.checks import consecutive
from registry.errors import InvalidPlacement
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """A line a node, in the order of node ranks.

    Raises
    ------
    InvalidPlacement
        A host whose ranks do not follow one another, or hosts with different numbers of ranks.
    """
    nodes = consecutive(placement, fabric, "torchrun")
    for host, count in nodes:
        if count != nodes[0][1]:
            raise InvalidPlacement(
                f"host {host} has {count} ranks and {nodes[0][0]} has {nodes[0][1]}: torchrun starts as many "
                "on every node"
            )
    return "".join(f"{host}\n" for host, _ in nodes)
