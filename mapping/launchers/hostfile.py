"""A placement as the host file of Open MPI or Slurm: one host per line in rank order.

Open MPI: ``mpirun --hostfile FILE --map-by seq``; other mappings merge the lines of a host, which moves
ranks. 4.1.4 accepted the format.

Slurm: ``SLURM_HOSTFILE=FILE srun --ntasks N --distribution arbitrary``; the names must be the scheduler's.
22.05 accepted the format.
"""

from __future__ import annotations

from mapping.launchers.validation import host_names
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """Return one line per rank."""
    return "".join(f"{host}\n" for host in host_names(placement, fabric))
