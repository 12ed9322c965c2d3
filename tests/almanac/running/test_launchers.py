"""Launchers that are not installed here, played by stand-ins; torchrun: what is compared and said."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import pytest

from almanac.job_environment import JobEnvironment
from almanac.running import run as running
from almanac.running.call import parse_call
from almanac.running.launchers import LAUNCHERS, Torchrun, launcher_of, torchrun_of, torchrun_words
from almanac.running.order import Order, Wanted
from almanac.running.processes import PreparedChild
from almanac.running.run import Run, in_order, prepare_run, read_command, unplaced_run
from mapping.placement.search import SearchOptions
from mapping.questions.place import PlacementRequest, place
from registry.errors import Unplaced
from registry.model import Profile
from registry.model.intake import Intake
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.almanac.running.test_run import launch
from tests.support import paths
from tests.support.fat_tree import at, fat_tree
from tests.support.launchers import Slurm, executable

SLURM = next(one for one in LAUNCHERS if one.name == "Slurm")
NODES = tuple(f"node{number:02}" for number in range(8))
JOB = JobEnvironment(hosts=("a", "b", "c"), slots=(1, 1, 1), ranks=3)
START = 'export PET_NODE_RANK="$SLURM_PROCID" PET_MASTER_ADDR="$1"; shift; exec "$@"'
STAND_IN = '#!/bin/sh\necho "$PET_NODE_RANK $SLURMD_NODENAME $PET_MASTER_ADDR $*"\n'
"""A program in torchrun's place, which prints what torchrun would read."""


def torchrun_found(words: str, job: JobEnvironment = JOB, **environment: str) -> Torchrun | None:
    return torchrun_of(parse_call(["srun", *words.split()], SLURM.values), SLURM, job, environment)


def test_torchrun_is_known_by_its_words_and_its_node_rank_is_that_of_the_task() -> None:
    for words, count in (
        *(("torchrun train.py", 1), ("/opt/bin/torchrun train.py", 1)),
        ("python3.11 -u -m torch.distributed.run train.py", 4),
        ("python -m torch.distributed.run train.py", 3),
        *(("python -m torch.distributed.launch train.py", 0), ("python train.py", 0), ("python", 0), ("", 0)),
    ):
        assert torchrun_words(words.split()) == count
    own = "--nnodes=3 --nproc_per_node 4 --master-port 29555 -m pkg.train --lr 1"
    torchrun = torchrun_found(f"-N3 torchrun --master_addr a {own}")
    assert torchrun is not None
    assert (torchrun.ranks_per_host, torchrun.call.application) == (4, "pkg.train")
    start = ("sh", "-c", START, "sh", "c", "torchrun")
    assert torchrun.words("c", placed=True) == (*start, *own.split())
    assert torchrun.words("c", placed=False) == (*start, "--master_addr", "a", *own.split())
    assert torchrun_found("./program") is None


def test_options_are_taken_from_variables() -> None:
    assert torchrun_found("torchrun train.py", PET_NNODES="3", PET_NPROC_PER_NODE="2") is not None
    torchrun = torchrun_found("torchrun --nnodes 3 --nproc-per-node gpu train.py", SLURM_GPUS_ON_NODE="8")
    assert torchrun is not None
    assert torchrun.ranks_per_host == 8
    call = parse_call(["srun", *torchrun.call.words()], SLURM.values)
    assert in_order(call, torchrun, JOB)[5] == "a"
    torchrun = torchrun_found("torchrun --nnodes 3 --nproc-per-node auto train.py")
    assert torchrun is not None
    with pytest.raises(Unplaced, match="--nproc-per-node auto is not known before it starts: give a number"):
        assert torchrun.ranks_per_host


def test_what_decides_about_ranks_itself_is_not_placed() -> None:
    for words, reason in (
        (
            "--nnodes 3 --rdzv-backend=c10d --rdzv-endpoint a:1 t.py",
            "leave out --rdzv-backend and --rdzv-end",
        ),
        ("--nnodes 3 --rdzv_endpoint a:1 t.py", "--rdzv-endpoint is given: leave it out"),
        ("--nnodes 3 --node_rank 0 t.py", "--node-rank is given: leave it out"),
        ("--nnodes 3 --standalone t.py", "each host trains by itself"),
        ("--nnodes 2:3 t.py", "torchrun is told --nnodes 2:3, and 3 hosts start it"),
        ("t.py", "torchrun is told --nnodes 1, and 3 hosts start it"),
        ("--nnodes 3 --new-option t.py", "the option --new-option of torchrun is not known here"),
    ):
        with pytest.raises(Unplaced, match=reason):
            torchrun_found(f"torchrun {words}")


