"""The formats in which a placement can be written, and the command line that uses each.

Each names a function ``write(placement, fabric) -> str``, which returns the content of the file in rank order
and raises `InvalidPlacement` if the format cannot express the placement. A placement is checked before it is
written: each rank on one allocated host, no host over its slots, names that the format can hold.
``mpich-rank-order`` is the inverse of the others: it lists the rank of each slot, not the host of each rank.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mapping.launchers.validation import check_placement
from registry.catalog import Catalog, Entry, PlugIns
from registry.model import Fabric, HasFabric, HasPlacement, Placement
from registry.model.views import content


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher(Entry):
    """A format.

    Attributes
    ----------
    cores : bool
        Whether the format states the core of each rank; the others state the host only.
    launch : str
        Command line that starts a program with the file, or empty if no launcher reads it. ``{file}`` is the
        file, ``{ranks}`` and ``{nodes}`` are numbers, ``{hosts}`` is ``a:4,b:2`` with the ranks of each host,
        ``{each}`` the most ranks of a host.
    """

    cores: bool = False
    launch: str = ""


def _launcher(name: str, function: str, about: str, launch: str, *, cores: bool = False) -> Launcher:
    target = f"mapping.launchers.{function}"
    return Launcher(name=name, target=target, about=about, launch=launch, cores=cores)


_NODE_RANK = '$(($(grep -nxF "$(hostname)" {file} | cut -d: -f1) - 1))'
FORMATS = Catalog(
    "export format",
    (
        _launcher("csv", "csv:write", "CSV: rank,host,slot", "", cores=True),
        _launcher(
            "openmpi-rankfile",
            "rankfile:write",
            "Open MPI 4: rank file",
            "mpirun --host {hosts} --rankfile {file} -n {ranks} ./program",
            cores=True,
        ),
        _launcher(
            "openmpi-hostfile",
            "hostfile:write",
            "Open MPI: host file in rank order",
            "mpirun --hostfile {file} --map-by seq -n {ranks} ./program",
        ),
        _launcher(
            "slurm-hostfile",
            "hostfile:write",
            "Slurm: SLURM_HOSTFILE",
            "SLURM_HOSTFILE={file} srun -n {ranks} --distribution arbitrary ./program",
        ),
        _launcher(
            "mpich-machinefile",
            "machinefile:write_mpich",
            "MPICH: machine file",
            "mpiexec -f {file} -n {ranks} ./program",
            cores=True,
        ),
        _launcher(
            "mpich-rank-order",
            "mpich_rank_order:write",
            "HPE Cray MPICH: MPICH_RANK_ORDER",
            "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={file} srun -n {ranks} --distribution block "
            "./program",
        ),
        _launcher(
            "prrte-rankfile",
            "rankfile:write",
            "Open MPI 5 (PRRTE): rank file",
            "mpirun --host {hosts} --map-by rankfile:file={file} -n {ranks} ./program",
            cores=True,
        ),
        _launcher(
            "intel-machinefile",
            "machinefile:write_intel",
            "Intel MPI: machine file",
            "mpirun -machinefile {file} -n {ranks} ./program",
        ),
        _launcher(
            "flux-taskmap",
            "flux_taskmap:write",
            "Flux: task map (RFC 34)",
            'flux run -N {nodes} -n {ranks} --taskmap=manual:"$(cat {file})" ./program',
        ),
        _launcher(
            "torchrun-rank-order",
            "consecutive_ranks:write_torchrun",
            "torchrun: order of nodes",
            f"torchrun --nnodes {{nodes}} --nproc-per-node {{each}} --node-rank {_NODE_RANK} "
            '--master-addr "$(head -n 1 {file})" program.py   # on each host',
        ),
        _launcher(
            "deepspeed-hostfile",
            "consecutive_ranks:write_deepspeed",
            "DeepSpeed: host file",
            "deepspeed --hostfile {file} program.py",
        ),
        _launcher("kubernetes-node-order", "kubernetes:write_node_order", "kubectl: order of nodes", ""),
        _launcher("mpijob", "kubernetes:write_mpijob", "Kubernetes: MPIJob", "kubectl create -f {file}"),
    ),
    PlugIns(group="launchers", entry=Launcher),
)
"""All formats."""


def write(format: str, placement: Placement | HasPlacement, fabric: Fabric | HasFabric) -> str:
    """Return a placement on a fabric as the content of a launcher's file, in a format of `FORMATS`.

    `InvalidPlacement` is raised if the placement does not fit its allocation or the format cannot express it.
    """
    chosen = FORMATS.find(format)
    fabric = content(fabric, Fabric, "fabric")
    placement = content(placement, Placement, "placement")
    check_placement(placement, fabric)
    return str(chosen.load()(placement, fabric))


class Launch(NamedTuple):
    """A written file: its format, its path, and the command that starts a program with it, if any."""

    format: str
    file: str
    command: str | None


def launch_line(format: str, placement: Placement, fabric: Fabric, path: str) -> str | None:
    """Return the command line that starts a program with a written file, or None if no launcher reads it."""
    launch = FORMATS.find(format).launch
    if not launch:
        return None
    allocation = placement.allocation
    taken = np.bincount(placement.host_of_rank, minlength=len(fabric))[allocation.hosts].tolist()
    names = [fabric.names[vertex] for vertex in allocation.hosts.tolist()]
    used = [f"{name}:{count}" for name, count in zip(names, taken, strict=True) if count]
    # Flux counts all hosts of the allocation, torchrun those of the file.
    nodes = len(names) if format == "flux-taskmap" else len(used)
    return launch.format(
        file=shlex.quote(path), ranks=placement.ranks, nodes=nodes, hosts=",".join(used), each=max(taken)
    )
