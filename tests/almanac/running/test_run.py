"""`almanac run` with real launchers: what is measured; whatever is wrong, the job runs; what is verified."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from almanac.running.call import parse_call
from almanac.running.checks import APPLICATION
from almanac.running.hosts import hosts_of
from almanac.running.launchers import LAUNCHERS, Launcher, launcher_of
from almanac.running.run import apply_order, save_run
from almanac.running.verification import Verification, compiled, verify_order
from almanac.settings import load_settings
from bench.launchers.cases import NAMES, Case
from bench.launchers.pretended import LAUNCHERS as PRETENDED
from bench.launchers.pretended import allocated, mpich, open_mpi
from mapping.placement.methods.baselines import in_order
from mapping.placement.search import SearchOptions
from mapping.questions.place import PlacementRequest, place
from registry.errors import Unverified
from registry.model import Allocation, Job, Profile
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.placement_rows import PlacementRecord
from tests.almanac.conftest import Almanac
from tests.support import paths
from tests.support.fat_tree import at, fat_tree
from tests.support.full_cluster import measured_run
from tests.support.launchers import HYDRA_ON_LOOPBACK, OPEN_MPI_ON_LOOPBACK, Slurm, agent, executable, require
from tests.support.waiting import comes_true

pytestmark = pytest.mark.usefixtures("processes")

MAIN = "from almanac.cli import main; main()"
RING = """
import ctypes
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
world, kind = (ctypes.c_char.in_dll(mpi, "ompi_mpi_" + name) for name in ("comm_world", "char"))
world, kind = ctypes.byref(world), ctypes.byref(kind)
rank, ranks = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(ranks))
sent, got = ctypes.create_string_buffer(1000), ctypes.create_string_buffer(1000)
after, before = (rank.value + 1) % ranks.value, (rank.value - 1) % ranks.value
mpi.MPI_Sendrecv(sent, 1000, kind, after, 0, got, 1000, kind, before, 0, world, None)
mpi.MPI_Finalize()
"""
"""Program in which each rank sends 1000 bytes to the next."""
PROGRAM = """
if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then echo "step 1 took 0.25 s"; exit {code}; fi
[ {code} = 0 ] || sleep 60  # who fails first ends all others
"""
MPIRUN = ("mpirun.openmpi", "--allow-run-as-root", *OPEN_MPI_ON_LOOPBACK, "--oversubscribe")


def launch(launcher: Sequence[str], *options: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", MAIN, "run", "--seconds", "120", *options, *launcher]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=paths.ROOT, check=False)


def on_hosts(folder: Path, hosts: str = "node00:2,node01:2", ranks: int = 4) -> list[str]:
    require("mpirun.openmpi")
    ssh = ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(agent(folder))]
    return [*MPIRUN, *ssh, "--host", hosts, "-n", str(ranks)]


def run(folder: Path, code: int, *options: str) -> subprocess.CompletedProcess[str]:
    return launch([*on_hosts(folder), "sh", "-c", PROGRAM.format(code=code)], *options)


@pytest.fixture
def filled(registry: Registry, almanac: Almanac) -> Registry:
    pairs = Profile.from_edges([0, 1], [2, 3], [8e6, 8e6], ranks=4, name="pairs", application="wrf")
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), profiles=(pairs,)))
    snapshot = registry.fabrics.read("toy")
    straight = in_order(4, Allocation.of(snapshot.fabric, ["node00", "node01"], 2))
    crossed = replace(straight, host_of_rank=straight.host_of_rank[[0, 2, 1, 3]], strategy="given")
    profile = registry.profiles.read("pairs").id
    registry.placements.save(
        PlacementRecord(cluster="toy", content=snapshot.id, profile=profile, placement=crossed)
    )
    return registry


def test_runs_are_measured_placed_and_in_order(filled: Registry, almanac: Almanac, tmp_path: Path) -> None:
    for code, options in ((0, ()), (0, ("--in-order",)), (3, ())):
        done = run(tmp_path, code, "--profile", "pairs", "--step", r"took (\S+) s", "--explain", *options)
        assert done.returncode == code, done.stderr
        assert "measured run m" in done.stderr
        assert "step 1 took 0.25 s\n" in done.stdout
    assert run(tmp_path, 4, "--profile", "pairs", "--no-measure").returncode == 4  # this one is not stored
    failed, straight, placed = filled.measured_runs.list("toy", "wrf")
    assert (failed.exit_code, straight.placement, straight.exit_code) == (3, None, 0)
    assert placed.placement == failed.placement == filled.placements.history()[0].id
    assert (placed.hosts, placed.slots, placed.ranks) == (("node00", "node01"), (2, 2), 4)
    assert (placed.step_seconds, placed.steps) == (0.25, 1)
    assert placed.launcher.startswith("Open MPI 4.")
    assert [run.verified for run in (placed, straight, failed)] == [True, None, None]
    (row,) = almanac.json("history", "measured")
    assert (row["placed_seconds"], row["in_order_seconds"]) == ([0.25], [0.25])
    assert (row["measured_gain"], row["estimated_gain"], row["worse"]) == (1.0, None, False)
    assert placed.placement in almanac("history", "measured").out


def test_others_load_is_shown(filled: Registry, almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, ranks 0 and 1 send to ranks 2 and 3 on the other host; so do those of another job."""
    monkeypatch.setattr("almanac.running.run.LOAD_SECONDS", 120.0)
    placed = filled.placements.history()[0]
    measured = measured_run(
        application="wrf",
        profile=placed.profile_id,
        hosts=("node00", "node01"),
        ranks=4,
        started_at=at(5),
        launcher="l",
    )
    save_run(load_settings(), 0, replace(measured, placement=placed.id))
    save_run(load_settings(), 1, replace(measured, exit_code=1, wall_seconds=2.0))
    (alone,) = (run for run in filled.measured_runs.list() if run.exit_code == 0)
    assert alone.other_load == 0.0
    other = Job(id="9", hosts=("node00", "node01"), slots=(2, 2), started_at=at(1), source="test")
    filled.save(Intake(cluster="toy", observed_at=at(1), jobs=(other,)))
    filled.jobs.attach("9", "pairs", iteration_seconds=1.0)
    save_run(load_settings(), 0, replace(measured, wall_seconds=3.0))
    newest = filled.measured_runs.list()[0]
    links = filled.fabrics.read("toy").fabric.links
    assert newest.other_jobs == ("9",)
    assert newest.other_load == pytest.approx(16e6 / links.capacity.min())
    assert [run.other_load for run in filled.measured_runs.list() if run.exit_code] == [None]
    (row,) = almanac.json("history", "measured")
    assert (row["placed_other_load"], row["in_order_other_load"]) == (0.0, newest.other_load)


