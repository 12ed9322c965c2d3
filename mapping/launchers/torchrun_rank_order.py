r"""A placement as the order of nodes for torchrun: one host per line, the first is node rank 0.

torchrun gives consecutive ranks to a node, ``--nproc-per-node`` each, so a placement can be written only if
every host has the same number of consecutive ranks. On each host::

    node=$(($(grep -nxF "$(hostname)" FILE | cut -d: -f1) - 1))
    torchrun --nnodes NODES --nproc-per-node RANKS_A_NODE --node-rank $node \
        --master-addr "$(head -n 1 FILE)" ...

Based on PyTorch's documentation, not tested.
"""

from __future__ import annotations

from mapping.launchers.validation import consecutive
from registry.errors import InvalidPlacement
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """Return one line per node, in the order of node ranks.

    Raises
    ------
    InvalidPlacement
        The ranks of a host are not consecutive, or hosts have different numbers of ranks.
    """
    nodes = consecutive(placement, fabric, "torchrun")
    for host, count in nodes:
        if count != nodes[0][1]:
            raise InvalidPlacement(
                f"host {host} has {count} ranks and {nodes[0][0]} has {nodes[0][1]}: torchrun starts the "
                "same number on every node"
            )
    return "".join(f"{host}\n" for host, _ in nodes)
