"""Where a launcher starts ranks is seen, whether it obeys or not."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from almanac.running.call import parse_call
from almanac.running.launchers import LAUNCHERS, Launcher, launcher_of
from almanac.running.verification import Unverified, Verification, compiled, verify_order
from bench.launchers.cases import NAMES
from bench.launchers.pretended import mpich, open_mpi
from tests.support.launchers import require

PLAIN = replace(LAUNCHERS[0], compilers=(), labelled=(), label=r"\[(\d+)\] ")


def verified(
    words: list[str], launcher: Launcher, hosts: list[str], folder: Path, seconds: float = 60.0
) -> Verification:
    call = parse_call(words, launcher.values)
    return verify_order(call, launcher, hosts, (words[1:-1], dict(os.environ)), folder, seconds)


@pytest.mark.parametrize(("make", "option"), [(open_mpi, "--host"), (mpich, "-hosts")])
def test_ranks_on_other_hosts_are_named(
    make: Callable[[Path], tuple[str, ...]], option: str, tmp_path: Path
) -> None:
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
    """A launcher that ignores its options."""
    path = folder / "mpirun"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return [str(path), "program"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import sys; sys.exit('no daemon')", "ended with 1: no daemon"),
        ("print('[0] almanac-rank 0 0 a')", "1 of 2 ranks"),
        ("print('[0] almanac-rank 0 0 a\\n' * 2)", "rank 0 ran twice"),
        ("print('[0] something else')", "0 of 2 ranks"),
        ("import time; time.sleep(60)", "took longer than 1 s"),
    ],
)
def test_what_cannot_be_seen_is_a_reason(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(Unverified, match=reason):
        verified(fake(tmp_path, text), PLAIN, ["a", "b"], tmp_path, 1.0)


def test_a_launcher_that_does_not_start_is_a_reason(tmp_path: Path) -> None:
    with pytest.raises(Unverified, match="No such file"):
        verified([str(tmp_path / "none"), "program"], PLAIN, ["a"], tmp_path)


def test_the_mpi_library_must_agree_with_the_launcher(tmp_path: Path) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nprintf "#!/bin/sh\\n" > "$2"; chmod +x "$2"\n')
    compiler.chmod(0o755)
    words = fake(tmp_path, "print('[0] almanac-rank 1 2 a\\n[1] almanac-rank 0 2 b')")
    launcher = replace(PLAIN, compilers=(str(compiler),))
    found = verified(words, launcher, ["a", "b"], tmp_path)
    assert found.misplaced == ("rank 0 ran on b, not on a", "rank 1 ran on a, not on b")
    assert found.by == "the launcher and the MPI library"
