"""A placement as the rankfile of Open MPI: ``rank N=HOST slot=K``, K a core of the host, from 0.

Open MPI 4: ``mpirun --hostfile HOSTS --rankfile FILE``. 4.1.4 accepted the format, counts cores in hwloc's
logical order and binds each rank to its core, whatever ``--bind-to`` is. K is the core chosen for the rank,
else ranks of a host get 0, 1, ...

Open MPI 5 (its launcher is PRRTE): ``mpirun --hostfile HOSTS --map-by rankfile:file=FILE ./program``, or
``prterun``; version 4 refuses a file given in this way. The hosts must be known from a scheduler or
``--hostfile``; some versions do not accept a ``-`` in the file's name. From documentation and published
scripts, not tested.
"""

from __future__ import annotations

from mapping.launchers.validation import host_names
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """Return one line per rank."""
    hosts = host_names(placement, fabric)
    chosen = placement.core_of_rank
    slots = (placement.slot_of_rank if chosen is None else chosen).tolist()
    return "".join(
        f"rank {rank}={host} slot={slot}\n"
        for rank, (host, slot) in enumerate(zip(hosts, slots, strict=True))
    )
