"""A placement as Open MPI's rankfile: ``rank N=HOST slot=K``, K a core of the host, from 0.

``mpirun --hostfile HOSTS --rankfile FILE`` (Open MPI 4), ``mpirun --map-by rankfile:file=FILE`` (5). Open MPI
4.1.4 accepted the format, counts cores in hwloc's logical order and binds each rank to its core, whatever
``--bind-to`` is. K is the core chosen for the rank, else ranks of a host get 0, 1, ...
"""

from __future__ import annotations

from mapping.launchers.validation import host_names
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """Return one line per rank, in rank order."""
    hosts = host_names(placement, fabric)
    chosen = placement.core_of_rank
    slots = (placement.slot_of_rank if chosen is None else chosen).tolist()
    return "".join(
        f"rank {rank}={host} slot={slot}\n"
        for rank, (host, slot) in enumerate(zip(hosts, slots, strict=True))
    )
