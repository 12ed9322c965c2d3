"""A placement as MPICH_RANK_ORDER of HPE Cray MPICH: the rank in each slot.

The launcher fills the slots of the first host, then of the second, in the order of the allocation, and takes
their ranks from the list: it is the inverse of the other formats. Use it with ``MPICH_RANK_REORDER_METHOD=3``
and the file ``MPICH_RANK_ORDER`` in the working folder or named by ``MPICH_RANK_REORDER_FILE``. The syntax is
from documentation and published files, not tested.

The list does not name the hosts of the slots. A comment before it does, ``# hosts a*2 b*2``, if their names
allow it; `ingest.formats.placements.mpich_rank_order` reads it.
"""

from __future__ import annotations

import numpy as np

from mapping.launchers.validation import launchable
from registry.errors import InvalidPlacement
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """Return one line of ranks separated by commas, after a comment with the hosts.

    Free slots on a host before the last used one are an error: the launcher would fill them and shift all
    later ranks.
    """
    allocation = placement.allocation
    taken = np.bincount(placement.host_of_rank, minlength=len(fabric))[allocation.hosts]
    last = int(np.flatnonzero(taken)[-1])
    free = np.flatnonzero(taken[:last] < allocation.slots[:last])
    if len(free):
        host = fabric.names[allocation.hosts[free[0]]]
        raise InvalidPlacement(
            f"host {host} has free slots before the last used host: the launcher fills slots in the order of "
            "the allocation, so a list of ranks cannot leave any free"
        )
    position = np.empty(len(fabric), np.int64)
    position[allocation.hosts] = np.arange(len(allocation))
    order = np.lexsort((placement.slot_of_rank, position[placement.host_of_rank]))
    return _hosts(placement, fabric, last) + ",".join(str(rank) for rank in order.tolist()) + "\n"


def _hosts(placement: Placement, fabric: Fabric, last: int) -> str:
    """Return a comment with the hosts up to the last used one, and their slots."""
    allocation = placement.allocation
    names = [fabric.names[vertex] for vertex in allocation.hosts[: last + 1]]
    if not all(map(launchable, names)):
        return ""
    hosts = zip(names, allocation.slots.tolist(), strict=False)
    return f"# hosts {' '.join(f'{name}*{slots}' for name, slots in hosts)}\n"
