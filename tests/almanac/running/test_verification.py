"""Whether launchers start ranks where they should: seen by a small program, and tried by `almanac doctor`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from almanac.running.call import parse_call
from almanac.running.hosts import hosts_of
from almanac.running.launcher_checks import APPLICATION
from almanac.running.launchers import LAUNCHERS, Launcher, launcher_of
from almanac.running.run import apply_order
from almanac.running.verification import Unverified, Verification, compiled, verify_order
from bench.launchers.cases import NAMES, Case
from bench.launchers.pretended import LAUNCHERS as PRETENDED
from bench.launchers.pretended import mpich, open_mpi
from registry.model.intake import Intake
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support.fat_tree import at, fat_tree
from tests.support.launchers import executable, require

pytestmark = pytest.mark.usefixtures("processes")

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


def fake(folder: Path, text: str) -> list[str]:
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
        words = fake(tmp_path, text) if text else [str(tmp_path / "none"), "program"]
        with pytest.raises(Unverified, match=reason):
            verified(words, PLAIN, ["a", "b"], tmp_path, 1.0 if "longer" in reason else 60.0)


def test_the_mpi_library_must_agree_with_the_launcher(tmp_path: Path) -> None:
    makes = '#!/bin/sh\nprintf "#!/bin/sh\\n" > "$2"; chmod +x "$2"\n'
    compiler = executable(tmp_path / "compiler", makes)
    words = fake(tmp_path, "print('[0] almanac-rank 1 2 a\\n[1] almanac-rank 0 2 b')")
    launcher = replace(PLAIN, compilers=(str(compiler),))
    found = verified(words, launcher, ["a", "b"], tmp_path)
    assert found.misplaced == ("rank 0 ran on b, not on a", "rank 1 ran on a, not on b")
    assert found.by == "the launcher and the MPI library"
    # a compiler of another MPI library: a program without one shows where ranks are
    fails = "import sys\nif sys.argv[-1].endswith('where-compiler'): sys.exit('another library')\n"
    words = fake(tmp_path, f"{fails}print('[0] almanac-rank 0 0 a\\n[1] almanac-rank 0 0 b')")
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
