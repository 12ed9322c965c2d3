"""A placement as Open MPI's host file for its sequential mapping: one host per line in rank order.

``mpirun --hostfile FILE --map-by seq``; other mappings merge the lines of a host, which moves ranks. Open MPI
4.1.4 accepted the format.
"""

from __future__ import annotations

from mapping.launchers.validation import host_names
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """Return one line per rank, in rank order."""
    return "".join(f"{host}\n" for host in host_names(placement, fabric))