def test_torchrun_starts_once_on_each_of_several_hosts_or_as_it_was_given() -> None:
    with pytest.raises(Unplaced, match="6 tasks start torchrun on 3 hosts: give --ntasks-per-node=1"):
        torchrun_found(
            "torchrun --nnodes 3 t.py", JobEnvironment(hosts=("a", "b", "c"), slots=(2, 2, 2), ranks=6)
        )
    with pytest.raises(Unplaced, match="torchrun runs on one host"):
        torchrun_found("torchrun --standalone t.py", JobEnvironment(hosts=("a",), slots=(1,), ranks=1))
    for words in (["torchrun", "--nnodes", "2", "t.py"], ["no-launcher", "x"]):
        assert unplaced_run(words).words == tuple(words)


class Cluster:
    """A Slurm with a stand-in for torchrun, and almanac with a profile of a training program."""

    def __init__(self, scheduler: Slurm, folder: Path) -> None:
        self.scheduler, self.folder = scheduler, folder
        self.torchrun = executable(folder / "torchrun", STAND_IN)

    def run(self, options: str, words: str) -> tuple[list[list[str]], str]:
        """Run torchrun on all hosts; return what each prints, by node rank, and the messages."""
        main = f"{sys.executable} -c 'from almanac.cli import main; main()' run --seconds 120 {options}"
        script = f"{main} srun {self.torchrun} {words}"
        environment = {**os.environ, **self.scheduler.environment, "ALMANAC_HOME": str(self.folder)}
        done = subprocess.run(
            ["salloc", "-Q", "-p", "all", "-N", "8", "--ntasks-per-node=1", "sh", "-c", script],
            env=environment, capture_output=True, text=True, timeout=300, cwd=paths.ROOT, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return sorted(line.split(" ", 3) for line in done.stdout.splitlines()), done.stderr


@pytest.fixture
def cluster(site: Slurm, tmp_path: Path) -> Cluster:
    return Cluster(site, tmp_path)


@pytest.fixture
def filled(almanac: Almanac, registry: Registry, processes: None) -> Registry:
    """Hosts in pairs on four leaves; the ranks of host number n talk to those of n + 4."""
    ranks = list(range(16))
    far = Profile.from_edges(
        ranks, [(rank + 8) % 16 for rank in ranks], [8e6] * 16, name="far", application="train.py"
    )
    fabric = fat_tree(leaves=4)
    registry.save(Intake(cluster="ft", observed_at=at(0), fabric=fabric, profiles=(far,)))
    for consecutive in (False, True):
        options = SearchOptions(steps=2000, consecutive=consecutive)
        place(registry, PlacementRequest(profile="far", cluster="ft", hosts=NODES, slots=2, options=options))
    return registry


def placed_hosts(registry: Registry, *, consecutive: bool = True) -> list[str]:
    stored = [registry.placements.read(row.id) for row in registry.placements.history()]
    (torchrun_found,) = (one for one in stored if ("consecutive" in one.placement.parameters) == consecutive)
    return list(torchrun_found.hosts)


def test_node_ranks_follow_the_placement(cluster: Cluster, filled: Registry) -> None:
    words = "--nnodes 8 --nproc-per-node 2 train.py --lr 1"
    printed, messages = cluster.run("--explain", words)
    order = placed_hosts(filled)[::2]
    assert order != list(NODES)
    assert printed == [[str(rank), host, order[0], words] for rank, host in enumerate(order)], messages
    for host, partner in zip(order[:4], order[4:], strict=True):
        assert int(host[4:]) // 2 == int(partner[4:]) // 2  # on one leaf
    assert "the order is verified by the launcher" in messages
    assert "of the same profile and hosts" in messages
    (run,) = filled.measured_runs.list("ft", "train.py")
    assert (run.ranks, run.slots, run.verified) == (16, (2,) * 8, True)


def test_without_a_placement_node_ranks_are_in_order(cluster: Cluster, filled: Registry) -> None:
    words = "--nnodes 8 --nproc-per-node 2 train.py"
    for options, refused in (("--profile nothing", True), ("--in-order", False)):
        printed, messages = cluster.run(options, words)
        assert printed == [[str(rank), host, "node00", words] for rank, host in enumerate(NODES)], messages
        assert ("not placed: " in messages) == refused
    own = f"{words[:-8]}--rdzv-backend c10d --rdzv-endpoint node00 train.py"
    printed, messages = cluster.run("", own)
    assert sorted(printed) == sorted(["", host, "", own] for host in NODES)
    reason = "with --rdzv-backend c10d torchrun chooses node ranks itself: leave out "
    assert messages.startswith(f"not placed: {reason}")


FLUX = """#!/bin/sh
case "$*" in
--version) printf 'commands:    \\t\\t0.66.0\\nlibflux-core:\\t\\t0.66.0\\n'; exit;;
"getattr hostlist") echo 'node[00-07]'; exit;;
"run "*) ;;
*) exit 9;;
esac
file= label=
for word; do
    case "$word" in
    --taskmap=hostfile:*) file=${word#*:};;
    --label-io) label=1;;
    esac
done
[ "$file" ] || { echo "in order: $*"; exit 3; }
task=0
while read -r host; do
    [ ! "$label" ] || echo "$task: almanac-rank 0 0 @HOST@"
    [ "$label" ] || echo "$task $host"
    task=$((task + 1))
done <"$file"
"""
DEEPSPEED = """#!/bin/sh
[ "$1" = --hostfile ] && cat "$2"
echo "$*"
"""


def run_stand_in(path: Path, text: str, words: str, *options: str) -> CompletedProcess[str]:
    return launch([str(executable(path, text)), *words.split()], *options)


def test_flux_takes_the_order_as_a_file_of_hosts(filled: Registry, tmp_path: Path) -> None:
    words = "run -N 8 --tasks-per-node=2 -o verbose=1 train.py"
    done = run_stand_in(tmp_path / "flux", FLUX.replace("@HOST@", "$host"), words, "--explain")
    hosts = placed_hosts(filled, consecutive=False)
    assert done.stdout.splitlines() == [f"{task} {host}" for task, host in enumerate(hosts)], done.stderr
    assert "16 ranks on 8 hosts, from " in done.stderr
    assert "the order is verified by the launcher" in done.stderr
    (measured,) = filled.measured_runs.list()
    assert (measured.launcher, measured.verified, measured.slots) == ("Flux 0.66.0", True, (2,) * 8)


def test_what_flux_does_not_keep_or_decides_itself_is_left_alone(filled: Registry, tmp_path: Path) -> None:
    words = "run -N8 -n 16 train.py"
    done = run_stand_in(tmp_path / "flux", FLUX.replace("@HOST@", "node00"), words)
    assert (done.returncode, done.stdout) == (3, f"in order: {words}\n")
    assert done.stderr.startswith("not placed: the launcher starts ranks on other hosts than asked for: ")
    done = run_stand_in(tmp_path / "flux", FLUX, "submit -N 8 train.py")
    assert (done.returncode, done.stderr) == (9, "not placed: flux is known here as flux run only\n")
    which = "which of the 8 hosts are used is not known before: give -N 8"
    for words, reason in (
        ("run -n 16 train.py", which),
        ("run -N 4 -n 16 train.py", which),
        ("run -N 8 -n 12 train.py", "12 ranks do not fill 8 hosts equally"),
        ("run -N 8 -n 16 --taskmap=cyclic train.py", "--taskmap=cyclic is given"),
    ):
        with pytest.raises(Unplaced, match=reason):
            read_command([str(tmp_path / "flux"), *words.split()])


def test_deepspeed_takes_the_order_as_its_hostfile(filled: Registry, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{host} slots=2\n" for host in NODES))
    given = f"--hostfile={hosts} --master_port 1 train.py --lr 1"
    done = run_stand_in(tmp_path / "deepspeed", DEEPSPEED, given, "--explain")
    *lines, words = done.stdout.splitlines()
    order = placed_hosts(filled)[::2]
    assert lines == [f"{host} slots=2" for host in order], done.stderr
    assert order != list(NODES)
    assert words.endswith(".deepspeed-hostfile --master_port 1 train.py --lr 1")
    assert "an order cannot be verified with DeepSpeed" in done.stderr
    (measured,) = filled.measured_runs.list()
    assert (measured.launcher, measured.application, measured.verified) == ("DeepSpeed", "train.py", None)

    hosts.write_text("".join(f"{host} slots={1 + (host == 'node00')}\n" for host in NODES))
    other = f"--hostfile {hosts} train.py"
    done = run_stand_in(tmp_path / "deepspeed", DEEPSPEED, other, "--profile", "far")
    assert done.stdout.splitlines()[-1] == other
    assert done.stderr == "not placed: profile far has 16 ranks, this run has 9\n"


def test_a_launcher_has_the_name_of_its_own_version(tmp_path: Path, processes: None) -> None:
    for program, printed, name in (
        ("mpirun", "mpirun (Open MPI) 4.1.4", "Open MPI 4.1.4"),
        ("orterun", "orterun (OpenRTE) 4.1.4", "Open MPI 4.1.4"),
        ("mpiexec", "mpiexec (Open MPI) 5.0.11", "Open MPI 5.0.11"),
        ("prterun", "prterun (PRRTE) 3.0.14", "PRRTE 3.0.14"),
        ("srun", "slurm 26.05.5", "Slurm 26.05.5"),
        ("mpirun", "Intel(R) MPI Library for Linux* OS, Version 2021.18 Build 1", "Intel MPI 2021.18"),
    ):
        path = executable(tmp_path / program, f"#!/bin/sh\necho '{printed}'\n")
        assert launcher_of([str(path)]).name == name
    assert launcher_of(["deepspeed", "train.py"]).name == "DeepSpeed"
    path = executable(tmp_path / "prterun", "#!/bin/sh\necho 'prterun (PRRTE) 9.0'\n")
    with pytest.raises(Unplaced, match=r"it prints 'prterun \(PRRTE\) 9\.0'"):
        launcher_of([str(path)])


TWO_HOSTS = JobEnvironment(hosts=("a", "b"), slots=(1, 1), ranks=2, source="SLURM_JOB_NODELIST")
ON_TWO_HOSTS = ["--nnodes", "2", "--nproc-per-node", "4"]
WORDS = ["srun", "--ntasks-per-node=1", "torchrun", *ON_TWO_HOSTS, "train.py", "--epochs", "3"]
NO_PROFILE = "no profile of train.py with 8 ranks is stored"


class Answered:
    """A child that answers at once with an order."""

    def __init__(self, order: Order) -> None:
        self.order = order

    def answer(self, *_: object) -> Order:
        return self.order


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Run]:
    def read(words: Sequence[str]) -> Any:
        return SLURM, parse_call(words, SLURM.values), TWO_HOSTS

    def prepare(words: Sequence[str] = WORDS, hosts: tuple[str, ...] = (), **wanted: Any) -> Run:
        text = "".join(f"{host}\n" for host in hosts)
        found: dict[str, Any] = {
            "placement": "p1" if hosts else "",
            "reasons": (NO_PROFILE,),
            "profile": "m1",
        }
        order = Order(ranks=8, hosts=hosts, text=text, **found)
        child: Any = Answered(order)
        settings: Any = SimpleNamespace(home=tmp_path)
        return prepare_run(child, settings, Wanted(**wanted), 1.0, words)

    monkeypatch.setattr(running, "read_command", read)
    return prepare


def test_placed_and_in_order_runs_are_of_one_program_whatever_the_master_is(
    prepared: Callable[..., Run],
) -> None:
    straight, crossed, same = prepared(), prepared(hosts=("b", "a")), prepared(hosts=("a", "b"))
    assert crossed.words != straight.words
    assert (crossed.placed, straight.placed) == (True, False)
    programs = {one.described["program"] for one in (straight, crossed, same)}
    assert len(programs) == 1
    assert prepared([*WORDS[:-1], "4"]).described["program"] not in programs


@pytest.fixture
def childless(offline: Almanac, monkeypatch: pytest.MonkeyPatch) -> Almanac:
    """The command without a child that looks for an order."""
    for name, done in (("enter", lambda self: self), ("exit", lambda *_: None), ("init", lambda *_: None)):
        monkeypatch.setattr(PreparedChild, f"__{name}__", done)
    return offline


@pytest.mark.parametrize("words", [WORDS, ["srun", "-n", "2", "./program"]])
def test_a_dry_run_says_why_nothing_is_placed(
    childless: Almanac, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    found = Run(words=tuple(words), reasons=("8 ranks on 2 hosts, from SLURM_JOB_NODELIST", NO_PROFILE))
    monkeypatch.setattr(running, "prepare_run", lambda *_, **__: found)
    outcome = childless("run", "--dry-run", "--", *words)
    assert outcome.out.split() == words
    assert outcome.err == f"not placed: 8 ranks on 2 hosts, from SLURM_JOB_NODELIST; {NO_PROFILE}\n"
    placed = Run(words=tuple(words), reasons=found.reasons, placed=True)
    monkeypatch.setattr(running, "prepare_run", lambda *_, **__: placed)
    assert not childless("run", "--dry-run", "--", *words).err


def test_a_command_that_cannot_be_placed_says_so_once(
    childless: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> Run:
        raise Unplaced("torchrun runs on one host")

    monkeypatch.setattr(running, "prepare_run", refuse)
    monkeypatch.setattr(running, "unplaced_run", lambda words: Run(words=tuple(words)))
    assert childless("run", "--dry-run", "--", *WORDS).err == "not placed: torchrun runs on one host\n"
