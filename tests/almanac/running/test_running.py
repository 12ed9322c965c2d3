"""A launcher's command: options, hosts, ranks, what is added and printed; its order: stored, else new."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from almanac.job_environment import JobEnvironment
from almanac.running import order
from almanac.running.call import parse_call
from almanac.running.hosts import hosts_of
from almanac.running.launchers import LAUNCHERS, Launcher
from almanac.running.order import Order, Wanted
from almanac.running.processes import Steps
from almanac.running.run import Recording, apply_order, new_recording
from mapping.placement.search import SearchOptions
from mapping.questions.place import PlacementRequest, place
from registry.database.embedded_server import ServerAddress
from registry.errors import UnknownName, Unplaced
from registry.model import Profile
from registry.model.intake import Intake
from registry.model.job import MeasuredRun
from registry.registry import Registry
from tests.support.fat_tree import at, fat_tree
from tests.support.full_cluster import measured_run
from tests.support.paths import ROOT

VALUES = {"n": 1, "np": 1, "mca": 2, "host": 1, "oversubscribe": 0, "ntasks": 1}


def test_options_end_where_the_program_begins() -> None:
    words = "mpirun -n 4 --mca btl tcp,self --oversubscribe ./app -n 9 --host x"
    call = parse_call(words.split(), VALUES)
    assert call.program == ("./app", "-n", "9", "--host", "x")
    assert [option.name for option in call.options] == ["n", "mca", "oversubscribe"]
    assert call.options[1].values == ("btl", "tcp,self")
    assert call.count(("n", "np")) == 4
    assert call.last(("host",)) is None
    assert call.words() == tuple(words.split())
    assert call.words(["--hostfile", "f"], {"n"}) == (
        *("mpirun", "--hostfile", "f", "--mca", "btl", "tcp,self", "--oversubscribe"),
        *("./app", "-n", "9", "--host", "x"),
    )


def test_an_application_has_the_name_of_what_runs() -> None:
    for program, application in (
        *((("/opt/wrf/bin/wrf.exe", "-n", "4"), "wrf.exe"), (("--", "./app", "--", "x"), "app")),
        (("python3", "runs/train.py", "--lr", "1"), "train.py"),
        (("/usr/bin/python3.11", "-u", "-m", "pkg.train", "x.py"), "pkg.train"),
        *((("python", "-c", "print(1)"), "python"), (("python", "-X", "dev", "a.py"), "python")),
        *((("python3",), "python3"), (("python3", "-m"), "python3"), (("pythonic", "a.py"), "pythonic")),
    ):
        assert parse_call(["mpirun", *program], VALUES).application == application


@pytest.mark.parametrize("given", ["-n4", "-n=4", "--ntasks=4", "-np 4", "--n 4"])
def test_a_value_may_be_attached(given: str) -> None:
    call = parse_call(["srun", *given.split(), "./app"], VALUES)
    assert call.count(("n", "np", "ntasks")) == 4
    assert call.program == ("./app",)
    assert parse_call(["mpirun", "-n", "4", "-np", "8", "a"], VALUES).count(("n", "np")) == 8


def test_a_command_that_is_not_understood_is_not_changed() -> None:
    for words, reason in (
        ("mpirun -n 4 --new-option 3 ./app", "--new-option of mpirun is not known"),
        ("mpirun -n 4", "no program"),
        ("mpirun -n 4 --", "no program"),
        ("mpirun --mca btl", "--mca lacks its value"),
        ("mpirun --oversubscribe=yes ./app", "not known"),
    ):
        with pytest.raises(Unplaced, match=reason):
            parse_call(words.split(), VALUES)


def test_a_number_of_ranks_is_an_integer() -> None:
    for value in ("0", "-1", "four", "1.5"):
        with pytest.raises(Unplaced, match=f"{value} is not a number"):
            parse_call(["mpirun", "-n", value, "a"], VALUES).count(("n",))


OPEN_MPI, _, _, MPICH, INTEL_MPI, SLURM, FLUX, DEEPSPEED = LAUNCHERS
JOB = {"SLURM_JOB_NODELIST": "n[1-4]", "SLURM_TASKS_PER_NODE": "2(x4)", "SLURM_NTASKS": "8"}


def hosts_found(launcher: Launcher, words: str, variables: dict[str, str] | None = None) -> tuple[Any, ...]:
    job = hosts_of(parse_call(words.split(), launcher.values), launcher, variables or {})
    return job.hosts, job.slots, job.ranks


def test_hosts_are_those_of_the_command_of_a_file_or_of_the_job(tmp_path: Path) -> None:
    four = ("n1", "n2", "n3", "n4")
    expected: tuple[tuple[Launcher, str, tuple[tuple[str, ...], tuple[int, ...], int]], ...] = (
        (OPEN_MPI, "mpirun -n 3 --host b:2,a:2 x", (("b", "a"), (2, 2), 3)),
        (OPEN_MPI, "mpirun --host b,a,b x", (("b", "a"), (2, 1), 3)),
        (OPEN_MPI, "mpirun --npernode 4 --host a,b x", (("a", "b"), (4, 4), 8)),
        (MPICH, "mpiexec -ppn 2 -hosts a,b -n 4 x", (("a", "b"), (2, 2), 4)),
        (SLURM, "srun x", (four, (2, 2, 2, 2), 8)),
        (SLURM, "srun -n 4 -N 2 x", (("n1", "n2"), (2, 2), 4)),
        (SLURM, "srun -N 2 x", (("n1", "n2"), (2, 2), 4)),
        (SLURM, "srun --ntasks=3 x", (four, (2, 2, 2, 2), 3)),
    )
    for launcher, words, found in expected:
        assert hosts_found(launcher, words, JOB) == found
    file = tmp_path / "hosts"
    file.write_text("b slots=3\na slots=1\n")
    assert hosts_found(OPEN_MPI, f"mpirun -n 4 --hostfile {file} x") == (("b", "a"), (3, 1), 4)
    assert hosts_found(DEEPSPEED, f"deepspeed -H {file} x", JOB) == (("b", "a"), (3, 1), 4)
    file.write_text("b:3\na:1\n")
    assert hosts_found(MPICH, f"mpiexec -n 2 -f {file} x") == (("b", "a"), (3, 1), 2)


def test_what_decides_does_not_fit_or_is_missing_is_a_reason() -> None:
    for launcher, words, reason in (
        (OPEN_MPI, "mpirun --map-by node --host a:2 -n 2 x", "--map-by is given"),
        (OPEN_MPI, "mpirun --rankfile f --host a:2 -n 2 x", "--rankfile is given"),
        (SLURM, "srun -m cyclic x", "-m is given"),
        (SLURM, "srun -w n3 x", "-w is given"),
        (OPEN_MPI, "mpirun --host a -n 1 x : -n 1 y", "several programs"),
        (OPEN_MPI, "mpirun --host a:2 -n 3 x", "3 ranks are more than the 2 slots"),
        (SLURM, "srun -N 5 x", "5 hosts are asked for, and the job has 4"),
        (OPEN_MPI, "mpirun --host a --hostfile f x", "given twice"),
        (OPEN_MPI, "mpirun --host a:b x", "'a:b' is no host"),
        (OPEN_MPI, "mpirun --hostfile /no/such/file x", "cannot be read"),
        (DEEPSPEED, "deepspeed --num_nodes 4 x", "--num_nodes is given: it decides about the order"),
        (DEEPSPEED, "deepspeed --include node01 x", "--include is given: it decides about the order"),
        (DEEPSPEED, "deepspeed --launcher slurm x", "--launcher is given: it decides about the order"),
        (DEEPSPEED, "deepspeed x", "/job/hostfile"),
    ):
        with pytest.raises(Unplaced, match=reason):
            hosts_found(launcher, words, JOB)
    with pytest.raises(Unplaced, match=r"not inside a job.*name hosts and slots"):
        hosts_found(OPEN_MPI, "mpirun -n 2 x")


ORDER = Order(ranks=4, text="b\na\nb\na\n", placement="p1", reasons=("found",))


def test_the_order_replaces_hosts_and_ranks(tmp_path: Path) -> None:
    for launcher, changed in (
        (OPEN_MPI, "mpirun -x A --host a:2,b:2 -np 4 --bind-to core ./app -n 9"
         "|mpirun --hostfile {file} --map-by seq -n 4 -x A --bind-to core ./app -n 9"),
        (MPICH, "mpiexec -hosts a,b -ppn 2 -l ./app|mpiexec -f {file} -n 4 -l ./app"),
        (INTEL_MPI, "mpirun -hosts a,b -perhost 2 -prot ./app|mpirun -machinefile {file} -n 4 -prot ./app"),
        (SLURM, "srun -N 2 -n4 --mpi=pmix ./app|srun --ntasks=4 --distribution=arbitrary --mpi=pmix ./app"),
        (FLUX, "flux run -N2 --ntasks 4 -o verbose=1 ./app -n 9"
         "|flux run --taskmap=hostfile:{file} -N2 --ntasks 4 -o verbose=1 ./app -n 9"),
        (DEEPSPEED, "deepspeed -H hosts --master_port 9999 train.py --hostfile x"
         "|deepspeed --hostfile {file} --master_port 9999 train.py --hostfile x"),
    ):  # fmt: skip
        given, placed = changed.split("|")
        call = parse_call(given.split(), launcher.values, 1 + len(launcher.subcommand))
        run = apply_order(call, launcher, ORDER, tmp_path / "orders")
        file = tmp_path / "orders" / f"p1.{launcher.format}"
        assert run.words == tuple(placed.format(file=file).split())
        assert run.environment == ({"SLURM_HOSTFILE": str(file)} if launcher is SLURM else {})
        assert (file.read_text(), file.stat().st_mode & 0o777) == (ORDER.text, 0o600)
        assert run.reasons == ("found", f"{launcher.name} takes the order from {file}")
    (tmp_path / "no folder").touch()
    with pytest.raises(Unplaced, match="cannot be written"):
        apply_order(parse_call(["srun", "./app"], SLURM.values), SLURM, ORDER, tmp_path / "no folder")


@pytest.fixture
def counting() -> Launcher:
    return next(launcher for launcher in LAUNCHERS if launcher.recording)


def test_the_variables_name_a_new_folder(counting: Launcher, tmp_path: Path) -> None:
    first, variables = new_recording(counting, tmp_path, "wrf")
    second, _ = new_recording(counting, tmp_path, "wrf")
    assert first.folder != second.folder
    assert first.folder.parent == second.folder.parent == tmp_path / "recordings"
    assert str(first.folder / "rank") in variables.values()
    assert "{" not in "".join(variables.values())


def test_who_counts_nothing_and_a_folder_without_access_are_named(counting: Launcher, tmp_path: Path) -> None:
    with pytest.raises(Unplaced, match="silent 1 counts no messages by itself"):
        new_recording(replace(counting, name="silent 1", recording={}), tmp_path, "wrf")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "recordings").write_text("a file")
    with pytest.raises(Unplaced, match=f"{tmp_path / 'recordings'}: File exists"):
        new_recording(counting, tmp_path, "wrf")


def test_failed_and_silent_runs_have_no_profile(tmp_path: Path) -> None:
    recording = Recording(folder=tmp_path / "new", application="wrf")
    recording.folder.mkdir()
    assert recording.useless(0) == "the program's MPI library counted no messages (Open MPI does)"
    (recording.folder / "rank.0.prof").write_text("x")
    assert recording.useless(0) is None
    assert recording.useless(-15) == "the launcher ended with exit code -15"
    recording.delete()
    assert not recording.folder.exists()


def test_steps_are_timed_by_their_lines_or_by_what_they_print() -> None:
    lines = Steps(re.compile(rb"^step \d+"))
    assert (lines.count, lines.seconds) == (0, None)
    for piece, came in ((b"begin\nstep 1\nst", 10.0), (b"ep 2\n", 12.0), (b"other\nstep 3\nstep 4", 16.0)):
        lines.add(piece, came)
    assert (lines.count, lines.seconds) == (2, 3.0)
    printed = Steps(re.compile(rb"took (\S+) s"))
    printed.add(b"step 1 took 9.0 s\nstep 2 took 0.5 s\nstep 3 took 0.7 s\nstep 4 took long s\n", 0.0)
    assert (printed.count, printed.seconds) == (3, 0.7)


PAIRS = Profile.from_edges([0, 1], [2, 3], [8e6, 8e6], ranks=4, name="pairs", application="wrf")


def find_order(registry: Registry, profile: str | None, *where: Any, **wanted: Any) -> Order:
    cluster, job = where
    wish = Wanted(profile=profile, cluster=cluster, **wanted)
    return order.find_order(registry, wish, job, LAUNCHERS[0], 0.2)


def job(registry: Registry, ranks: int = 4) -> JobEnvironment:
    fabric = registry.fabrics.read("toy").fabric
    hosts = tuple(fabric.names[vertex] for vertex in fabric.hosts[:2])
    return JobEnvironment(hosts=hosts, slots=(2, 2), ranks=ranks)


def measured(here: JobEnvironment) -> MeasuredRun:
    job: dict[str, Any] = {"hosts": here.hosts, "slots": here.slots, "ranks": 4, "started_at": at(0)}
    run = measured_run(application="wrf", program="x", launcher="l", wall_seconds=1.0, **job)
    return replace(run, step_seconds=None, steps=0)


@pytest.fixture
def filled(registry: Registry) -> Registry:
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), profiles=(PAIRS,)))
    return registry


def test_a_placement_is_searched_once_for_the_same_hosts_and_fabric(filled: Registry) -> None:
    first = find_order(filled, "pairs", None, job(filled))
    hosts = first.text.split()
    assert (hosts[0], hosts[1]) == (hosts[2], hosts[3]) != (hosts[1], hosts[0])
    assert first.ranks == 4
    assert "a new placement" in first.reasons[0]
    second = find_order(filled, "pairs", "toy", job(filled))
    assert (second.text, second.placement) == (first.text, first.placement)
    assert second.reasons == (f"placement {first.placement} of the same profile and hosts",)
    assert filled.placements.count() == 1
    find_order(filled, "pairs", None, job(filled))
    fabric = fat_tree()
    others = JobEnvironment(
        hosts=tuple(fabric.names[vertex] for vertex in fabric.hosts[2:4]), slots=(2, 2), ranks=4
    )
    assert "a new placement" in find_order(filled, "pairs", None, others).reasons[0]
    assert filled.placements.count() == 2


def test_what_does_not_fit_is_a_reason(filled: Registry) -> None:
    with pytest.raises(Unplaced, match="has 4 ranks, this run has 3"):
        find_order(filled, "pairs", None, job(filled, ranks=3))
    with pytest.raises(UnknownName, match="pair"):
        find_order(filled, "pair", None, job(filled))
    filled.save(Intake(cluster="other", observed_at=at(0), fabric=fat_tree()))
    with pytest.raises(Unplaced, match="the registry has 2 clusters"):
        find_order(filled, "pairs", None, job(filled))


def test_without_a_profile_the_newest_of_the_application_counts(filled: Registry) -> None:
    found = find_order(filled, None, None, job(filled), program="wrf")
    assert (found.application, found.profile) == ("wrf", filled.profiles.read("pairs").id)
    assert find_order(filled, None, None, job(filled), program="sh", name="wrf").placement == found.placement
    found = find_order(filled, None, None, job(filled, ranks=3), program="wrf")
    assert (found.text, found.profile, found.reasons) == (
        *("", None, ("no profile of wrf with 3 ranks is stored",)),
    )


def test_ranks_stay_in_order_if_that_is_asked_for(filled: Registry) -> None:
    found = find_order(filled, "pairs", None, job(filled), in_order=True, program="a")
    assert (found.text, found.placement, found.application) == ("", "", "wrf")
    assert filled.placements.count() == 0


def test_a_placement_that_measured_worse_is_not_used_again(filled: Registry) -> None:
    here = job(filled)
    first = find_order(filled, "pairs", None, here)
    run = measured(here)
    for time in (1.1, 1.2):
        filled.measured_runs.save(replace(run, placement=first.placement, wall_seconds=time))
        filled.measured_runs.save(replace(run, wall_seconds=time - 0.2))
    assert find_order(filled, "pairs", None, here).placement == first.placement
    filled.measured_runs.save(replace(run, placement=first.placement, wall_seconds=1.3))
    filled.measured_runs.save(replace(run, wall_seconds=0.95))
    found = find_order(filled, "pairs", None, here)
    assert (found.text, found.placement) == ("", "")
    assert "measured worse: a run took 1.2 s with it (3 runs) and 0.95 s in order" in found.reasons[0]
    request = PlacementRequest(
        profile="pairs", cluster="toy", hosts=here.hosts, slots=2, options=SearchOptions(steps=100)
    )
    report = place(filled, request)
    assert report.measured
    assert report.evaluation == report.in_order


_KNOWN = """
import sys
from pathlib import Path
from almanac.job_environment import JobEnvironment
from almanac.running.launchers import LAUNCHERS
from almanac.running.order import Wanted, find_order
from registry.registry import Registry
with Registry.open({uri!r}, user={user!r}, password={password!r}, name={name!r}) as registry:
    job = JobEnvironment(hosts={hosts!r}, slots=(2, 2), ranks=4)
    found = find_order(registry, Wanted(profile="pairs"), job, LAUNCHERS[0], 0.2, Path({folder!r}))
