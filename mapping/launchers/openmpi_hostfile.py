"""A placement as Open MPI's host file for its sequential mapping: one host a line in rank order.

``mpirun --hostfile FILE --map-by seq``; other mappings merge the lines of a host, which moves ranks.
The format was accepted by Open MPI 4.1.4.
"""

from __future__ import annotations

from mapping.launchers.checks import host_names
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """A line a rank, in rank order."""
    return "".join(f"{host}\n" for host in host_names(placement, fabric))
