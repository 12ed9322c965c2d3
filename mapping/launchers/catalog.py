"""The formats in which a placement can be written: one line a format, one file each.

A placement is checked before it is written: each rank on one allocated host, no host over its slots,
names that the format can hold. The rank order counts the other way round than the others: it tells the
rank of each slot, not the host of each rank. torchrun and DeepSpeed give consecutive ranks to a host:
what they cannot say is refused.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, cast

from mapping.launchers.checks import check_placement
from registry.errors import UnknownName
from registry.model import Fabric, Placement


class Writer(Protocol):
    """What the module of a format offers."""

    def write(self, placement: Placement, fabric: Fabric) -> str:
        """The file's content, of a placement that was checked.

        Raises
        ------
        InvalidPlacement
            The format cannot say it: a host's name, or where ranks sit.
        """


FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "csv": "mapping.launchers.csv",
        "openmpi-rankfile": "mapping.launchers.openmpi_rankfile",
        "openmpi-hostfile": "mapping.launchers.openmpi_hostfile",
        "slurm-hostfile": "mapping.launchers.slurm_hostfile",
        "mpich-machinefile": "mapping.launchers.mpich_machinefile",
        "mpich-rank-order": "mapping.launchers.mpich_rank_order",
        "prrte-rankfile": "mapping.launchers.prrte_rankfile",
        "intel-machinefile": "mapping.launchers.intel_machinefile",
        "flux-taskmap": "mapping.launchers.flux_taskmap",
        "torchrun-rank-order": "mapping.launchers.torchrun_rank_order",
        "deepspeed-hostfile": "mapping.launchers.deepspeed_hostfile",
    }
)
"""Name of each format and the module that writes it."""
TELL_CORES = frozenset({"csv", "openmpi-rankfile", "prrte-rankfile", "mpich-machinefile"})
"""Formats that say which core a rank gets; the others tell the host only."""


def write(format: str, placement: Placement, fabric: Fabric) -> str:
    """A placement as the content of a launcher's file.

    Parameters
    ----------
    format : str
        A name of `FORMATS`.
    placement : Placement
    fabric : Fabric
        The fabric that the placement's vertices belong to.

    Raises
    ------
    UnknownName
        There is no such format.
    InvalidPlacement
        The placement does not fit its allocation, or the format cannot say it.
    """
    if format not in FORMATS:
        raise UnknownName("export format", format, FORMATS, remedy=f"there are {', '.join(FORMATS)}")
    check_placement(placement, fabric)
    return cast(Writer, importlib.import_module(FORMATS[format])).write(placement, fabric)
