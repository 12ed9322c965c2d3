"""A placement as DeepSpeed's host file: ``HOST slots=N`` a line, filled from the top.

``deepspeed --hostfile FILE program.py``. The launcher gives consecutive ranks to a host, so only such
placements can be said. From DeepSpeed's documentation, not tried.
"""

from __future__ import annotations

from mapping.launchers.checks import consecutive
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """A line a host, in the order of ranks.

    Raises
    ------
    InvalidPlacement
        A host whose ranks do not follow one another.
    """
    return "".join(f"{host} slots={count}\n" for host, count in consecutive(placement, fabric, "DeepSpeed"))
