"""`almanac run` with a real launcher: it ends as the job ends, and what it measured is in the history."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from almanac.running.launchers import launcher_of
from almanac.running.run import save_run
from almanac.settings import load_settings
from mapping.placement.strategies.baselines import in_order
from registry.database.driver import Database
from registry.model import Allocation, Job, Profile
from registry.model.intake import Intake
from registry.records.placements.records import PlacementRecord
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support import paths
from tests.support.fat_tree import at, fat_tree
from tests.support.full_cluster import measured_run
from tests.support.launchers import HYDRA_ON_LOOPBACK, OPEN_MPI_ON_LOOPBACK, agent, require

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


def run(folder: Path, code: int, *options: str) -> subprocess.CompletedProcess[str]:
    require("mpirun.openmpi")
    launcher = ["mpirun.openmpi", "--allow-run-as-root", *OPEN_MPI_ON_LOOPBACK, "--oversubscribe"]
    launcher += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(agent(folder))]
    launcher += ["--host", "node00:2,node01:2", "-n", "4", "sh", "-c", PROGRAM.format(code=code)]
    words = [sys.executable, "-c", MAIN, "run", "--seconds", "120", *options, *launcher]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=paths.ROOT, check=False)


@pytest.fixture
def filled(embedded: Almanac, embedded_database: Database) -> Registry:
    registry = Registry(embedded_database)
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


def test_runs_are_measured_placed_and_in_order(filled: Registry, embedded: Almanac, tmp_path: Path) -> None:
    for code, options in ((0, ()), (0, ("--in-order",)), (3, ())):
        done = run(tmp_path, code, "--profile", "pairs", "--step", r"took (\S+) s", "--explain", *options)
        assert done.returncode == code, done.stderr
        assert "measured run m" in done.stderr
        assert "step 1 took 0.25 s\n" in done.stdout
    failed, straight, placed = filled.measured_runs.list("toy", "wrf")
    assert (failed.exit_code, straight.placement, straight.exit_code) == (3, None, 0)
    assert placed.placement == failed.placement == filled.placements.history()[0].id
    assert (placed.hosts, placed.slots, placed.ranks) == (("node00", "node01"), (2, 2), 4)
    assert (placed.step_seconds, placed.steps) == (0.25, 1)
    assert placed.launcher.startswith("Open MPI 4.")
    assert [run.verified for run in (placed, straight, failed)] == [True, None, None]
    (row,) = json.loads(embedded("history", "measured", "--json").out)
    assert (row["placed_seconds"], row["in_order_seconds"]) == ([0.25], [0.25])
    assert (row["measured_gain"], row["estimated_gain"], row["worse"]) == (1.0, None, False)
    assert placed.placement in embedded("history", "measured").out


def test_the_load_of_other_jobs_is_stored_and_shown(
    filled: Registry, embedded: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    (row,) = json.loads(embedded("history", "measured", "--json").out)
    assert (row["placed_other_load"], row["in_order_other_load"]) == (0.0, newest.other_load)


def test_a_run_that_is_not_to_be_measured_is_not_stored(filled: Registry, tmp_path: Path) -> None:
    assert run(tmp_path, 4, "--profile", "pairs", "--no-measure").returncode == 4
    assert filled.measured_runs.list() == ()


def test_without_a_database_the_job_runs(
    offline: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(tmp_path, 5, "--cluster", "toy")
    assert (done.returncode, done.stdout) == (5, "step 1 took 0.25 s\n")
    assert "not placed: " in done.stderr


def test_the_first_run_of_an_application_records_its_profile(
    filled: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("mpirun.openmpi")
    monkeypatch.setenv("ALMANAC_HOME", str(tmp_path))
    launcher = ["mpirun.openmpi", "--allow-run-as-root", *OPEN_MPI_ON_LOOPBACK, "--oversubscribe"]
    launcher += ["--host", "localhost:3", "-n", "3", sys.executable, "-c", RING]
    words = [sys.executable, "-c", MAIN, "run", "--seconds", "120", "--explain", "--name", "ring", *launcher]
    for _ in range(2):
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=paths.ROOT, check=False)
        assert done.returncode == 0, done.stderr
    assert "not placed: " in done.stderr  # the profile is known now, this host is not
    stored = filled.profiles.read("ring")
    assert stored.profile.application == "ring"
    assert stored.profile.columns()["bytes"].tolist() == [1000.0] * 3
    (run,) = filled.measured_runs.list()
    assert (run.recorded, run.profile, run.placement) == (True, stored.id, None)
    assert list((tmp_path / "recordings").iterdir()) == []


def test_a_recording_needs_no_job_and_no_fabric(
    embedded: Almanac, embedded_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("mpirun.openmpi")
    monkeypatch.setenv("ALMANAC_HOME", str(tmp_path))
    launcher = ["mpirun.openmpi", "--allow-run-as-root", *OPEN_MPI_ON_LOOPBACK, "--oversubscribe", "-n", "3"]
    words = [sys.executable, "-c", MAIN, "run", "--seconds", "120", "--record", "--explain", "--name", "ring"]
    for program, code in (([sys.executable, "-c", RING], 0), (["sh", "-c", "exit 3"], 3)):
        done = subprocess.run(
            [*words, *launcher, *program],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=paths.ROOT,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert done.stderr.startswith("not measured: this is not inside a job: ")
    assert "nothing is recorded: the launcher ended with exit code 3\n" in done.stderr
    registry = Registry(embedded_database)
    (stored,) = registry.profiles.list()
    assert registry.profiles.read("ring").profile.columns()["bytes"].tolist() == [1000.0] * 3
    assert stored.id == registry.profiles.read("ring").id
    assert registry.measured_runs.list() == ()
    assert list((tmp_path / "recordings").iterdir()) == []


def test_nothing_can_be_recorded_by_a_process_that_becomes_the_launcher(offline: Almanac) -> None:
    refused = offline("run", "--record", "--no-measure", "mpirun", "true")
    assert refused.code == 2
    assert "give either --record or --no-measure" in refused.err


def test_a_program_that_counts_no_messages_is_measured_all_the_same(filled: Registry, tmp_path: Path) -> None:
    done = run(tmp_path, 0, "--name", "other")
    assert (done.returncode, done.stdout) == (0, "step 1 took 0.25 s\n")
    assert done.stderr == (
        "nothing is recorded: the program's MPI library counted no messages (Open MPI does)\n"
    )
    (stored,) = filled.measured_runs.list()
    assert (stored.application, stored.recorded, stored.profile) == ("other", False, None)


def test_a_recording_that_cannot_be_read_is_kept_and_the_run_measured(
    filled: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("mpirun.openmpi")
    launcher = [
        "mpirun.openmpi",
        "--allow-run-as-root",
        *OPEN_MPI_ON_LOOPBACK,
        "-n",
        "1",
        "--host",
        "node00:1",
    ]
    launcher += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(agent(tmp_path))]
    launcher += ["sh", "-c", 'echo damaged >"$OMPI_MCA_pml_monitoring_filename.0.prof"']
    words = [sys.executable, "-c", MAIN, "run", "--seconds", "120", *launcher]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=paths.ROOT, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("nothing is recorded: ")
    kept = Path(done.stderr.split("the recording is in ")[1].strip())
    assert [file.name for file in kept.iterdir()] == ["rank.0.prof"]
    assert [run.recorded for run in filled.measured_runs.list()] == [False]


def test_a_launcher_that_cannot_record_says_so(filled: Registry, tmp_path: Path) -> None:
    require("mpiexec.hydra")
    launcher = ["mpiexec.hydra", *HYDRA_ON_LOOPBACK, "-hosts", "localhost:2", "-n", "2", "sh", "-c", "exit 0"]
    words = [sys.executable, "-c", MAIN, "run", "--seconds", "120", "--record", *launcher]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=paths.ROOT, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"nothing is recorded: {launcher_of(launcher).name} counts no messages by itself\n"
    assert [(run.recorded, run.application) for run in filled.measured_runs.list()] == [(False, "sh")]


def test_a_launcher_that_does_not_obey_is_seen_once_and_not_used_for_orders(
    filled: Registry, tmp_path: Path
) -> None:
    path = tmp_path / "mpirun"
    path.write_text(
        """#!/bin/sh
