"""A placement as the machine file of MPICH (``HOST:1`` per rank) or Intel MPI (``HOST:COUNT`` per run).

MPICH: ``mpiexec -f FILE`` of hydra 4.0.2, which accepted the format. If cores were chosen, a line is a run of
ranks on one host, ``HOST:2 binding=user:4,0``: the CPU of each by the operating system's number (hydra joins
successive lines of the same host and refuses a second binding then).

Intel MPI: ``mpirun -machinefile FILE -n RANKS ./program``.
A host may occur several times. Tried with 2021.18.
"""

from __future__ import annotations

from itertools import groupby

from mapping.launchers.validation import host_names, runs_of_ranks
from registry.model import Fabric, Placement


def write_mpich(placement: Placement, fabric: Fabric) -> str:
    """Return one line per rank, or one per run of ranks if cores were chosen."""
    hosts = host_names(placement, fabric)
    if placement.cpu_of_rank is None:
        return "".join(f"{host}:1\n" for host in hosts)
    lines = []
    runs = groupby(zip(hosts, placement.cpu_of_rank.tolist(), strict=True), key=lambda rank: rank[0])
    for host, run in runs:
        cpus = [cpu for _, cpu in run]
        binding = "" if -1 in cpus else f" binding=user:{','.join(map(str, cpus))}"
        lines.append(f"{host}:{len(cpus)}{binding}\n")
    return "".join(lines)


def write_intel(placement: Placement, fabric: Fabric) -> str:
    """Return one line per run of ranks on one host."""
    return "".join(f"{host}:{count}\n" for host, count in runs_of_ranks(placement, fabric))