large = ("numba", "scipy", "pandas", "pyarrow", "numpy.ma", *{more!r})
print(found.placement, *found.text.split(), *(name for name in large if name in sys.modules))
"""


@pytest.mark.parametrize("written", [False, True])
def test_a_known_placement_is_read_without_large_imports(
    filled: Registry, server: ServerAddress, tmp_path: Path, written: bool, processes: None
) -> None:
    """They take longer than all else that such a run does; with its file, numpy is not needed either."""
    here = job(filled)
    first = find_order(filled, "pairs", None, here)
    filled.measured_runs.save(measured(here))
    if written:
        order.order_path(tmp_path, first.placement, LAUNCHERS[0]).write_text("as\nit\nis\nwritten\n")
    names = {name: getattr(server, name) for name in ("uri", "user", "password", "name")}
    more = ("numpy",) if written else ()
    code = _KNOWN.format(hosts=job(filled).hosts, folder=str(tmp_path), more=more, **names)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    expected = ["as", "it", "is", "written"] if written else first.text.split()
    assert done.stdout.split() == [first.placement, *expected]


def test_a_written_file_has_the_hosts_that_a_launcher_needs(filled: Registry, tmp_path: Path) -> None:
    """The master of torchrun is its first host; where each rank runs is verified by the placement."""
    wanted, here = Wanted(profile="pairs"), job(filled)
    torchrun = replace(LAUNCHERS[0], format="torchrun-rank-order", consecutive=True)

    def known(wanted: Wanted, launcher: Launcher) -> Order:
        return order.find_order(filled, wanted, here, launcher, 0.2, tmp_path)

    for launcher in (torchrun, LAUNCHERS[0]):
        first = known(wanted, launcher)
        path = order.order_path(tmp_path, first.placement, launcher)
        path.write_text(first.text)
        again = known(wanted, launcher)
        assert (again.text, again.hosts) == (first.text, first.hosts if launcher is torchrun else ())
        assert known(replace(wanted, verify=True), launcher).hosts == first.hosts
        path.write_bytes(b"\xff")
        assert known(wanted, launcher).text == first.text


def test_a_placement_is_found_again_and_its_file_has_the_jobs_names(registry: Registry) -> None:
    short = fat_tree()
    hosts = tuple(short.names[vertex] for vertex in short.hosts[:2])
    full = replace(short, names=tuple(f"{name}.cluster.example" for name in short.names))
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=full, profiles=(PAIRS,)))
    job = JobEnvironment(hosts=hosts, slots=(2, 2), ranks=4)
    first = find_order(registry, "pairs", None, job)
    assert set(first.text.split()) == set(first.hosts) == set(hosts)
    again = find_order(registry, "pairs", None, job)
    assert (again.placement, again.text) == (first.placement, first.text)
    assert registry.placements.count() == 1
