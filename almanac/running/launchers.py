"""The launchers that `almanac run` knows: how each gets ranks and hosts, and how it takes an order.

Adding one is an entry of `LAUNCHERS`. The launcher and its version are known by what ``--version`` prints.

torchrun behind a launcher that starts it once per host: it gives consecutive ranks to its host.

With the rendezvous ``static`` the ranks of a host follow from the node rank of its torchrun, and node rank 0
runs on the master. torchrun takes both from variables, too: ``PET_NODE_RANK`` and ``PET_MASTER_ADDR``.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from almanac.job_environment import JobEnvironment
from almanac.running.call import PYTHON, Call, parse_call
from registry.errors import Unplaced

VERSION_SECONDS = 5.0
"""Longest time to wait for the version of a launcher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """A launcher of one version.

    Attributes:
        ranks, nodes, per_host, hosts, host_files: Options with the number of ranks, of hosts, of ranks per
            host, with hosts, with a file of hosts.
    """

    name: str
    """With the version, once that is known."""
    programs: tuple[str, ...]
    """Names under which it is started."""
    options: Mapping[int, str]
    """Names of its options, separated by blanks, by their number of values."""
    ranks: tuple[str, ...]
    format: str
    """Format of `mapping.launchers.FORMATS` in which it takes an order."""
    added: tuple[str, ...]
    """Options with which it takes it; ``{file}`` is the file, ``{ranks}`` the number of processes."""
    version: str
    """Pattern of what it prints for ``--version``; its group is the version. Empty: it is not asked."""
    labelled: tuple[str, ...] = ()
    """Options with which it writes the rank before each line of the program's output."""
    label: str = ""
    """Pattern of what it writes there; its group is the rank. Empty if an order cannot be verified."""
    subcommand: tuple[str, ...] = ()
    """Words that follow its name."""
    any_version: bool = False
    """True if it is this launcher whatever it prints."""
    nodes: tuple[str, ...] = ()
    per_host: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    host_files: tuple[str, ...] = ()
    host_file: str = ""
    """File of hosts that it reads if none is given; empty if it reads none."""
    asked: tuple[str, ...] = ()
    """Its subcommand that prints the hosts of the job; empty if they are known otherwise."""
    keeps_counts: bool = False
    """True if its options with the number of ranks and hosts stay beside an order."""
    consecutive: bool = False
    """True if it fills each host with consecutive ranks: an order is one of hosts."""
    rank_variable: str = ""
    """Variable that holds the rank of a process, if it can start torchrun on each host; else empty."""
    ordering: tuple[str, ...] = ()
    """Options by which a user decides about the order; then it is kept."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables with which it takes it."""
    recording: Mapping[str, str] = field(default_factory=dict)
    """Variables that let the MPI library write what each rank sent to files that begin with ``{file}``, if it
    can; empty if no library that it starts can."""
    redirecting: tuple[str, ...] = ()
    """Options that send the output elsewhere, or change it."""
    compilers: tuple[str, ...] = ("mpicc",)
    """Compilers of MPI programs that it starts; the first that is found is used."""

    @property
    def values(self) -> dict[str, int]:
        """Number of values of each option, by its name."""
        return {name: count for count, names in self.options.items() for name in names.split()}

    @property
    def replaced(self) -> frozenset[str]:
        """Options that the order replaces: they would contradict it."""
        if self.keeps_counts:
            return frozenset()
        return frozenset((*self.ranks, *self.nodes, *self.per_host, *self.hosts, *self.host_files))


_OPEN_MPI = {
    0: "allow-run-as-root bind-to-core bind-to-socket bind-to-none bycore byslot bynode bysocket debug "
    "disable-recovery display-allocation display-map display-devel-map display-topo do-not-launch "
    "do-not-resolve enable-recovery forward-signals merge-stderr-to-stdout nolocal nooversubscribe "
    "novm oversubscribe pernode q quiet report-bindings tag-output timestamp-output use-hwthread-cpus v "
    "verbose stream-buffering get-stack-traces report-state-on-timeout index-argv-by-rank no-local",
    1: "n np c N npernode npersocket H host hostfile machinefile default-hostfile rf rankfile map-by rank-by "
    "bind-to x wd wdir path prefix tune am output-filename timeout stdin cpus-per-proc cpus-per-rank "
    "cpu-set cpu-list slot-list xterm report-pid report-uri personality max-restarts tmpdir output display "
    "runtime-options",
    2: "mca gmca omca prtemca pmixmca gpmixmca",
}
_OPEN_MPI_ORDER = (
    *("map-by", "rank-by", "rankfile", "rf", "bynode", "byslot", "bycore", "bysocket", "nolocal"),
    *("npersocket", "cpus-per-proc", "cpus-per-rank", "slot-list"),
)

