"""A placement as Open MPI's rankfile: ``rank N=HOST slot=K``, K a CPU of the host, from 0.

``mpirun --hostfile HOSTS --rankfile FILE`` (Open MPI 4), ``mpirun --map-by rankfile:file=FILE`` (5).
The format was accepted by Open MPI 4.1.4.
"""

from __future__ import annotations

from mapping.exports.checks import host_names
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """A line a rank, in rank order."""
    hosts = host_names(placement, fabric)
    slots = placement.slot_of_rank.tolist()
    return "".join(
        f"rank {rank}={host} slot={slot}\n"
        for rank, (host, slot) in enumerate(zip(hosts, slots, strict=True))
    )
