"""torchrun behind a launcher that starts it once per host: it gives consecutive ranks to its host.

With the rendezvous ``static`` the ranks of a host follow from the node rank of its torchrun, and node rank 0
runs on the master. torchrun takes both from variables, too: ``PET_NODE_RANK`` and ``PET_MASTER_ADDR``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from almanac.job_environment import JobEnvironment
from almanac.running.call import PYTHON, Call, Unplaced, parse_call
from almanac.running.launchers import Launcher

_FLAGS = "standalone m module no-python run-path"
_OPTIONS = (
    "nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts monitor-interval "
    "start-method event-log-handler role log-dir r redirects t tee local-ranks-filter node-rank master-addr "
    "master-port local-addr logs-specs numa-binding signals-to-handle virtual-local-rank"
)
_MODULE = ("-m", "torch.distributed.run")
_START = 'export PET_NODE_RANK="${variable}" PET_MASTER_ADDR="$1"; shift; exec "$@"'


def _spellings(name: str) -> tuple[str, str]:
    return name, name.replace("-", "_")


VALUES = {
    spelling: count
    for count, names in ((0, _FLAGS), (1, _OPTIONS))
    for name in names.split()
    for spelling in _spellings(name)
}
"""Number of values of each option of torchrun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Torchrun:
    """torchrun as it is started on each host.

    Attributes
    ----------
    call : Call
    variable : str
        Variable that holds the rank of a process of the launcher in front of it.
    environment : mapping of str to str
        Variables of the job.
    """

    call: Call
    variable: str
    environment: Mapping[str, str]

    def value(self, name: str, default: str) -> str:
        """Return the value of an option, given as such or by its variable."""
        found = self.call.last(_spellings(name))
        return found or self.environment.get("PET_" + name.replace("-", "_").upper()) or default

    @property
    def ranks_per_host(self) -> int:
        """Ranks that it starts on each host; `Unplaced` is raised if that is not known."""
        given = self.value("nproc-per-node", "1")
        number = self.environment.get("SLURM_GPUS_ON_NODE", "") if given in ("gpu", "auto") else given
        if not number.isdecimal() or int(number) < 1:
            raise Unplaced(f"--nproc-per-node {given} is not known before it starts: give a number")
        return int(number)

    def words(self, master: str, *, placed: bool) -> tuple[str, ...]:
        """Return words that start it with the node rank of its process, and the host of the first one.

        Parameters
        ----------
        placed : bool
            True to leave out a master address that was given: the first host is another one now.
        """
        own = self.call.words(without=_spellings("master-addr") if placed else ())
        return ("sh", "-c", _START.replace("{variable}", self.variable), "sh", master, *own)


def torchrun_words(program: Sequence[str]) -> int:
    """Return how many words of a command name torchrun, such as ``python -m torch.distributed.run``; or 0."""
    if not program:
        return 0
    name = Path(program[0]).name
    if name == "torchrun":
        return 1
    if PYTHON.fullmatch(name) is None:
        return 0
    at = next((at for at, word in enumerate(program[1:], 1) if word not in ("-u", "-O", "-s", "-B")), 1)
    return at + 2 if tuple(program[at : at + 2]) == _MODULE else 0


def torchrun_of(
    call: Call, launcher: Launcher, job: JobEnvironment, environment: Mapping[str, str]
) -> Torchrun | None:
    """Return the torchrun that a launcher starts on each host, or None if it starts something else.

    Raises
    ------
    Unplaced
        torchrun chooses its ranks itself, or is not started once on each of several hosts.
    """
    program = call.command
    begin = torchrun_words(program) if launcher.rank_variable else 0
    if not begin:
        return None
    own = parse_call(program, VALUES, begin)
    found = Torchrun(call=own, variable=launcher.rank_variable, environment=environment)
    backend, hosts = found.value("rdzv-backend", "static"), len(job.hosts)
    if hosts == 1:
        raise Unplaced("torchrun runs on one host")
    if backend != "static":
        raise Unplaced(
            f"with --rdzv-backend {backend} torchrun chooses node ranks itself: leave out --rdzv-backend and "
            "--rdzv-endpoint, give --nnodes and --nproc-per-node"
        )
    for name in ("rdzv-endpoint", "node-rank"):
        if own.last(_spellings(name)) is not None:
            raise Unplaced(
                f"--{name} is given: leave it out, it follows from the order (the port: --master-port)"
            )
    if {option.name for option in own.options} & {"standalone"}:
        raise Unplaced("--standalone is given: each host trains by itself")
    nodes = found.value("nnodes", "1")
    if nodes not in (str(hosts), f"{hosts}:{hosts}"):
        raise Unplaced(f"torchrun is told --nnodes {nodes}, and {hosts} hosts start it")
    if job.ranks != hosts:
        raise Unplaced(f"{job.ranks} tasks start torchrun on {hosts} hosts: give --ntasks-per-node=1")
    return found
