"""A placement as a task map of Flux (RFC 34): the node of each task, by its position in the allocation.

``flux run --taskmap=manual:"$(cat FILE)" -N HOSTS -n RANKS ./program``. The map is a JSON array of blocks
``[nodeid, nnodes, ppn, repeat]``: ppn tasks on each of nnodes nodes from nodeid on, repeated `repeat` times.
Node ids count the hosts of the allocation, which must be in the order of the job's R. Checked with the
vectors of RFC 34 (flux-framework/rfc, spec_34), not tested with Flux.
"""

from __future__ import annotations

import json
from itertools import groupby

import numpy as np

from registry.model import Fabric, Placement

Block = tuple[int, int, int, int]


def write(placement: Placement, fabric: Fabric) -> str:
    """Return one line, the array."""
    node = np.zeros(len(fabric), np.int64)
    node[placement.allocation.hosts] = np.arange(len(placement.allocation))
    return json.dumps(task_map(node[placement.host_of_rank].tolist()), separators=(",", ":")) + "\n"


def task_map(nodes: list[int]) -> list[Block]:
    """Return the blocks for the node id of each task."""
    blocks: list[Block] = []
    for node, tasks in groupby(nodes):
        count = sum(1 for _ in tasks)
        last = blocks[-1] if blocks else (0, 0, 0, 0)
        if last[1] and last[2] == count and last[0] + last[1] == node:
            blocks[-1] = (last[0], last[1] + 1, count, 1)
        else:
            blocks.append((node, 1, count, 1))
    return [(*block[:3], sum(1 for _ in equal)) for block, equal in groupby(blocks)]