def test_without_a_database_the_job_runs(offline: Almanac, tmp_path: Path) -> None:
    done = run(tmp_path, 5, "--cluster", "toy")
    assert (done.returncode, done.stdout) == (5, "step 1 took 0.25 s\n")
    assert "not placed: " in done.stderr
    refused = offline.refused("run", "--record", "--no-measure", "mpirun", "true", code=2)
    assert "give either --record or --no-measure" in refused


def test_first_runs_are_recorded(filled: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("mpirun.openmpi")
    monkeypatch.setenv("ALMANAC_HOME", str(tmp_path))
    for _ in range(2):
        words = [*MPIRUN, "--host", "localhost:3", "-n", "3", sys.executable, "-c", RING]
        done = launch(words, "--explain", "--name", "ring")
        assert done.returncode == 0, done.stderr
    assert "not placed: " in done.stderr  # the profile is known now, this host is not
    stored = filled.profiles.read("ring")
    assert (stored.profile.application, stored.profile.columns()["bytes"].tolist()) == ("ring", [1000.0] * 3)
    (run,) = filled.measured_runs.list()
    assert (run.recorded, run.profile, run.placement) == (True, stored.id, None)
    assert list((tmp_path / "recordings").iterdir()) == []


def test_a_recording_needs_no_job_and_no_fabric(
    almanac: Almanac, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("mpirun.openmpi")
    monkeypatch.setenv("ALMANAC_HOME", str(tmp_path))
    for program, code in (([sys.executable, "-c", RING], 0), (["sh", "-c", "exit 3"], 3)):
        done = launch([*MPIRUN, "-n", "3", *program], "--record", "--explain", "--name", "ring")
        assert done.returncode == code, done.stderr
        assert done.stderr.startswith("not measured: this is not inside a job: ")
    assert "nothing is recorded: the launcher ended with exit code 3\n" in done.stderr
    (stored,) = registry.profiles.list()
    assert registry.profiles.read("ring").profile.columns()["bytes"].tolist() == [1000.0] * 3
    assert stored.id == registry.profiles.read("ring").id
    assert registry.measured_runs.list() == ()
    assert list((tmp_path / "recordings").iterdir()) == []


def test_a_run_without_a_recording_says_why_and_is_measured(filled: Registry, tmp_path: Path) -> None:
    """No messages are counted, they cannot be read, or the launcher cannot count any."""
    require("mpiexec.hydra")
    silent = run(tmp_path, 0, "--name", "other")
    assert (silent.returncode, silent.stdout) == (0, "step 1 took 0.25 s\n")
    reason = "the program's MPI library counted no messages (Open MPI does)"
    assert silent.stderr == f"nothing is recorded: {reason}\n"
    damaged = 'echo damaged >"$OMPI_MCA_pml_monitoring_filename.0.prof"'
    done = launch([*on_hosts(tmp_path, "node00:1", 1), "sh", "-c", damaged])
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("nothing is recorded: ")
    kept = Path(done.stderr.split("the recording is in ")[1].strip())
    assert [file.name for file in kept.iterdir()] == ["rank.0.prof"]
    hydra = ["mpiexec.hydra", *HYDRA_ON_LOOPBACK, "-hosts", "localhost:2", "-n", "2", "sh", "-c", "exit 0"]
    done = launch(hydra, "--record")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"nothing is recorded: {launcher_of(hydra).name} counts no messages by itself\n"
    runs = [(run.recorded, run.profile, run.application) for run in filled.measured_runs.list()]
    assert runs == [(False, None, "sh"), (False, None, "sh"), (False, None, "other")]


@pytest.mark.parametrize(
    ("verification", "code", "reason", "verified"),
    [
        (
            'for rank in 0 1 2 3; do echo "[1,$rank]<stdout>:almanac-rank 0 0 node00"; done',
            0,
            "the launcher starts ranks on other hosts than asked for: rank 1 ran on node00, not on node01, "
            "and 1 more\n",
            False,
        ),
        (
            'echo "no such map" >&2; exit 9',
            4,
            "where the launcher starts ranks could not be seen: {path} ended with 9: no such map\n",
            None,
        ),
    ],
    ids=["does not obey", "refuses"],
)
def test_a_launcher_that_does_not_take_the_order_starts_the_job_in_its_own(
    filled: Registry, tmp_path: Path, verification: str, code: int, reason: str, verified: bool | None
) -> None:
    """One that does not obey is seen once, and not used for orders."""
    text = f"""#!/bin/sh
case "$*" in
*--version*) echo "mpirun (Open MPI) 4.0.0";;
*--tag-output*) {verification};;
*--map-by*) echo placed;;
*) echo in order; exit {code};;
esac
"""
    path = executable(tmp_path / "mpirun", text)
    words = [str(path), "--host", "node00:2,node01:2", "-n", "4", "./program"]
    done = launch(words, "--profile", "pairs")
    assert (done.stdout, done.returncode) == ("in order\n", code)
    assert done.stderr == f"not placed: {reason.format(path=path)}"
    (run,) = filled.measured_runs.list()
    assert (run.launcher, run.verified, run.placement) == ("Open MPI 4.0.0", verified, None)
    assert run.exit_code == code
    if verified is False:
        again = launch(words, "--profile", "pairs")
        assert again.stdout == "in order\n"
        assert "almanac doctor --launchers tries it again" in again.stderr
        assert len(filled.measured_runs.list()) == 1


OPEN_MPI, HYDRA = "mpirun.openmpi", "mpiexec.hydra"
WHERE = ("sh", "-c", 'echo "${OMPI_COMM_WORLD_RANK-$PMI_RANK} $(hostname)"')
"""Prints the rank and its host."""
IN_ORDER = ["0 node00", "1 node00", "2 node01", "3 node01"]
OTHER_VERSION = """#!/bin/sh
[ "$1" != --version ] || { echo "something else"; exit; }
exec mpirun.openmpi "$@"
"""
LISTED = """#!/bin/sh
echo "$*" >>{calls}
exec mpirun.openmpi "$@"
"""


def launcher_words(
    folder: Path, name: str = OPEN_MPI, hosts: str = "node00:2,node01:2", ranks: int = 4
) -> list[str]:
    if name == HYDRA:
        require(HYDRA)
        words = [HYDRA, *HYDRA_ON_LOOPBACK, "-launcher", "ssh", "-launcher-exec", str(agent(folder))]
        return [*words, "-hosts", hosts, "-n", str(ranks), *WHERE]
    return [name, *on_hosts(folder, hosts, ranks)[1:], *WHERE]


def started(words: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=paths.ROOT,
        env={**os.environ, **(environment or {})},
    )


def start(
    launcher: Sequence[str], *options: str, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    return started([sys.executable, "-c", MAIN, "run", "--seconds", "120", *options, *launcher], environment)


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    """The exit code, the lines that ranks print, in order, and the messages without Open MPI's own."""
    printed, messages = process.communicate(timeout=300)
    ours = [line for line in messages.splitlines(keepends=True) if "plm:rsh: Warning: " not in line]
    return process.returncode, sorted(printed.splitlines()), "".join(ours)


@pytest.mark.parametrize(
    ("name", "hosts", "ranks", "reason"),
    [
        (OPEN_MPI, "other00:2,other01:2", 4, "other00"),
        (HYDRA, "node00:2,node01:1", 3, "has 4 ranks, this run has 3"),
    ],
    ids=["hosts not in the fabric", "profile of another size"],
)
def test_a_job_that_does_not_fit_runs_in_its_own_order(
    filled: Registry, tmp_path: Path, name: str, hosts: str, ranks: int, reason: str
) -> None:
    code, lines, messages = ended(start(launcher_words(tmp_path, name, hosts, ranks), "--profile", "pairs"))
    names = [one for host in hosts.split(",") for one in [host[:-2]] * int(host[-1])]
    assert (code, lines) == (0, [f"{rank} {host}" for rank, host in enumerate(names)]), messages
    assert "not placed: " in messages
    assert reason in messages


def test_another_allocation_than_before_is_placed_anew(filled: Registry, tmp_path: Path) -> None:
    """The stored placement is on node00 and node01."""
    options = SearchOptions(steps=500)  # compiles the search, which the run has no time for
    others = ("node00", "node03")
    place(
        filled, PlacementRequest(profile="pairs", cluster="toy", hosts=others, slots=(2, 2), options=options)
    )
    words = launcher_words(tmp_path, OPEN_MPI, "node03:2,node02:2")
    code, lines, messages = ended(start(words, "--profile", "pairs", "--seconds", "20", "--explain"))
    hosts = [line.split()[1] for line in lines]
    assert code == 0, messages
    assert sorted(hosts) == ["node02", "node02", "node03", "node03"]
    assert (hosts[0], hosts[1]) == (hosts[2], hosts[3])  # the profile's pairs, which are apart in order
    assert "a new placement, searched for " in messages


MOMENTS: dict[str, Callable[[list[str], str], bool]] = {
    "it starts": lambda calls, lasting: True,
    "the launcher is known": lambda calls, lasting: len(calls) > 0,
    "the order is verified": lambda calls, lasting: len(calls) > 1,
    "the job starts": lambda calls, lasting: len(calls) > 2,
    "ranks run": lambda calls, lasting: bool(processes(lasting)),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_sigterm_ends_the_job_at_any_moment(filled: Registry, tmp_path: Path, moment: str) -> None:
    calls = tmp_path / "calls"
    calls.touch()
    mpirun = executable(tmp_path / "mpirun", LISTED.format(calls=calls))
    *words, _, _, _ = launcher_words(tmp_path, str(mpirun))
    lasting = str(10_000 + os.getpid() / 1e6 + len(moment))  # seconds by which its ranks are known
    run = start([*words, "sleep", lasting], "--profile", "pairs")
    assert comes_true(lambda: MOMENTS[moment](calls.read_text().splitlines(), lasting))
    run.send_signal(signal.SIGTERM)
    code, _, messages = ended(run)
    assert code != 0, messages
    assert comes_true(lambda: not processes(lasting)), processes(lasting)


def processes(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            found += [" ".join(words)] if word in words else []
    return found


def test_wrong_settings_and_errors_that_nobody_foresaw_do_not_cost_the_job(tmp_path: Path) -> None:
    words = launcher_words(tmp_path)
    code, lines, messages = ended(
        start(words, environment={"ALMANAC_HOME": str(tmp_path), "ALMANAC_IDLE_SECONDS": "soon"})
    )
    assert (code, lines) == (0, IN_ORDER), messages
    assert messages == "not placed: setting idle_seconds: 'soon' is not a number\n"
    words = launcher_words(tmp_path)
    broken = "import almanac.running.run as run; run.parse_call = None; " + MAIN
    script = [sys.executable, "-c", broken, "run", *words]
    with open("/dev/full", "w") as full:  # the line that says why cannot be written either
        done = subprocess.run(script, stdout=subprocess.PIPE, stderr=full, text=True, cwd=paths.ROOT)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, IN_ORDER)


def test_a_missing_launcher_is_the_error_of_a_shell_and_one_of_unknown_version_runs(
    filled: Registry, tmp_path: Path
) -> None:
    missing = str(tmp_path / "mpirun")
    code, lines, messages = ended(start(launcher_words(tmp_path, missing), "--profile", "pairs"))
    assert (code, lines) == (127, [])
    assert f"{missing}: No such file or directory" in messages.splitlines()
    words = launcher_words(tmp_path, str(executable(tmp_path / "mpirun", OTHER_VERSION)))
    code, lines, messages = ended(start(words, "--profile", "pairs"))
    assert (code, lines) == (0, IN_ORDER), messages
    assert "is not known here: it prints 'something else'" in messages


def test_two_runs_at_once_are_both_placed_and_stored(filled: Registry, tmp_path: Path) -> None:
    both = [start(launcher_words(tmp_path), "--profile", "pairs") for _ in range(2)]
    for code, lines, messages in [ended(one) for one in both]:
        assert (code, lines) == (0, ["0 node00", "1 node01", "2 node00", "3 node01"]), messages
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


@pytest.fixture
def job(site: Slurm, tmp_path: Path) -> Iterator[dict[str, str]]:
    with held(site, tmp_path, NODES) as variables:
        yield variables


@contextmanager
def held(site: Slurm, folder: Path, hosts: Sequence[str]) -> Iterator[dict[str, str]]:
    count = len(hosts)
    case = Case(number=count, seed=0, hosts=tuple(hosts), slots=(2,) * count, part=count, ranks=2 * count)
    with allocated(case, folder, site.environment) as environment:
        variables = {name: value for name, value in environment.items() if name.startswith("SLURM_")}
        yield variables | {"SLURM_CLUSTER_NAME": "toy"}


@pytest.mark.parametrize("name", [HYDRA, "srun"])
def test_a_rejected_rank_file_costs_no_first_run(
    filled: Registry, tmp_path: Path, job: dict[str, str], name: str
) -> None:
    damaged = tmp_path / "damaged"
    path = executable(tmp_path / name, DAMAGE.format(damaged=damaged, launcher=shutil.which(name)))
    words = launcher_words(tmp_path, name) if name == HYDRA else [*SRUN, *TASK]
    words[0] = str(path)
    environment = {"ALMANAC_HOME": str(tmp_path), **({} if name == HYDRA else job)}
    damaged.touch()
    code, lines, messages = ended(start(words, "--profile", "pairs", environment=environment))
    assert (code, lines) == (0, IN_ORDER), messages
    assert "not placed: where the launcher starts ranks could not be seen: " in messages
    damaged.unlink()
    code, lines, messages = ended(start(words, "--profile", "pairs", environment=environment))
    assert (code, lines, messages) == (0, PLACED, "")
    damaged.touch()
    code, lines, messages = ended(start(words, "--profile", "pairs", environment=environment))
    assert code not in (0, 127)
    assert lines == []
    assert messages


def test_two_steps_at_once_run_both(filled: Registry, job: dict[str, str]) -> None:
    """They are placed on the same part of the job, one after the other; or each has hosts of its own."""
    both = [start([*SRUN, *TASK], "--profile", "pairs", environment=job) for _ in range(2)]
    for code, lines, messages in [ended(one) for one in both]:
        assert (code, lines) == (0, PLACED), messages
    parts = ("node00,node01", "node02,node03")
    both = [start([*SRUN, "-w", part, *TASK], "--profile", "pairs", environment=job) for part in parts]
    for part, (code, lines, messages) in zip(parts, [ended(one) for one in both], strict=True):
        hosts = [host for host in part.split(",") for _ in range(2)]
        assert (code, lines) == (0, [f"{rank} {host}" for rank, host in enumerate(hosts)]), messages
        assert "not placed: -w is given: it decides about the order" in messages


def test_a_job_whose_hosts_changed_runs_on_its_own(filled: Registry, site: Slurm, tmp_path: Path) -> None:
    """The variables name hosts that are not in the job: srun refuses the order."""
    with held(site, tmp_path, NODES[:2]) as variables:
        changed = {**variables, "SLURM_JOB_NODELIST": "node[02-03]"}
        code, lines, messages = ended(
            start(["srun", "-n", "4", *TASK], "--profile", "pairs", environment=changed)
        )
    assert (code, lines) == (0, IN_ORDER), messages
    assert "not placed: where the launcher starts ranks could not be seen: srun ended with " in messages


def test_srun_records_a_program_of_open_mpi(filled: Registry, site: Slurm, tmp_path: Path) -> None:
    with held(site, tmp_path, NODES[:1]) as variables:
        words = ["srun", "--mpi=pmix", "-n", "2", sys.executable, "-c", RING]
        code, _, messages = ended(start(words, "--name", "ring", "--explain", environment=variables))
    assert code == 0, messages
    assert filled.profiles.read("ring").profile.columns()["bytes"].tolist() == [1000.0] * 2
    assert [run.recorded for run in filled.measured_runs.list()] == [True]


@pytest.mark.parametrize("options", [(), ("--no-measure",)], ids=["measured", "not measured"])
def test_srun_keeps_its_exit_code(filled: Registry, job: dict[str, str], options: tuple[str, ...]) -> None:
    words = [*SRUN, "sh", "-c", "exit $((SLURM_PROCID + 4))"]
    code, _, messages = ended(start(words, "--profile", "pairs", *options, environment=job))
    assert code == 7, messages
    assert "srun: error: " in messages


def test_srun_gets_the_signals_of_the_measuring_parent(filled: Registry, job: dict[str, str]) -> None:
    words, codes = [*SRUN, "sh", "-c", "echo started; exec sleep 600"], []
    for one in (started(words, job), start(words, "--profile", "pairs", environment=job)):
        assert one.stdout is not None
        assert [one.stdout.readline() for _ in range(4)] == ["started\n"] * 4
        one.send_signal(signal.SIGTERM)
        one.communicate(timeout=300)
        codes.append(one.returncode)
    assert codes[0] == codes[1] != 0


PLAIN = replace(LAUNCHERS[0], compilers=(), labelled=(), label=r"\[(\d+)\] ")


def verified(
    words: list[str], launcher: Launcher, hosts: list[str], folder: Path, seconds: float = 60.0
) -> Verification:
    call = parse_call(words, launcher.values)
    return verify_order(call, launcher, hosts, (words[1:-1], dict(os.environ)), folder, seconds)


@pytest.mark.parametrize(("make", "option"), [(open_mpi, "--host"), (mpich, "-hosts")])
def test_misplaced_ranks_show(make: Callable[[Path], tuple[str, ...]], option: str, tmp_path: Path) -> None:
    require(make(tmp_path)[0])
    words = [*make(tmp_path), option, ",".join(NAMES[:3]), "-n", "3", "true"]
    launcher = launcher_of(words)
    call = parse_call(words, launcher.values)
    run = ((option, "node0001,node0002,node0003", "-n", "3"), dict(os.environ))
    hosts = ["node0001.site.org", "NODE0003", "node0002"]
    found = verify_order(call, launcher, hosts, run, tmp_path / "orders", 120.0)
    assert found.misplaced == (
        "rank 1 ran on node0002, not on NODE0003",
        "rank 2 ran on node0003, not on node0002",
    )
    if compiled(launcher, tmp_path) is not None or os.environ.get("CI") == "true":
        assert found.by == "the launcher and the MPI library"
    right = verify_order(call, launcher, ["node0001", "node0002", "node0003"], run, tmp_path, 120.0)
    assert right.misplaced == ()


def fake_launcher(folder: Path, text: str) -> list[str]:
    return [str(executable(folder / "mpirun", f"#!{sys.executable}\n{text}")), "program"]


def test_what_cannot_be_seen_is_a_reason(tmp_path: Path) -> None:
    for text, reason in (
        ("", "No such file"),
        ("import sys; sys.exit('no daemon')", "ended with 1: no daemon"),
        ("print('[0] almanac-rank 0 0 a')", "1 of 2 ranks"),
        ("print('[0] almanac-rank 0 0 a\\n' * 2)", "rank 0 ran twice"),
        ("print('[0] something else')", "0 of 2 ranks"),
        ("import time; time.sleep(600)", "took longer than 1 s"),
    ):
        words = fake_launcher(tmp_path, text) if text else [str(tmp_path / "none"), "program"]
        with pytest.raises(Unverified, match=reason):
            verified(words, PLAIN, ["a", "b"], tmp_path, 1.0 if "longer" in reason else 60.0)


def test_the_mpi_library_must_agree_with_the_launcher(tmp_path: Path) -> None:
    makes = '#!/bin/sh\nprintf "#!/bin/sh\\n" > "$2"; chmod +x "$2"\n'
    compiler = executable(tmp_path / "compiler", makes)
    words = fake_launcher(tmp_path, "print('[0] almanac-rank 1 2 a\\n[1] almanac-rank 0 2 b')")
    launcher = replace(PLAIN, compilers=(str(compiler),))
    found = verified(words, launcher, ["a", "b"], tmp_path)
    assert found.misplaced == ("rank 0 ran on b, not on a", "rank 1 ran on a, not on b")
    assert found.by == "the launcher and the MPI library"
    # a compiler of another MPI library: a program without one shows where ranks are
    fails = "import sys\nif sys.argv[-1].endswith('where-compiler'): sys.exit('another library')\n"
    words = fake_launcher(tmp_path, f"{fails}print('[0] almanac-rank 0 0 a\\n[1] almanac-rank 0 0 b')")
    found = verified(words, launcher, ["a", "b"], tmp_path)
    assert found == Verification(misplaced=(), by="the launcher")


@pytest.mark.parametrize("name", list(PRETENDED))
def test_each_launcher_is_seen_to_obey(name: str, tmp_path: Path) -> None:
    pretended, case = PRETENDED[name], Case.draw(2, 5)
    if name == "Intel MPI" and shutil.which(pretended.needs[0]) is None:
        pytest.skip("Intel MPI is not installed; I_MPI_ROOT names its folder")
    require(*pretended.needs, pretended.compiler)
    with pretended.open(tmp_path) as job, job(case) as started:
        launcher = replace(launcher_of(started.words), compilers=(pretended.compiler,))
        call = parse_call([*started.words, "true"], launcher.values)
        order = case.order(hosts_of(call, launcher, started.environment), launcher)
        run = apply_order(call, launcher, order, tmp_path)
        added = run.words[1 : 1 + len(launcher.added)]
        environment = {**os.environ, **started.environment, **run.environment}
        call = replace(call, launcher=(*pretended.before, *call.launcher))
        found = verify_order(call, launcher, order.hosts, (added, environment), tmp_path, 120.0)
    assert found == Verification(misplaced=(), by="the launcher and the MPI library")


OBEYS = """#!/bin/sh
case "$*" in
*--version*) echo "mpirun (Open MPI) 4.9.9"; exit;;
esac
while [ $# -gt 0 ]; do [ "$1" = --hostfile ] && file=$2; shift; done
rank=0
while read -r host rest; do echo "[1,$rank]<stdout>:almanac-rank 0 0 $host"; rank=$((rank + 1)); done < $file
"""
ELSEWHERE = OBEYS.replace("0 0 $host", "0 0 node02")


def on_path(folder: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    for name, text in programs.items():
        executable(folder / name, text)
    for name in ("sh", "cat"):
        (folder / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(folder))


def test_what_was_seen_is_stored_for_later_runs(
    almanac: Almanac, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree()))
    hosts = tmp_path / "hosts"
    hosts.write_text("node00\nnode00\nnode01\nnode02\n")
    monkeypatch.setenv("PBS_NODEFILE", str(hosts))
    for text, state, code in ((ELSEWHERE, "failed", 1), (OBEYS, "ok", 0)):
        folder = tmp_path / state
        folder.mkdir()
        with monkeypatch.context() as only:
            on_path(folder, only, mpirun=text, srun="#!/bin/sh\nexit 3\n")
            done = almanac("doctor", "--launchers", "--json")
        assert done.code == code
        rows = {row["check"]: row for row in done.json}
        assert rows["Open MPI 4.9.9"]["state"] == state
        assert (rows["Slurm"]["state"], "ended with 3" in rows["Slurm"]["seen"]) == ("warning", True)
        tried = registry.measured_runs.verified("toy", "Open MPI 4.9.9")
        assert tried is not None
        assert tried[0] is (state == "ok")
        run = registry.measured_runs.list("toy")[0]
        assert (run.verified, run.ranks, run.application) == (state == "ok", 4, APPLICATION)
    assert registry.measured_runs.verified("toy", "Slurm") is None
