"""Whatever is wrong with a run, the job runs in its own order, or the launcher's own error comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bench.launchers.cases import Case
from bench.launchers.pretended import allocated
from mapping.placement.search.options import SearchOptions
from mapping.service.placing import place
from mapping.service.request import PlacementRequest
from registry.registry import Registry
from tests.almanac.commands.placing.test_run_measured import MAIN, RING, filled
from tests.support import paths
from tests.support.launchers import (
    HYDRA_ON_LOOPBACK,
    OPEN_MPI_ON_LOOPBACK,
    Slurm,
    agent,
    require,
    slurm,
)
from tests.support.waiting import comes_true

__all__ = ["filled"]

OPEN_MPI, HYDRA = "mpirun.openmpi", "mpiexec.hydra"
PROGRAM = ("sh", "-c", 'echo "${OMPI_COMM_WORLD_RANK-$PMI_RANK} $(hostname)"')
"""Prints the rank and its host."""
IN_ORDER = ["0 node00", "1 node00", "2 node01", "3 node01"]
OTHER_VERSION = """#!/bin/sh
[ "$1" != --version ] || {{ echo "{version}"; exit; }}
exec mpirun.openmpi "$@"
"""


def command(
    folder: Path, name: str = OPEN_MPI, hosts: str = "node00:2,node01:2", ranks: int = 4
) -> list[str]:
    if name == HYDRA:
        require(HYDRA)
        words = [HYDRA, *HYDRA_ON_LOOPBACK, "-launcher", "ssh", "-launcher-exec", str(agent(folder))]
        return [*words, "-hosts", hosts, "-n", str(ranks), *PROGRAM]
    require(OPEN_MPI)
    words = [name, "--allow-run-as-root", *OPEN_MPI_ON_LOOPBACK, "--oversubscribe"]
    words += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(agent(folder))]
    return [*words, "--host", hosts, "-n", str(ranks), *PROGRAM]


def start(
    launcher: Sequence[str], *options: str, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", MAIN, "run", "--seconds", "120", *options, *launcher]
    return subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=paths.ROOT,
        env={**os.environ, **(environment or {})},
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    """The exit code, the lines printed by the ranks in their order, and the messages."""
    printed, said = process.communicate(timeout=300)
    return process.returncode, sorted(printed.splitlines()), said


@pytest.mark.parametrize("name", [OPEN_MPI, HYDRA])
@pytest.mark.parametrize(
    ("hosts", "ranks", "reason"),
    [("other00:2,other01:2", 4, "other00"), ("node00:2,node01:1", 3, "has 4 ranks, this run has 3")],
    ids=["hosts not in the fabric", "profile of another size"],
)
def test_a_job_that_does_not_fit_runs_in_its_own_order(
    filled: Registry, tmp_path: Path, name: str, hosts: str, ranks: int, reason: str
) -> None:
    code, lines, said = ended(start(command(tmp_path, name, hosts, ranks), "--profile", "pairs"))
    names = [one for host in hosts.split(",") for one in [host[:-2]] * int(host[-1])]
    assert (code, lines) == (0, [f"{rank} {host}" for rank, host in enumerate(names)]), said
    assert "not placed: " in said
    assert reason in said


def test_another_allocation_than_before_is_placed_anew(filled: Registry, tmp_path: Path) -> None:
    """The stored placement is on node00 and node01."""
    options = SearchOptions(steps=500)  # compiles the search, which the run has no time for
    others = ("node00", "node03")
    place(
        filled, PlacementRequest(profile="pairs", cluster="toy", hosts=others, slots=(2, 2), options=options)
    )
    words = command(tmp_path, OPEN_MPI, "node03:2,node02:2")
    code, lines, said = ended(start(words, "--profile", "pairs", "--seconds", "20", "--explain"))
    hosts = [line.split()[1] for line in lines]
    assert code == 0, said
    assert sorted(hosts) == ["node02", "node02", "node03", "node03"]
    assert (hosts[0], hosts[1]) == (hosts[2], hosts[3])  # the profile's pairs, which are apart in order
    assert "a new placement, searched for " in said


@pytest.mark.parametrize("moment", [0.02, 0.3, 0.8, 1.6, 3.2, 6.4])
def test_sigterm_ends_the_job_at_any_moment(filled: Registry, tmp_path: Path, moment: float) -> None:
    """While the order is sought, verified, or the job runs; nothing of it is left."""
    *words, _, _, _ = command(tmp_path)
    lasting = str(10_000 + os.getpid() / 1e6 + moment)  # seconds by which its ranks are known
    run = start([*words, "sleep", lasting], "--profile", "pairs")
    time.sleep(moment)
    run.send_signal(signal.SIGTERM)
    code, _, said = ended(run)
    assert code != 0, said
    assert comes_true(lambda: not processes(lasting)), processes(lasting)


def processes(word: str) -> list[str]:
    """Return the command of each process that has a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            found += [" ".join(words)] if word in words else []
    return found


