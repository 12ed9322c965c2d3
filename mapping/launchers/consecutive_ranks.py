r"""A placement for torchrun and DeepSpeed, which give consecutive ranks to a host.

Only placements with consecutive ranks on each host can be written; ``almanac map --consecutive`` finds them.
Based on the launchers' documentation and source, not tested.

torchrun: one host per line, the first is node rank 0; every host has the same number of ranks,
``--nproc-per-node``. On each host::

    node=$(($(grep -nxF "$(hostname)" FILE | cut -d: -f1) - 1))
    torchrun --nnodes NODES --nproc-per-node RANKS_A_NODE --node-rank $node \
        --master-addr "$(head -n 1 FILE)" ...

DeepSpeed: one line ``HOST slots=N`` per host, filled from the top; ``deepspeed --hostfile FILE program.py``.
"""

from __future__ import annotations

from mapping.launchers.validation import runs_of_ranks
from registry.errors import InvalidPlacement
from registry.model import Fabric, Placement


def write_torchrun(placement: Placement, fabric: Fabric) -> str:
    """Return one line per node, in the order of node ranks."""
    nodes = _consecutive(placement, fabric, "torchrun")
    for host, count in nodes:
        if count != nodes[0][1]:
            raise InvalidPlacement(
                f"host {host} has {count} ranks and {nodes[0][0]} has {nodes[0][1]}: torchrun starts the "
                "same number on every node"
            )
    return "".join(f"{host}\n" for host, _ in nodes)


def write_deepspeed(placement: Placement, fabric: Fabric) -> str:
    """Return one line per host, in rank order."""
    nodes = _consecutive(placement, fabric, "DeepSpeed")
    return "".join(f"{host} slots={count}\n" for host, count in nodes)


def _consecutive(placement: Placement, fabric: Fabric, launcher: str) -> list[tuple[str, int]]:
    """Return the hosts in rank order and their numbers of ranks, if the ranks of each are consecutive."""
    runs = runs_of_ranks(placement, fabric)
    previous: set[str] = set()
    for host, _ in runs:
        if host in previous:
            raise InvalidPlacement(
                f"the ranks of host {host} are not consecutive: {launcher} gives consecutive ranks to a "
                "host; almanac map --consecutive finds such placements"
            )
        previous.add(host)
    return runs
