"""A placement as Intel MPI's machine file: ``HOST:COUNT`` a line, a run of ranks each.

``mpirun -machinefile FILE -n RANKS ./program``. Hosts may come again. From Intel's documentation, not seen
accepted; MPICH, whose launcher Intel's descends from, takes such lines.
"""

from __future__ import annotations

from itertools import groupby

from mapping.launchers.checks import host_names
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """A line a run of ranks on one host, in rank order."""
    runs = groupby(host_names(placement, fabric))
    return "".join(f"{host}:{sum(1 for _ in run)}\n" for host, run in runs)