def test_another_number_of_ranks_than_before_runs_in_order(filled: Registry, tmp_path: Path) -> None:
    words = command(tmp_path, HYDRA, "node00:2,node01:1", 3)
    code, lines, said = ended(start(words, "--name", "wrf", "--explain"))
    assert (code, lines) == (0, IN_ORDER[:3]), said
    assert "no profile of wrf with 3 ranks is stored" in said


def test_wrong_settings_do_not_cost_the_job(tmp_path: Path) -> None:
    words = command(tmp_path)
    code, lines, said = ended(
        start(words, environment={"ALMANAC_HOME": str(tmp_path), "ALMANAC_IDLE_SECONDS": "soon"})
    )
    assert (code, lines) == (0, IN_ORDER), said
    assert said == "not placed: setting idle_seconds: 'soon' is not a number\n"


def test_an_error_that_nobody_foresaw_does_not_cost_the_job(tmp_path: Path) -> None:
    words = command(tmp_path)
    broken = "import almanac.running.run as run; run.parse_call = None; " + MAIN
    script = [sys.executable, "-c", broken, "run", *words]
    with open("/dev/full", "w") as full:  # the line that says why cannot be written either
        done = subprocess.run(script, stdout=subprocess.PIPE, stderr=full, text=True, cwd=paths.ROOT)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, IN_ORDER)


def test_a_launcher_that_is_not_there_is_the_error_of_a_shell(filled: Registry, tmp_path: Path) -> None:
    missing = str(tmp_path / "mpirun")
    code, lines, said = ended(start(command(tmp_path, missing), "--profile", "pairs"))
    assert (code, lines) == (127, [])
    assert f"{missing}: No such file or directory" in said.splitlines()


@pytest.mark.parametrize("version", ["mpirun (Open MPI) 17.0", "something else"])
def test_a_launcher_of_an_unknown_version_runs_the_job(
    filled: Registry, tmp_path: Path, version: str
) -> None:
    path = tmp_path / "mpirun"
    path.write_text(OTHER_VERSION.format(version=version))
    path.chmod(0o755)
    code, lines, said = ended(start(command(tmp_path, str(path)), "--profile", "pairs"))
    assert (code, lines) == (0, IN_ORDER), said
    assert f"is not known here: it prints '{version}'" in said


def test_an_order_that_the_launcher_refuses_does_not_cost_the_job(filled: Registry, tmp_path: Path) -> None:
    words = command(tmp_path)
    words[1:1] = ["--mca", "rmaps", "^seq,rank_file"]  # without what places each rank
    assert ended(start(words, "--profile", "pairs", "--in-order"))[:2] == (0, IN_ORDER)
    code, lines, said = ended(start(words, "--profile", "pairs"))
    assert (code, lines) == (0, IN_ORDER), said
    assert "not placed: where the launcher starts ranks could not be seen: mpirun.openmpi ended" in said


def test_two_runs_at_once_are_both_placed_and_stored(filled: Registry, tmp_path: Path) -> None:
    both = [start(command(tmp_path), "--profile", "pairs") for _ in range(2)]
    for code, lines, said in [ended(one) for one in both]:
        assert (code, lines) == (0, ["0 node00", "1 node01", "2 node00", "3 node01"]), said
    runs = filled.measured_runs.list("toy", "wrf")
    assert [run.exit_code for run in runs] == [0, 0]
    assert len({run.placement for run in runs}) == 1


NODES = ("node00", "node01", "node02", "node03")
SRUN = ("srun", "-N", "2", "-n", "4")
TASK = ("sh", "-c", 'echo "$SLURM_PROCID $SLURMD_NODENAME"')
PLACED = ["0 node00", "1 node01", "2 node00", "3 node01"]
DAMAGE = """#!/bin/sh
# Damages the file of an order, where {damaged} exists, and becomes the launcher.
for word in "$SLURM_HOSTFILE" "$@"; do
    case $word in */orders/*) [ -e {damaged} ] && echo "no host" >"$word";; esac
done
exec {launcher} "$@"
"""


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Slurm]]:
    """Slurm with four hosts of four slots."""
    require("slurmctld", "slurmd", "srun", "salloc")
    folder = tmp_path_factory.mktemp("slurm")
    with slurm(folder, "node[00-03]", NODES, 4) as running:
        yield folder, running


@pytest.fixture
def job(scheduler: tuple[Path, Slurm]) -> Iterator[dict[str, str]]:
    """Variables of a job with two slots of each host."""
    with held(scheduler, NODES) as variables:
        yield variables


@contextmanager
def held(scheduler: tuple[Path, Slurm], hosts: Sequence[str]) -> Iterator[dict[str, str]]:
    """Hold two slots of each of the first hosts; yield the job's variables."""
    folder, running = scheduler
    count = len(hosts)
    case = Case(number=count, seed=0, hosts=tuple(hosts), slots=(2,) * count, part=count, ranks=2 * count)
    with allocated(case, folder, running.environment) as environment:
        variables = {name: value for name, value in environment.items() if name.startswith("SLURM_")}
        yield variables | {"SLURM_CLUSTER_NAME": "toy"}


