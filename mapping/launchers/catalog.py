"""The formats in which a placement can be written: one line and one file per format.

A placement is checked before it is written: each rank on one allocated host, no host over its slots, names
that the format can hold. ``mpich-rank-order`` is the inverse of the others: it lists the rank of each slot,
not the host of each rank. torchrun and DeepSpeed give consecutive ranks to a host: placements that they
cannot express are refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from mapping.launchers.validation import check_placement
from registry.catalog import Catalog, Entry
from registry.model import Fabric, Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher(Entry):
    """A format with a function ``write(placement, fabric) -> str``, called with checked placements.

    Attributes
    ----------
    cores : bool
        Whether the format states the core of each rank; the others state the host only.
    """

    cores: bool = False


FORMATS = Catalog(
    "export format",
    (
        Launcher(
            name="csv",
            target="mapping.launchers.csv:write",
            about="CSV: rank,host,slot",
            cores=True,
        ),
        Launcher(
            name="openmpi-rankfile",
            target="mapping.launchers.openmpi_rankfile:write",
            about="Open MPI 4: mpirun -rf FILE",
            cores=True,
        ),
        Launcher(
            name="openmpi-hostfile",
            target="mapping.launchers.openmpi_hostfile:write",
            about="Open MPI: mpirun --map-by seq --hostfile FILE",
        ),
        Launcher(
            name="slurm-hostfile",
            target="mapping.launchers.slurm_hostfile:write",
            about="Slurm: SLURM_HOSTFILE with srun -m arbitrary",
        ),
        Launcher(
            name="mpich-machinefile",
            target="mapping.launchers.mpich_machinefile:write",
            about="MPICH: mpiexec -f FILE",
            cores=True,
        ),
        Launcher(
            name="mpich-rank-order",
            target="mapping.launchers.mpich_rank_order:write",
            about="HPE Cray MPICH: MPICH_RANK_ORDER",
        ),
        Launcher(
            name="prrte-rankfile",
            target="mapping.launchers.prrte_rankfile:write",
            about="Open MPI 5 (PRRTE): rank file",
            cores=True,
        ),
        Launcher(
            name="intel-machinefile",
            target="mapping.launchers.intel_machinefile:write",
            about="Intel MPI: mpirun -machinefile FILE",
        ),
        Launcher(
            name="flux-taskmap",
            target="mapping.launchers.flux_taskmap:write",
            about="Flux: task map (RFC 34)",
        ),
        Launcher(
            name="torchrun-rank-order",
            target="mapping.launchers.torchrun_rank_order:write",
            about="torchrun: order of nodes",
        ),
        Launcher(
            name="deepspeed-hostfile",
            target="mapping.launchers.deepspeed_hostfile:write",
            about="DeepSpeed: host file",
        ),
    ),
    list_all=True,
)
"""All formats."""


def write(format: str, placement: Placement, fabric: Fabric) -> str:
    """Return a placement as the content of a launcher's file.

    Parameters
    ----------
    format : str
        A name in `FORMATS`.
    placement : Placement
    fabric : Fabric
        The fabric to which the placement's vertices belong.

    Raises
    ------
    UnknownName
        There is no such format.
    InvalidPlacement
        The placement does not fit its allocation, or the format cannot express it.
    """
    chosen = FORMATS.find(format)
    check_placement(placement, fabric)
    return str(chosen.load()(placement, fabric))
