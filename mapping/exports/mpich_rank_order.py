"""A placement as MPICH_RANK_ORDER of HPE Cray MPICH: which rank sits in each slot.

The launcher fills the slots of the first host, then of the second, in the order of the allocation, and
takes their ranks from the list: it is the inverse of the other formats' lists. Use it with
``MPICH_RANK_REORDER_METHOD=3``, the file ``MPICH_RANK_ORDER`` in the working folder. The syntax is from
documentation, not seen accepted.
"""

from __future__ import annotations

import numpy as np

from registry.errors import InvalidPlacement
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """One line of ranks between commas.

    Raises
    ------
    InvalidPlacement
        A host before the last used one has free slots: the launcher would fill them, which would move
        all ranks after them.
    """
    allocation = placement.allocation
    taken = np.bincount(placement.host_of_rank, minlength=len(fabric))[allocation.hosts]
    last = int(np.flatnonzero(taken)[-1])
    free = np.flatnonzero(taken[:last] < allocation.slots[:last])
    if len(free):
        host = fabric.names[allocation.hosts[free[0]]]
        raise InvalidPlacement(
            f"host {host} has free slots before the last used host: the launcher fills slots in the order of "
            "the allocation, so that a list of ranks cannot leave any free"
        )
    place = np.empty(len(fabric), np.int64)
    place[allocation.hosts] = np.arange(len(allocation))
    order = np.lexsort((placement.slot_of_rank, place[placement.host_of_rank]))
    return ",".join(str(rank) for rank in order.tolist()) + "\n"
