"""A placement as Intel MPI's machine file: one line ``HOST:COUNT`` per run of ranks.

``mpirun -machinefile FILE -n RANKS ./program``. A host may occur several times. Based on Intel's
documentation, not tested; MPICH, from whose launcher Intel's is derived, accepts such lines.
"""

from __future__ import annotations

from itertools import groupby

from mapping.launchers.validation import host_names
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """Return one line per run of ranks on one host, in rank order."""
    runs = groupby(host_names(placement, fabric))
    return "".join(f"{host}:{sum(1 for _ in run)}\n" for host, run in runs)