case "$*" in
*--version*) echo "mpirun (Open MPI) 4.0.0";;
*--tag-output*) for rank in 0 1 2 3; do echo "[1,$rank]<stdout>:almanac-rank 0 0 node00"; done;;
*--map-by*) echo placed;;
*) echo in order;;
esac
"""
    )
    path.chmod(0o755)
    launcher = [str(path), "--host", "node00:2,node01:2", "-n", "4", "./program"]
    words = [sys.executable, "-c", MAIN, "run", "--seconds", "120", "--profile", "pairs", *launcher]
    first, second = (
        subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=paths.ROOT, check=False)
        for _ in range(2)
    )
    assert (first.stdout, second.stdout) == ("in order\n", "in order\n")
    assert first.stderr == (
        "not placed: the launcher starts ranks on other hosts than asked for: rank 1 ran on node00, not on "
        "node01, and 1 more\n"
    )
    assert "almanac doctor --launchers tries it again" in second.stderr
    (run,) = filled.measured_runs.list()
    assert (run.launcher, run.verified, run.placement) == ("Open MPI 4.0.0", False, None)


def test_a_launcher_that_refuses_the_order_starts_the_job_in_its_own(
    filled: Registry, tmp_path: Path
) -> None:
    path = tmp_path / "mpirun"
    path.write_text(
        """#!/bin/sh
case "$*" in
*--version*) echo "mpirun (Open MPI) 4.0.0";;
*--map-by*) echo "no such map" >&2; exit 9;;
*) echo in order; exit 4;;
esac
"""
    )
    path.chmod(0o755)
    launcher = [str(path), "--host", "node00:2,node01:2", "-n", "4", "./program"]
    words = [sys.executable, "-c", MAIN, "run", "--seconds", "120", "--profile", "pairs", *launcher]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=paths.ROOT, check=False)
    assert (done.stdout, done.returncode) == ("in order\n", 4)
    assert done.stderr.startswith("not placed: where the launcher starts ranks could not be seen: ")
    assert done.stderr.endswith("ended with 9: no such map\n")
    (run,) = filled.measured_runs.list()
    assert (run.verified, run.placement, run.exit_code) == (None, None, 4)