def damaging(folder: Path, launcher: str) -> tuple[Path, Path]:
    """Return a launcher that damages orders, and the file that makes it do so."""
    path, damaged = folder / Path(launcher).name, folder / "damaged"
    path.write_text(DAMAGE.format(damaged=damaged, launcher=launcher))
    path.chmod(0o755)
    return path, damaged


@pytest.mark.parametrize("name", [HYDRA, "srun"])
def test_a_rejected_rank_file_does_not_cost_a_first_run_and_is_an_error_later(
    filled: Registry, tmp_path: Path, job: dict[str, str], name: str
) -> None:
    real = subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip()
    path, damaged = damaging(tmp_path, real)
    words = command(tmp_path, name) if name == HYDRA else [*SRUN, *TASK]
    words[0] = str(path)
    environment = {"ALMANAC_HOME": str(tmp_path), **({} if name == HYDRA else job)}
    damaged.touch()
    code, lines, said = ended(start(words, "--profile", "pairs", environment=environment))
    assert (code, lines) == (0, IN_ORDER), said
    assert "not placed: where the launcher starts ranks could not be seen: " in said
    damaged.unlink()
    code, lines, said = ended(start(words, "--profile", "pairs", environment=environment))
    assert (code, lines, said) == (0, PLACED, "")
    damaged.touch()
    code, lines, said = ended(start(words, "--profile", "pairs", environment=environment))
    assert code not in (0, 127)
    assert lines == []
    assert said


def test_two_steps_at_once_run_both(filled: Registry, job: dict[str, str]) -> None:
    """They are placed on the same part of the job: Slurm starts one after the other."""
    both = [start([*SRUN, *TASK], "--profile", "pairs", environment=job) for _ in range(2)]
    for code, lines, said in [ended(one) for one in both]:
        assert (code, lines) == (0, PLACED), said


def test_two_steps_at_once_with_hosts_of_their_own_run_there(filled: Registry, job: dict[str, str]) -> None:
    parts = ("node00,node01", "node02,node03")
    both = [start([*SRUN, "-w", part, *TASK], "--profile", "pairs", environment=job) for part in parts]
    for part, (code, lines, said) in zip(parts, [ended(one) for one in both], strict=True):
        hosts = [host for host in part.split(",") for _ in range(2)]
        assert (code, lines) == (0, [f"{rank} {host}" for rank, host in enumerate(hosts)]), said
        assert "not placed: -w is given: it decides about the order" in said


def test_a_job_whose_hosts_have_changed_runs_on_those_it_has(
    filled: Registry, scheduler: tuple[Path, Slurm]
) -> None:
    """The variables name hosts that are not in the job: srun refuses the order."""
    with held(scheduler, NODES[:2]) as variables:
        changed = {**variables, "SLURM_JOB_NODELIST": "node[02-03]"}
        code, lines, said = ended(
            start(["srun", "-n", "4", *TASK], "--profile", "pairs", environment=changed)
        )
    assert (code, lines) == (0, IN_ORDER), said
    assert "not placed: where the launcher starts ranks could not be seen: srun ended with " in said


def test_srun_records_a_program_of_open_mpi(filled: Registry, scheduler: tuple[Path, Slurm]) -> None:
    with held(scheduler, NODES[:1]) as variables:
        words = ["srun", "--mpi=pmix", "-n", "2", sys.executable, "-c", RING]
        code, _, said = ended(start(words, "--name", "ring", "--explain", environment=variables))
    assert code == 0, said
    assert filled.profiles.read("ring").profile.columns()["bytes"].tolist() == [1000.0] * 2
    assert [run.recorded for run in filled.measured_runs.list()] == [True]


@pytest.mark.parametrize("options", [(), ("--no-measure",)], ids=["measured", "not measured"])
def test_srun_ends_with_its_own_exit_code(
    filled: Registry, job: dict[str, str], options: tuple[str, ...]
) -> None:
    words = [*SRUN, "sh", "-c", "exit $((SLURM_PROCID + 4))"]
    code, _, said = ended(start(words, "--profile", "pairs", *options, environment=job))
    assert code == 7, said
    assert "srun: error: " in said


def test_srun_gets_the_signals_of_the_measuring_parent(filled: Registry, job: dict[str, str]) -> None:
    task = ("sh", "-c", "echo started; exec sleep 60")
    plain = subprocess.Popen(
        [*SRUN, *task],
        env={**os.environ, **job},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    codes = []
    for one in (plain, start([*SRUN, *task], "--profile", "pairs", environment=job)):
        assert one.stdout is not None
        assert [one.stdout.readline() for _ in range(4)] == ["started\n"] * 4
        one.send_signal(signal.SIGTERM)
        one.communicate(timeout=30)
        codes.append(one.returncode)
    assert codes[0] == codes[1] != 0