_OPEN_MPI_RECORDING = {
    "OMPI_MCA_pml_monitoring_enable": "2",
    "OMPI_MCA_pml_monitoring_enable_output": "3",
    "OMPI_MCA_pml_monitoring_filename": "{file}",
}
_TAGGED = (("--output", "tag"), r"\[[^\],]*,(\d+)\]<stdout>: ?")


def _open_mpi(name: str, version: str, labelled: tuple[str, ...], label: str) -> Launcher:
    """Return Open MPI, or its launcher alone, of the versions of a pattern."""
    return Launcher(
        name=name,
        programs=("mpirun", "mpiexec", "orterun", "prterun"),
        version=version,
        options=_OPEN_MPI,
        ranks=("n", "np", "c"),
        per_host=("N", "npernode"),
        hosts=("H", "host"),
        host_files=("hostfile", "machinefile", "default-hostfile"),
        ordering=(*_OPEN_MPI_ORDER, "pernode"),
        format="openmpi-hostfile",
        added=("--hostfile", "{file}", "--map-by", "seq", "-n", "{ranks}"),
        recording=_OPEN_MPI_RECORDING,
        labelled=labelled,
        label=label,
        redirecting=("output-filename", "output", "xterm", "tag-output", "timestamp-output", "stdin"),
        compilers=("mpicc.openmpi", "mpicc"),
    )


LAUNCHERS = (
    _open_mpi("Open MPI", r"\(Open(?: MPI|RTE)\) (4\.\S+)", ("--tag-output",), r"\[\d+,(\d+)\]<stdout>: ?"),
    _open_mpi("Open MPI", r"\(Open MPI\) (5\.\S+)", *_TAGGED),
    _open_mpi("PRRTE", r"\(PRRTE\) ([34]\.\S+)", *_TAGGED),  # the launcher of Open MPI 5
    Launcher(
        name="MPICH",
        programs=("mpiexec", "mpirun", "mpiexec.hydra"),
        version=r"HYDRA build details:\s+Version:\s+(\S+)",
        options={
            0: "genvnone genvall envnone envall verbose info print-all-exitcodes enable-x disable-x l "
            "prepend-rank disable-auto-cleanup disable-hostname-propagation skip-launch-node pmi-port v "
            "profile",
            1: "n np ppn f machinefile hosts host genvlist envlist wdir launcher launcher-exec bootstrap "
            "bootstrap-exec rmk topolib bind-to map-by membind demux iface prepend-pattern outfile-pattern "
            "errfile-pattern nameserver order-nodes localhost usize gpus-per-proc",
            2: "genv env",
        },
        ranks=("n", "np"),
        per_host=("ppn",),
        hosts=("hosts", "host"),
        host_files=("f", "machinefile"),
        ordering=("order-nodes",),
        format="mpich-machinefile",
        added=("-f", "{file}", "-n", "{ranks}"),
        labelled=("-l",),
        label=r"\[(\d+)\] ",
        redirecting=("l", "prepend-rank", "prepend-pattern", "outfile-pattern", "errfile-pattern"),
        compilers=("mpicc.mpich", "mpicc"),
    ),
    Launcher(
        name="Intel MPI",
        programs=("mpirun", "mpiexec", "mpiexec.hydra"),
        version=r"Intel\(R\) MPI Library.*Version (\S+)",
        options={
            0: "genvnone genvall envnone envall verbose v info print-all-exitcodes enable-x disable-x l "
            "prepend-rank disable-auto-cleanup disable-hostname-propagation aps mps silent-abort nolocal rr "
            "print-rank-map prepend-timestamp prot",
            1: "n np ppn perhost grr f machinefile machine hosts host hosts-group genvlist envlist wdir path "
            "umask launcher launcher-exec bootstrap bootstrap-exec rmk prepend-pattern outfile-pattern "
            "errfile-pattern nameserver localhost usize gtool gtoolfile iface s tune cpu-bind",
            2: "genv env",
        },
        ranks=("n", "np"),
        per_host=("ppn", "perhost", "grr"),
        hosts=("hosts", "host"),
        host_files=("f", "machinefile", "machine"),
        ordering=("rr", "nolocal", "hosts-group"),
        format="intel-machinefile",
        added=("-machinefile", "{file}", "-n", "{ranks}"),
        labelled=("-l",),
        label=r"\[(\d+)\] ",
        redirecting=(
            "l",
            "prepend-rank",
            "prepend-pattern",
            "outfile-pattern",
            "errfile-pattern",
            "s",
            "prot",
        ),
        compilers=("mpiicx", "mpiicc", "mpicc"),
    ),
    Launcher(
        name="Slurm",
        programs=("srun",),
        version=r"slurm\S* (\S+)",
        any_version=True,
        options={
            0: "exclusive overlap overcommit O label l unbuffered u verbose v quiet Q pty no-kill k "
            "kill-on-bad-exit K exact Z s oversubscribe",
            1: "n ntasks N nodes c cpus-per-task w nodelist m distribution ntasks-per-node t time J job-name "
            "o output e error i input p partition A account q qos mem mem-per-cpu gres gpus gpus-per-node "
            "gpus-per-task cpu-bind mem-bind mpi export D chdir jobid x exclude r relative hint W wait "
            "comment threads-per-core",
        },
        ranks=("n", "ntasks"),
        nodes=("N", "nodes"),
        per_host=("ntasks-per-node",),
        ordering=("m", "distribution", "w", "nodelist", "x", "exclude", "r", "relative"),
        rank_variable="SLURM_PROCID",
        format="slurm-hostfile",
        added=("--ntasks={ranks}", "--distribution=arbitrary"),
        environment={"SLURM_HOSTFILE": "{file}"},
        recording=_OPEN_MPI_RECORDING,
        labelled=("-l",),
        label=r" *(\d+): ",
        redirecting=("l", "label", "o", "output", "e", "error", "i", "input", "pty", "Q", "quiet"),
    ),
    Launcher(
        name="Flux",
        programs=("flux",),
        subcommand=("run",),
        version=r"commands:\s+(\S+)",
        any_version=True,
        options={
            0: "u unbuffered l label-io quiet x exclusive v verbose",
            1: "q queue B bank t time-limit urgency job-name o setopt S setattr add-file dependency requires "
            "begin-time env env-remove env-file rlimit input output error cwd flags signal taskmap N nodes n "
            "ntasks c cores-per-task g gpus-per-task cores tasks-per-node tasks-per-core gpus-per-node",
        },
        ranks=("n", "ntasks"),
        nodes=("N", "nodes"),
        per_host=("tasks-per-node",),
        asked=("getattr", "hostlist"),
        keeps_counts=True,
        ordering=("taskmap", "requires", "cores", "tasks-per-core"),
        format="openmpi-hostfile",
        added=("--taskmap=hostfile:{file}",),
        labelled=("--label-io", "--env-remove=SLURMD_NODENAME"),
        label=r"(\d+): ",
        redirecting=("l", "label-io", "input", "output", "error"),
    ),
    Launcher(
        name="DeepSpeed",
        programs=("deepspeed",),
        version="",
        any_version=True,
        options={
            0: "module no_python no_local_rank no_ssh no_ssh_check force_multi save_pid bind_cores_to_rank q "
            "quiet",
            1: "H hostfile i include e exclude num_nodes num_gpus num_accelerators master_port master_addr "
            "node_rank launcher launcher_args enable_each_rank_log autotuning bind_core_list ssh_port "
            "venv_script log_level",
        },
        ranks=(),
        host_files=("H", "hostfile"),
        host_file="/job/hostfile",
        consecutive=True,
        ordering=(
            *("i", "include", "e", "exclude", "num_nodes", "num_gpus", "num_accelerators", "master_addr"),
            *("node_rank", "no_ssh", "launcher", "launcher_args", "autotuning"),
        ),
        format="deepspeed-hostfile",
        added=("--hostfile", "{file}"),
    ),
)
"""All launchers."""


