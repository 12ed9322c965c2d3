"""torchrun behind srun: each host gets its node rank in the placed order, and all the host of the first."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from almanac.job_environment import JobEnvironment
from almanac.running.call import Unplaced, parse_call
from almanac.running.launchers import LAUNCHERS
from almanac.running.run import in_order, unplaced_run
from almanac.running.torchrun import Torchrun, torchrun_of, torchrun_words
from mapping.placement.search.options import SearchOptions
from mapping.service.placing import place
from mapping.service.request import PlacementRequest
from registry.database.driver import Database
from registry.model import Profile
from registry.model.intake import Intake
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support import paths
from tests.support.fat_tree import at, fat_tree
from tests.support.launchers import Slurm, require, slurm

SLURM = next(one for one in LAUNCHERS if one.name == "Slurm")
NODES = tuple(f"node{number:02}" for number in range(8))
JOB = JobEnvironment(hosts=("a", "b", "c"), slots=(1, 1, 1), ranks=3)
START = 'export PET_NODE_RANK="$SLURM_PROCID" PET_MASTER_ADDR="$1"; shift; exec "$@"'
STAND_IN = '#!/bin/sh\necho "$PET_NODE_RANK $SLURMD_NODENAME $PET_MASTER_ADDR $*"\n'
"""A program in torchrun's place, which prints what torchrun would read."""


def found(words: str, job: JobEnvironment = JOB, **environment: str) -> Torchrun | None:
    return torchrun_of(parse_call(["srun", *words.split()], SLURM.values), SLURM, job, environment)


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("torchrun train.py", 1),
        ("/opt/bin/torchrun train.py", 1),
        ("python3.11 -u -m torch.distributed.run train.py", 4),
        ("python -m torch.distributed.run train.py", 3),
        ("python -m torch.distributed.launch train.py", 0),
        ("python train.py", 0),
        ("python", 0),
        ("", 0),
    ],
)
def test_torchrun_is_known_by_its_words(words: str, count: int) -> None:
    assert torchrun_words(words.split()) == count


def test_the_node_rank_is_that_of_the_task_and_the_master_is_the_first_host() -> None:
    own = "--nnodes=3 --nproc_per_node 4 --master-port 29555 -m pkg.train --lr 1"
    torchrun = found(f"-N3 torchrun --master_addr a {own}")
    assert torchrun is not None
    assert (torchrun.ranks_per_host, torchrun.call.application) == (4, "pkg.train")
    start = ("sh", "-c", START, "sh", "c", "torchrun")
    assert torchrun.words("c", placed=True) == (*start, *own.split())
    assert torchrun.words("c", placed=False) == (*start, "--master_addr", "a", *own.split())
    assert found("./program") is None


def test_options_are_taken_from_variables() -> None:
    assert found("torchrun train.py", PET_NNODES="3", PET_NPROC_PER_NODE="2") is not None
    torchrun = found("torchrun --nnodes 3 --nproc-per-node gpu train.py", SLURM_GPUS_ON_NODE="8")
    assert torchrun is not None
    assert torchrun.ranks_per_host == 8
    call = parse_call(["srun", *torchrun.call.words()], SLURM.values)
    assert in_order(call, torchrun, JOB)[5] == "a"
    torchrun = found("torchrun --nnodes 3 --nproc-per-node auto train.py")
    assert torchrun is not None
    with pytest.raises(Unplaced, match="--nproc-per-node auto is not known before it starts: give a number"):
        assert torchrun.ranks_per_host


@pytest.mark.parametrize(
    ("words", "reason"),
    [
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
    ],
)
def test_what_decides_about_ranks_itself_is_not_placed(words: str, reason: str) -> None:
    with pytest.raises(Unplaced, match=reason):
        found(f"torchrun {words}")


def test_torchrun_starts_once_on_each_host() -> None:
    with pytest.raises(Unplaced, match="6 tasks start torchrun on 3 hosts: give --ntasks-per-node=1"):
        found("torchrun --nnodes 3 t.py", JobEnvironment(hosts=("a", "b", "c"), slots=(2, 2, 2), ranks=6))


