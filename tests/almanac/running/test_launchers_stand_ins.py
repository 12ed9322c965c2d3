"""Launchers that cannot be installed here: stand-ins take their arguments and print where ranks would run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from almanac.running.call import Unplaced
from almanac.running.launchers import launcher_of
from almanac.running.run import read_command
from registry.registry import Registry
from tests.almanac.commands.placing.test_run_measured import MAIN
from tests.almanac.running.test_torchrun import NODES, filled, placed_hosts
from tests.support import paths

__all__ = ["filled"]

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


def stand_in(folder: Path, program: str, text: str) -> Path:
    path = folder / program
    path.write_text(text)
    path.chmod(0o755)
    return path


def run(folder: Path, program: str, text: str, words: str, *options: str) -> subprocess.CompletedProcess[str]:
    path = stand_in(folder, program, text)
    launcher = [sys.executable, "-c", MAIN, "run", "--seconds", "120", *options, str(path), *words.split()]
    return subprocess.run(launcher, capture_output=True, text=True, timeout=300, cwd=paths.ROOT, check=False)


def test_flux_takes_the_order_as_a_file_of_hosts(filled: Registry, tmp_path: Path) -> None:
    words = "run -N 8 --tasks-per-node=2 -o verbose=1 train.py"
    done = run(tmp_path, "flux", FLUX.replace("@HOST@", "$host"), words, "--explain")
    hosts = placed_hosts(filled, consecutive=False)
    assert done.stdout.splitlines() == [f"{task} {host}" for task, host in enumerate(hosts)], done.stderr
    assert "16 ranks on 8 hosts, from " in done.stderr
    assert "the order is verified by the launcher" in done.stderr
    (measured,) = filled.measured_runs.list()
    assert (measured.launcher, measured.verified, measured.slots) == ("Flux 0.66.0", True, (2,) * 8)


def test_an_order_that_flux_does_not_keep_is_not_used(filled: Registry, tmp_path: Path) -> None:
    words = "run -N8 -n 16 train.py"
    done = run(tmp_path, "flux", FLUX.replace("@HOST@", "node00"), words)
    assert (done.returncode, done.stdout) == (3, f"in order: {words}\n")
    assert done.stderr.startswith("not placed: the launcher starts ranks on other hosts than asked for: ")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("run -n 16 train.py", "which of the 8 hosts are used is not known before: give -N 8"),
        ("run -N 4 -n 16 train.py", "which of the 8 hosts are used is not known before: give -N 8"),
        ("run -N 8 -n 12 train.py", "12 ranks do not fill 8 hosts equally"),
        ("run -N 8 -n 16 --taskmap=cyclic train.py", "--taskmap=cyclic is given"),
    ],
)
def test_what_flux_decides_itself_is_left_alone(tmp_path: Path, words: str, reason: str) -> None:
    with pytest.raises(Unplaced, match=reason):
        read_command([str(stand_in(tmp_path, "flux", FLUX)), *words.split()])


def test_other_commands_of_flux_are_not_launchers(filled: Registry, tmp_path: Path) -> None:
    done = run(tmp_path, "flux", FLUX, "submit -N 8 train.py")
    assert (done.returncode, done.stderr) == (9, "not placed: flux is known here as flux run only\n")


def test_deepspeed_takes_the_order_as_its_hostfile(filled: Registry, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{host} slots=2\n" for host in NODES))
    done = run(
        tmp_path, "deepspeed", DEEPSPEED, f"--hostfile={hosts} --master_port 1 train.py --lr 1", "--explain"
    )
    *lines, words = done.stdout.splitlines()
    order = placed_hosts(filled)[::2]
    assert lines == [f"{host} slots=2" for host in order], done.stderr
    assert order != list(NODES)
    assert words.endswith(".deepspeed-hostfile --master_port 1 train.py --lr 1")
    assert "an order cannot be verified with DeepSpeed" in done.stderr
    (measured,) = filled.measured_runs.list()
    assert (measured.launcher, measured.application, measured.verified) == ("DeepSpeed", "train.py", None)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--num_nodes 4", "--num_nodes is given: it decides about the order"),
        ("--include node01", "--include is given: it decides about the order"),
        ("--launcher slurm", "--launcher is given: it decides about the order"),
        ("", "/job/hostfile"),
    ],
)
def test_what_deepspeed_decides_itself_is_left_alone(option: str, reason: str) -> None:
    with pytest.raises(Unplaced, match=reason):
        read_command(["deepspeed", *option.split(), "train.py"])


def test_a_deepspeed_that_cannot_be_placed_runs_as_given(filled: Registry, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{host} slots={1 + (host == 'node00')}\n" for host in NODES))
    words = f"--hostfile {hosts} train.py"
    done = run(tmp_path, "deepspeed", DEEPSPEED, words, "--profile", "far")
    assert done.stdout.splitlines()[-1] == words
    assert done.stderr == "not placed: profile far has 16 ranks, this run has 9\n"


@pytest.mark.parametrize(
    ("program", "printed", "name"),
    [
        ("mpirun", "mpirun (Open MPI) 4.1.4", "Open MPI 4.1.4"),
        ("orterun", "orterun (OpenRTE) 4.1.4", "Open MPI 4.1.4"),
        ("mpiexec", "mpiexec (Open MPI) 5.0.11", "Open MPI 5.0.11"),
        ("prterun", "prterun (PRRTE) 3.0.14", "PRRTE 3.0.14"),
        ("srun", "slurm 26.05.5", "Slurm 26.05.5"),
        ("mpirun", "Intel(R) MPI Library for Linux* OS, Version 2021.18 Build 1", "Intel MPI 2021.18"),
    ],
)
def test_a_launcher_has_the_name_of_its_own_version(
    tmp_path: Path, program: str, printed: str, name: str
) -> None:
    path = stand_in(tmp_path, program, f"#!/bin/sh\necho '{printed}'\n")
    assert launcher_of([str(path)]).name == name


def test_an_unknown_version_is_a_reason(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "prterun", "#!/bin/sh\necho 'prterun (PRRTE) 9.0'\n")
    with pytest.raises(Unplaced, match=r"it prints 'prterun \(PRRTE\) 9\.0'"):
        launcher_of([str(path)])
