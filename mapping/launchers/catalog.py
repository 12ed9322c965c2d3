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


def _launcher(name: str, function: str, about: str, *, cores: bool = False) -> Launcher:
    return Launcher(name=name, target=f"mapping.launchers.{function}", about=about, cores=cores)


FORMATS = Catalog(
    "export format",
    (
        _launcher("csv", "csv:write", "CSV: rank,host,slot", cores=True),
        _launcher("openmpi-rankfile", "rankfile:write", "Open MPI 4: mpirun -rf FILE", cores=True),
        _launcher("openmpi-hostfile", "hostfile:write", "Open MPI: mpirun --map-by seq --hostfile FILE"),
        _launcher("slurm-hostfile", "hostfile:write", "Slurm: SLURM_HOSTFILE with srun -m arbitrary"),
        _launcher("mpich-machinefile", "machinefile:write_mpich", "MPICH: mpiexec -f FILE", cores=True),
        _launcher("mpich-rank-order", "mpich_rank_order:write", "HPE Cray MPICH: MPICH_RANK_ORDER"),
        _launcher("prrte-rankfile", "rankfile:write", "Open MPI 5 (PRRTE): rank file", cores=True),
        _launcher("intel-machinefile", "machinefile:write_intel", "Intel MPI: mpirun -machinefile FILE"),
        _launcher("flux-taskmap", "flux_taskmap:write", "Flux: task map (RFC 34)"),
        _launcher("torchrun-rank-order", "consecutive_ranks:write_torchrun", "torchrun: order of nodes"),
        _launcher("deepspeed-hostfile", "consecutive_ranks:write_deepspeed", "DeepSpeed: host file"),
    ),
)
"""All formats."""


def write(format: str, placement: Placement, fabric: Fabric) -> str:
    """Return a placement on a fabric as the content of a launcher's file, in a format of `FORMATS`.

    `InvalidPlacement` is raised if the placement does not fit its allocation or the format cannot express it.
    """
    chosen = FORMATS.find(format)
    check_placement(placement, fabric)
    return str(chosen.load()(placement, fabric))
