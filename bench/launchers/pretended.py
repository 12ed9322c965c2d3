"""Start launchers on eight pretended hosts: each has a name, all are this machine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bench.launchers.cases import MOST, NAMES, Case
from tests.support.launchers import HYDRA_ON_LOOPBACK, OPEN_MPI_ON_LOOPBACK, agent, slurm

WHEEL = Path(sysconfig.get_path("scripts"))
"""Folder with the programs of Open MPI 5, which a wheel of the extra ``dev`` brings."""
INTEL = Path(os.environ.get("I_MPI_ROOT", "/opt/intel/oneapi/mpi/latest"))
"""Folder of Intel MPI."""
OWN_NETWORK = (
    *("unshare", "--net", "sh", "-c"),
    "ip link set lo up; ip link add hosts0 type veth peer name hosts1; ip addr add 10.99.0.1/24 dev hosts0; "
    'ip link set hosts0 up; ip link set hosts1 up; exec "$@"',
    "sh",
)
"""Runs a command in a network of its own: the daemons of Open MPI 5 refuse the loopback device."""
WAITS = 'env -0 >"$0.part" && mv "$0.part" "$0" && read line'
"""Shell command that writes its environment into a file, and waits for a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What starts a case, but for the program."""

    words: tuple[str, ...]
    environment: Mapping[str, str]


Job = Callable[[Case], AbstractContextManager[Started]]
"""Holds a job while a step of it is started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretended:
    """A launcher of this machine."""

    needs: tuple[str, ...]
    compiler: str
    open: Callable[[Path], AbstractContextManager[Job]]
    before: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()


def open_mpi(folder: Path) -> tuple[str, ...]:
    """Return Open MPI 4 with the options that let it start ranks on pretended hosts."""
    remote = ("--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(agent(folder)))
    return ("mpirun.openmpi", "--allow-run-as-root", *OPEN_MPI_ON_LOOPBACK, "--oversubscribe", *remote)


def open_mpi_5(folder: Path) -> tuple[str, ...]:
    """Return Open MPI 5 with such options; a pretended host has more ranks than this machine has cores."""
    remote = ("--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", str(agent(folder)))
    return (str(WHEEL / "mpirun"), "--allow-run-as-root", "--bind-to", "none", *remote)


def mpich(folder: Path) -> tuple[str, ...]:
    """Return MPICH with such options."""
    remote = ("-launcher", "ssh", "-launcher-exec", str(agent(folder)))
    return ("mpiexec.hydra", *HYDRA_ON_LOOPBACK, *remote)


def intel_mpi(folder: Path) -> tuple[str, ...]:
    """Return Intel MPI with such options."""
    remote = ("-bootstrap", "ssh", "-bootstrap-exec", str(agent(folder)))
    return (str(INTEL / "bin" / "mpiexec.hydra"), *HYDRA_ON_LOOPBACK, *remote)


def on_named_hosts(
    launcher: Callable[[Path], tuple[str, ...]], option: str, variable: str, line: str, **more: str
) -> Callable[[Path], AbstractContextManager[Job]]:
    """Return what opens a launcher whose job is a file of hosts in a variable, and a step names its own."""

    @contextlib.contextmanager
    def opened(folder: Path) -> Iterator[Job]:
        words = launcher(folder)

        @contextlib.contextmanager
        def job(case: Case) -> Iterator[Started]:
            file, pairs = folder / "job", list(zip(case.hosts, case.slots, strict=True))
            file.write_text("".join(line.format(host, count) for host, count in pairs))
            named = ",".join(f"{host}:{count}" for host, count in pairs[: case.part])
            yield Started(
                words=(*words, option, named, "-n", str(case.ranks)),
                environment={variable: str(file), **more},
            )

        yield job

    return opened


@contextlib.contextmanager
def open_slurm(folder: Path) -> Iterator[Job]:
    """Start a scheduler with eight daemons; a job is an allocation, a step has some of its hosts."""
    with slurm(folder, f"node[{NAMES[0][4:]}-{NAMES[-1][4:]}]", NAMES, MOST) as scheduler:

        @contextlib.contextmanager
        def job(case: Case) -> Iterator[Started]:
            with allocated(case, folder, scheduler.environment) as environment:
                whole = case.part == len(case.hosts)
                step = () if whole else ("-N", str(case.part), "-n", str(case.ranks))
                yield Started(words=("srun", "--mpi=pmi2", *step), environment=environment)

        yield job


@contextlib.contextmanager
def allocated(case: Case, folder: Path, environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Hold an allocation with as many hosts and tasks as a case; yield its variables.

    If the slots of the case differ, Slurm divides the tasks as it likes, unevenly, too.
    """
    file, each = folder / f"environment-{case.number}", set(case.slots)
    options = ["-N", str(len(case.slots)), "-n", str(sum(case.slots))]
    options += ["--ntasks-per-node", str(*each)] if len(each) == 1 else []
    words = ["salloc", "-Q", *options, "sh", "-c", WAITS, str(file)]
    variables = {**os.environ, **environment}
    with subprocess.Popen(words, env=variables, stdin=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        while not file.exists():
            if holder.poll() is not None:
                raise RuntimeError(f"salloc ended with {holder.returncode}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                holder.wait(0.02)
        found = dict(one.partition("=")[::2] for one in file.read_text().split("\0") if one)
        try:
            yield found
        finally:
            holder.communicate("\n")
            file.unlink()


LAUNCHERS = {
    "Open MPI 4": Pretended(
        needs=("mpirun.openmpi",),
        compiler="mpicc.openmpi",
        open=on_named_hosts(
            open_mpi,
            "--host",
            "OMPI_MCA_orte_default_hostfile",
            "{} slots={}\n",
            OMPI_MCA_mpi_yield_when_idle="1",
            OMPI_MCA_plm_rsh_no_tree_spawn="1",
            OMPI_MCA_pml="ob1",
            OMPI_MCA_btl="tcp,self",
        ),
    ),
    "Open MPI 5": Pretended(
        needs=(str(WHEEL / "mpirun"), "ip"),
        compiler=str(WHEEL / "mpicc"),
        open=on_named_hosts(
            open_mpi_5,
            "--host",
            "PRTE_MCA_prte_default_hostfile",
            "{} slots={}\n",
            OMPI_MCA_mpi_yield_when_idle="1",
        ),
        before=OWN_NETWORK,
    ),
    "MPICH": Pretended(
        needs=("mpiexec.hydra",),
        compiler="mpicc.mpich",
        open=on_named_hosts(mpich, "-hosts", "HYDRA_HOST_FILE", "{}:{}\n"),
    ),
    "Intel MPI": Pretended(
        needs=(str(INTEL / "bin" / "mpiexec.hydra"),),
        compiler=str(INTEL / "bin" / "mpicc"),
        open=on_named_hosts(
            intel_mpi,
            "-hosts",
            "I_MPI_HYDRA_HOST_FILE",
            "{}:{}\n",
            I_MPI_FABRICS="ofi",
            FI_PROVIDER="tcp",
        ),
    ),
    "Slurm": Pretended(
        needs=("srun", "salloc", "slurmctld", "slurmd"),
        compiler="mpicc.mpich",
        open=open_slurm,
        asked=("slurmctld", "-V"),
    ),
}
"""What can be tried, by its name."""
