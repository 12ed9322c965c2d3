"""Real launchers start each rank on the host of the requested order, whatever that is."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from almanac.running.call import parse_call
from almanac.running.hosts import hosts_of
from almanac.running.launchers import launcher_of
from almanac.running.order import Order
from almanac.running.run import apply_order
from almanac.running.verification import verify_order
from mapping.launchers.catalog import write
from mapping.placement.strategies.baselines import in_order
from registry.model import Allocation, Fabric
from tests.support.launchers import HYDRA_ON_LOOPBACK, OPEN_MPI_ON_LOOPBACK, agent, printed, require, slurm

NAMES = tuple(f"node{number:04}" for number in range(1, 9))
OPEN_MPI = ("sh", "-c", 'echo "$OMPI_COMM_WORLD_RANK $(hostname)"')
OWN_NETWORK = (
    *("unshare", "--net", "sh", "-c"),
    "ip link set lo up; ip link add hosts0 type veth peer name hosts1; ip addr add 10.99.0.1/24 dev hosts0; "
    'ip link set hosts0 up; ip link set hosts1 up; exec "$@"',
    "sh",
)
HYDRA = ("sh", "-c", 'echo "$PMI_RANK $(hostname)"')
SLURM = ("sh", "-c", 'echo "$SLURM_PROCID $SLURMD_NODENAME"')
Command = Callable[[Sequence[int], Sequence[int]], list[str]]
"""Makes a launcher's command from hosts, by their numbers, and the slots of each."""


def open_mpi(folder: Path) -> Command:
    require("mpirun.openmpi")
    fixed = ["mpirun.openmpi", "--allow-run-as-root", *OPEN_MPI_ON_LOOPBACK, "--oversubscribe"]
    fixed += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(agent(folder))]

    def command(hosts: Sequence[int], slots: Sequence[int]) -> list[str]:
        names = ",".join(f"{NAMES[host]}:{count}" for host, count in zip(hosts, slots, strict=True))
        return [*fixed, "--host", names, "-n", str(sum(slots)), *OPEN_MPI]

    return command


def open_mpi_5(folder: Path) -> Command:
    """That of its wheel; its daemons refuse the loopback device, so it has a network of its own."""
    require("ip")
    fixed = [str(Path(sysconfig.get_path("scripts")) / "mpirun"), "--allow-run-as-root"]
    fixed += ["--bind-to", "none"]  # a pretended host has more ranks than this machine has cores
    fixed += ["--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", str(agent(folder))]

    def command(hosts: Sequence[int], slots: Sequence[int]) -> list[str]:
        names = ",".join(f"{NAMES[host]}:{count}" for host, count in zip(hosts, slots, strict=True))
        return [*fixed, "--host", names, "-n", str(sum(slots)), *OPEN_MPI]

    return command


def mpich(folder: Path) -> Command:
    require("mpiexec.hydra")
    fixed = ["mpiexec.hydra", *HYDRA_ON_LOOPBACK, "-launcher", "ssh", "-launcher-exec", str(agent(folder))]

    def command(hosts: Sequence[int], slots: Sequence[int]) -> list[str]:
        names = ",".join(f"{NAMES[host]}:{count}" for host, count in zip(hosts, slots, strict=True))
        return [*fixed, "-hosts", names, "-n", str(sum(slots)), *HYDRA]

    return command


def hosts_wanted_and_taken(
    words: Sequence[str],
    seed: int,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
) -> tuple[dict[int, str], dict[int, str]]:
    """Run a command in a random order of its ranks; return the wanted and the actual host of each."""
    launcher = launcher_of(words)
    call = parse_call(words, launcher.values)
    job = hosts_of(call, launcher, environment or {})
    assert job.ranks is not None
    links, switch = list(range(len(NAMES))), [len(NAMES)] * len(NAMES)
    slots = [max(job.slots)] * len(NAMES) + [0]
    fabric = Fabric.from_arcs([*NAMES, "s"], [*links, *switch], [*switch, *links], 1.0, slots=slots)
    placement = in_order(job.ranks, Allocation.of(fabric, job.hosts, job.slots))
    hosts = np.random.default_rng(seed).permutation(placement.host_of_rank)
    text = write(launcher.format, replace(placement, host_of_rank=hosts), fabric)
    run = apply_order(call, launcher, Order(ranks=job.ranks, text=text, placement="p", reasons=()), folder)
    wanted = {rank: NAMES[host] for rank, host in enumerate(hosts.tolist())}
    added = run.words[1 : 1 + len(launcher.added)]
    seen = verify_order(
        replace(call, launcher=(*before, *call.launcher)),
        launcher,
        [NAMES[host] for host in hosts.tolist()],
        (added, {**os.environ, **(environment or {}), **run.environment}),
        folder,
        120.0,
    )
    assert (seen.misplaced, seen.by.startswith("the launcher")) == ((), True)
    return wanted, printed([*before, *run.words], {**(environment or {}), **run.environment})


@pytest.mark.parametrize("launcher", [open_mpi, open_mpi_5, mpich], ids=["Open MPI 4", "Open MPI 5", "MPICH"])
@pytest.mark.parametrize("slots", [(1,) * 8, (2,) * 8, (1, 3, 2)], ids=["one", "two", "uneven"])
def test_each_rank_runs_on_its_host(
    launcher: Callable[[Path], Command], slots: tuple[int, ...], tmp_path: Path
) -> None:
    hosts = np.random.default_rng(len(slots)).permutation(8)[: len(slots)].tolist()
    words = launcher(tmp_path)(hosts, slots)
    before = OWN_NETWORK if launcher is open_mpi_5 else ()
    wanted, actual = hosts_wanted_and_taken(words, sum(slots), tmp_path / "orders", before=before)
    assert actual == wanted


def test_each_task_of_a_step_runs_on_its_host(tmp_path: Path) -> None:
    require("slurmctld", "slurmd", "srun", "salloc")
    allocate = ("salloc", "-Q", "-w", "node000[3-6]", "-n", "8", "--ntasks-per-node=2")
    with slurm(tmp_path, "node000[1-8]", NAMES, 2) as scheduler:
        job = {"SLURM_JOB_NODELIST": "node000[3-6]", "SLURM_TASKS_PER_NODE": "2(x4)", "SLURM_NTASKS": "8"}
        for seed, options in enumerate(("", "-n 4 -N 2", "-N 4 -n 6")):
            words = ["srun", *options.split(), *SLURM]
            wanted, actual = hosts_wanted_and_taken(
                words, seed, tmp_path / "orders", {**scheduler.environment, **job}, allocate
            )
            assert actual == wanted