def launcher_of(words: Sequence[str]) -> Launcher:
    """Return the launcher that a command starts.

    Raises:
        Unplaced: Its name or its version is not known.
    """
    name = Path(words[0]).name.removesuffix(".openmpi").removesuffix(".mpich")
    found = [one for one in LAUNCHERS if name in one.programs]
    if not found:
        known = sorted({program for one in LAUNCHERS for program in one.programs})
        raise Unplaced(f"{name} is no launcher that is known here: {', '.join(known)}")
    own = found[0].subcommand
    if len(words) > 1 and tuple(words[1 : 1 + len(own)]) != own:
        raise Unplaced(f"{name} is known here as {' '.join((name, *own))} only")
    if not found[0].version:
        return found[0]
    try:
        said = _version(words[0])
    except Unplaced:
        if not found[0].any_version:
            raise
        said = ""
    for one in found:
        version = re.search(one.version, said)
        if version is not None:
            return replace(one, name=f"{one.name} {version[1]}")
        if one.any_version:
            return one
    first = next((line.strip() for line in said.splitlines() if re.search(r"\w", line)), "nothing")
    raise Unplaced(f"this version of {name} is not known here: it prints {first!r}")


def _version(program: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603  # the launcher that the user starts
            [program, "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unplaced(f"{program} --version: {error}") from error
    return done.stdout + done.stderr


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
    """torchrun as it is started on each host."""

    call: Call
    variable: str
    """Variable that holds the rank of a process of the launcher in front of it."""
    environment: Mapping[str, str]
    """Variables of the job."""

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

        Args:
            placed: True to leave out a master address that was given: the first host is another one now.
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

    Raises:
        Unplaced: torchrun chooses its ranks itself, or is not started once on each of several hosts.
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
