"""A placement as DeepSpeed's host file: one line ``HOST slots=N`` per host, filled from the top.

``deepspeed --hostfile FILE program.py``. The launcher gives consecutive ranks to a host, so only such
placements can be written. Based on DeepSpeed's documentation, not tested.
"""

from __future__ import annotations

from mapping.launchers.validation import consecutive
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """Return one line per host, in rank order.

    Raises
    ------
    InvalidPlacement
        The ranks of a host are not consecutive.
    """
    return "".join(f"{host} slots={count}\n" for host, count in consecutive(placement, fabric, "DeepSpeed"))
