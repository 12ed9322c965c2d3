"""A placement as Slurm's host file: one host per line in rank order.

``SLURM_HOSTFILE=FILE srun --ntasks N --distribution arbitrary``; the names must be the scheduler's. Slurm
22.05 accepted the format.
"""

from __future__ import annotations

from mapping.launchers.validation import host_names
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """Return one line per rank, in rank order."""
    return "".join(f"{host}\n" for host in host_names(placement, fabric))