def test_on_one_host_there_is_no_order() -> None:
    with pytest.raises(Unplaced, match="torchrun runs on one host"):
        found("torchrun --standalone t.py", JobEnvironment(hosts=("a",), slots=(1,), ranks=1))


def test_an_unplaced_command_is_as_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (["torchrun", "--nnodes", "2", "t.py"], ["no-launcher", "x"]):
        assert unplaced_run(words).words == tuple(words)


class Cluster:
    """A Slurm with a stand-in for torchrun, and almanac with a profile of a training program."""

    def __init__(self, scheduler: Slurm, folder: Path) -> None:
        self.scheduler, self.folder = scheduler, folder
        self.torchrun = folder / "torchrun"
        self.torchrun.write_text(STAND_IN)
        self.torchrun.chmod(0o755)

    def run(self, options: str, words: str) -> tuple[list[list[str]], str]:
        """Run torchrun on all hosts; return what each prints, by node rank, and the messages."""
        main = f"{sys.executable} -c 'from almanac.cli import main; main()' run --seconds 120 {options}"
        script = f"{main} srun {self.torchrun} {words}"
        environment = {
            **os.environ,
            **self.scheduler.environment,
            "ALMANAC_HOME": str(self.folder),
        }
        done = subprocess.run(
            ["salloc", "-Q", "-N", "8", "--ntasks-per-node=1", "sh", "-c", script],
            env=environment, capture_output=True, text=True, timeout=300, cwd=paths.ROOT, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return sorted(line.split(" ", 3) for line in done.stdout.splitlines()), done.stderr


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Slurm, Path]]:
    require("slurmctld", "slurmd", "srun", "salloc")
    folder = tmp_path_factory.mktemp("slurm")
    with slurm(folder, "node[00-07]", NODES, 2) as started:
        yield started, folder


@pytest.fixture
def cluster(scheduler: tuple[Slurm, Path]) -> Cluster:
    return Cluster(*scheduler)


@pytest.fixture
def filled(embedded: Almanac, embedded_database: Database) -> Registry:
    """Hosts in pairs on four leaves; the ranks of host number n talk to those of n + 4."""
    registry = Registry(embedded_database)
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
    """The host of each rank in the placement that is stored."""
    stored = [registry.placements.read(row.id) for row in registry.placements.history()]
    (found,) = (one for one in stored if ("consecutive" in one.placement.parameters) == consecutive)
    return list(found.hosts)


def test_node_ranks_follow_the_placement(cluster: Cluster, filled: Registry) -> None:
    words = "--nnodes 8 --nproc-per-node 2 train.py --lr 1"
    printed, said = cluster.run("--explain", words)
    order = placed_hosts(filled)[::2]
    assert order != list(NODES)
    assert printed == [[str(rank), host, order[0], words] for rank, host in enumerate(order)], said
    for host, partner in zip(order[:4], order[4:], strict=True):
        assert int(host[4:]) // 2 == int(partner[4:]) // 2  # on one leaf
    assert "the order is verified by the launcher" in said
    assert "of the same profile and hosts" in said
    (run,) = filled.measured_runs.list("ft", "train.py")
    assert (run.ranks, run.slots, run.verified) == (16, (2,) * 8, True)


@pytest.mark.parametrize("options", ["--profile nothing", "--in-order"])
def test_without_a_placement_node_ranks_are_in_order(
    cluster: Cluster, filled: Registry, options: str
) -> None:
    words = "--nnodes 8 --nproc-per-node 2 train.py"
    printed, said = cluster.run(options, words)
    assert printed == [[str(rank), host, "node00", words] for rank, host in enumerate(NODES)], said
    assert ("not placed: " in said) == (options != "--in-order")


def test_a_rendezvous_that_chooses_ranks_is_left_alone(cluster: Cluster, filled: Registry) -> None:
    words = "--nnodes 8 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint node00 train.py"
    printed, said = cluster.run("", words)
    assert sorted(printed) == sorted(["", host, "", words] for host in NODES)
    assert said.startswith(
        "not placed: with --rdzv-backend c10d torchrun chooses node ranks itself: leave out "
    )
