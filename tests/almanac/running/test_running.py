"""A launcher's command: its options, hosts and ranks; what is added; what is found in its output."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from almanac.running.attended import Steps
from almanac.running.call import Unplaced, parse_call
from almanac.running.hosts import hosts_of
from almanac.running.launchers import LAUNCHERS, Launcher
from almanac.running.order import Order
from almanac.running.recording import Recording, new_recording
from almanac.running.run import apply_order

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


@pytest.mark.parametrize(
    ("program", "application"),
    [
        (("/opt/wrf/bin/wrf.exe", "-n", "4"), "wrf.exe"),
        (("--", "./app", "--", "x"), "app"),
        (("python3", "runs/train.py", "--lr", "1"), "train.py"),
        (("/usr/bin/python3.11", "-u", "-m", "pkg.train", "x.py"), "pkg.train"),
        (("python", "-c", "print(1)"), "python"),
        (("python", "-X", "dev", "a.py"), "python"),
        (("python3",), "python3"),
        (("python3", "-m"), "python3"),
        (("pythonic", "a.py"), "pythonic"),
    ],
)
def test_an_application_has_the_name_of_what_runs(program: tuple[str, ...], application: str) -> None:
    assert parse_call(["mpirun", *program], VALUES).application == application


@pytest.mark.parametrize("given", ["-n4", "-n=4", "--ntasks=4", "-np 4", "--n 4"])
def test_a_value_may_be_attached(given: str) -> None:
    call = parse_call(["srun", *given.split(), "./app"], VALUES)
    assert call.count(("n", "np", "ntasks")) == 4
    assert call.program == ("./app",)
    assert parse_call(["mpirun", "-n", "4", "-np", "8", "a"], VALUES).count(("n", "np")) == 8


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("mpirun -n 4 --new-option 3 ./app", "--new-option of mpirun is not known"),
        ("mpirun -n 4", "no program"),
        ("mpirun -n 4 --", "no program"),
        ("mpirun --mca btl", "--mca lacks its value"),
        ("mpirun --oversubscribe=yes ./app", "not known"),
    ],
)
def test_a_command_that_is_not_understood_is_not_changed(words: str, reason: str) -> None:
    with pytest.raises(Unplaced, match=reason):
        parse_call(words.split(), VALUES)


def test_a_number_of_ranks_is_a_whole_number() -> None:
    for value in ("0", "-1", "four", "1.5"):
        with pytest.raises(Unplaced, match=f"{value} is not a number"):
            parse_call(["mpirun", "-n", value, "a"], VALUES).count(("n",))


OPEN_MPI, _, _, MPICH, INTEL_MPI, SLURM, FLUX, DEEPSPEED = LAUNCHERS
JOB = {"SLURM_JOB_NODELIST": "n[1-4]", "SLURM_TASKS_PER_NODE": "2(x4)", "SLURM_NTASKS": "8"}


def hosts_found(
    launcher: Launcher, words: str, environment: dict[str, str] | None = None
) -> tuple[object, ...]:
    job = hosts_of(parse_call(words.split(), launcher.values), launcher, environment or {})
    return job.hosts, job.slots, job.ranks


@pytest.mark.parametrize(
    ("launcher", "words", "expected"),
    [
        (OPEN_MPI, "mpirun -n 3 --host b:2,a:2 x", (("b", "a"), (2, 2), 3)),
        (OPEN_MPI, "mpirun --host b,a,b x", (("b", "a"), (2, 1), 3)),
        (OPEN_MPI, "mpirun --npernode 4 --host a,b x", (("a", "b"), (4, 4), 8)),
        (MPICH, "mpiexec -ppn 2 -hosts a,b -n 4 x", (("a", "b"), (2, 2), 4)),
    ],
)
def test_hosts_of_the_command(launcher: Launcher, words: str, expected: object) -> None:
    assert hosts_found(launcher, words, JOB) == expected


def test_hosts_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("b slots=3\na slots=1\n")
    assert hosts_found(OPEN_MPI, f"mpirun -n 4 --hostfile {file} x") == (("b", "a"), (3, 1), 4)
    assert hosts_found(DEEPSPEED, f"deepspeed -H {file} x", JOB) == (("b", "a"), (3, 1), 4)
    file.write_text("b:3\na:1\n")
    assert hosts_found(MPICH, f"mpiexec -n 2 -f {file} x") == (("b", "a"), (3, 1), 2)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("srun x", (("n1", "n2", "n3", "n4"), (2, 2, 2, 2), 8)),
        ("srun -n 4 -N 2 x", (("n1", "n2"), (2, 2), 4)),
        ("srun -N 2 x", (("n1", "n2"), (2, 2), 4)),
        ("srun --ntasks=3 x", (("n1", "n2", "n3", "n4"), (2, 2, 2, 2), 3)),
    ],
)
def test_a_step_runs_on_hosts_of_its_job(words: str, expected: object) -> None:
    assert hosts_found(SLURM, words, JOB) == expected


@pytest.mark.parametrize(
    ("launcher", "words", "reason"),
    [
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
    ],
)
def test_what_decides_or_does_not_fit_is_a_reason(launcher: Launcher, words: str, reason: str) -> None:
    with pytest.raises(Unplaced, match=reason):
        hosts_found(launcher, words, JOB)


def test_without_hosts_there_is_nothing_to_place_on() -> None:
    with pytest.raises(Unplaced, match=r"not inside a job.*name hosts and slots"):
        hosts_found(OPEN_MPI, "mpirun -n 2 x")


ORDER = Order(ranks=4, text="b\na\nb\na\n", placement="p1", reasons=("found",))


@pytest.mark.parametrize(
    ("launcher", "given", "placed"),
    [
        (
            OPEN_MPI,
            "mpirun -x A --host a:2,b:2 -np 4 --bind-to core ./app -n 9",
            "mpirun --hostfile {file} --map-by seq -n 4 -x A --bind-to core ./app -n 9",
        ),
        (MPICH, "mpiexec -hosts a,b -ppn 2 -l ./app", "mpiexec -f {file} -n 4 -l ./app"),
        (
            INTEL_MPI,
            "mpirun -hosts a,b -perhost 2 -prot ./app",
            "mpirun -machinefile {file} -n 4 -prot ./app",
        ),
        (
            SLURM,
            "srun -N 2 -n4 --mpi=pmix ./app",
            "srun --ntasks=4 --distribution=arbitrary --mpi=pmix ./app",
        ),
        (
            FLUX,
            "flux run -N2 --ntasks 4 -o verbose=1 ./app -n 9",
            "flux run --taskmap=hostfile:{file} -N2 --ntasks 4 -o verbose=1 ./app -n 9",
        ),
        (
            DEEPSPEED,
            "deepspeed -H hosts --master_port 9999 train.py --hostfile x",
            "deepspeed --hostfile {file} --master_port 9999 train.py --hostfile x",
        ),
    ],
)
def test_the_order_replaces_hosts_and_ranks(
    launcher: Launcher, given: str, placed: str, tmp_path: Path
) -> None:
    call = parse_call(given.split(), launcher.values, 1 + len(launcher.subcommand))
    run = apply_order(call, launcher, ORDER, tmp_path / "orders")
    file = tmp_path / "orders" / f"p1.{launcher.format}"
    assert run.words == tuple(placed.format(file=file).split())
    assert run.environment == ({"SLURM_HOSTFILE": str(file)} if launcher is SLURM else {})
    assert file.read_text() == ORDER.text
    assert file.stat().st_mode & 0o777 == 0o600
    assert run.reasons == ("found", f"{launcher.name} takes the order from {file}")


def test_a_file_that_cannot_be_written_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "orders").write_text("no folder")
    with pytest.raises(Unplaced, match="cannot be written"):
        apply_order(parse_call(["srun", "./app"], SLURM.values), SLURM, ORDER, tmp_path / "orders")


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


def test_a_launcher_that_counts_nothing_and_a_folder_that_cannot_be_written_are_named(
    counting: Launcher, tmp_path: Path
) -> None:
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
