"""A placement as the rankfile of PRRTE, the launcher of Open MPI 5: ``rank N=HOST slot=K``.

``mpirun --hostfile HOSTS --map-by rankfile:file=FILE ./program``, or ``prterun``. The syntax and the meaning
of K are those of Open MPI 4, which refuses a file given in this way. The hosts must be known from a scheduler
or ``--hostfile``; some versions do not accept a ``-`` in the file's name. From documentation and published
scripts, not tested.
"""

from __future__ import annotations

from mapping.launchers import openmpi_rankfile
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """Return one line per rank, in rank order."""
    return openmpi_rankfile.write(placement, fabric)
