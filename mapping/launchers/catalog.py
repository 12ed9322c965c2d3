"""The formats in which a placement can be written: one line per format.

Each names a function ``write(placement, fabric) -> str``, which returns the content of the file in rank order
and raises `InvalidPlacement` if the format cannot express the placement. A placement is checked before it is
written: each rank on one allocated host, no host over its slots, names that the format can hold.
``mpich-rank-order`` is the inverse of the others: it lists the rank of each slot, not the host of each rank.
"""

from __future__ import annotations

from dataclasses import dataclass

from mapping.launchers.validation import check_placement
from registry.catalog import Catalog, Entry
from registry.model import Fabric, Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher(Entry):
    """A format.

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
            target="mapping.launchers.rankfile:write",
            about="Open MPI 4: mpirun -rf FILE",
            cores=True,
        ),
        Launcher(
            name="openmpi-hostfile",
            target="mapping.launchers.hostfile:write",
            about="Open MPI: mpirun --map-by seq --hostfile FILE",
        ),
        Launcher(
            name="slurm-hostfile",
            target="mapping.launchers.hostfile:write",
            about="Slurm: SLURM_HOSTFILE with srun -m arbitrary",
        ),
        Launcher(
            name="mpich-machinefile",
            target="mapping.launchers.machinefile:write_mpich",
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
            target="mapping.launchers.rankfile:write",
            about="Open MPI 5 (PRRTE): rank file",
            cores=True,
        ),
        Launcher(
            name="intel-machinefile",
            target="mapping.launchers.machinefile:write_intel",
            about="Intel MPI: mpirun -machinefile FILE",
        ),
        Launcher(
            name="flux-taskmap",
            target="mapping.launchers.flux_taskmap:write",
            about="Flux: task map (RFC 34)",
        ),
        Launcher(
            name="torchrun-rank-order",
            target="mapping.launchers.consecutive_ranks:write_torchrun",
            about="torchrun: order of nodes",
        ),
        Launcher(
            name="deepspeed-hostfile",
            target="mapping.launchers.consecutive_ranks:write_deepspeed",
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
    InvalidPlacement
        The placement does not fit its allocation, or the format cannot express it.
    """
    chosen = FORMATS.find(format)
    check_placement(placement, fabric)
    return str(chosen.load()(placement, fabric))
