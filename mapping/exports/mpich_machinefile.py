"""A placement as MPICH's machine file: ``HOST:1`` a line in rank order.

``mpiexec -f FILE`` of MPICH's hydra, which accepted the format.
"""

from __future__ import annotations

from mapping.exports.checks import host_names
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """A line a rank, in rank order."""
    return "".join(f"{host}:1\n" for host in host_names(placement, fabric))
