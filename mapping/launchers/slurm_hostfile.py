"""A placement as Slurm's host file: one host a line in rank order.

``SLURM_HOSTFILE=FILE srun --ntasks N --distribution arbitrary``; the names must be the scheduler's.
The format was accepted by Slurm 22.05.
"""

from __future__ import annotations

from mapping.launchers.checks import host_names
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """A line a rank, in rank order."""
    return "".join(f"{host}\n" for host in host_names(placement, fabric))
