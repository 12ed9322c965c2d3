"""Locks between processes, which end with their last holder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from almanac.service.locks import locked

HOLD = """
import subprocess, sys, time
from pathlib import Path
from almanac.service.locks import locked
with locked(Path(sys.argv[1]), wait=False) as lock:
    child = subprocess.Popen(["sleep", "100"], pass_fds=(lock,))
    print(child.pid, flush=True)
    time.sleep(100)
"""


def is_free(path: Path) -> bool:
    with locked(path, wait=False) as lock:
        return lock is not None


def test_a_lock_is_held_by_one_and_free_after_the_block(tmp_path: Path) -> None:
    with locked(tmp_path / "lock") as lock:
        assert lock is not None
        assert not is_free(tmp_path / "lock")
    assert is_free(tmp_path / "lock")


def test_a_lock_is_held_until_the_command_of_a_killed_process_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    try:
        assert not is_free(path)
        holder.kill()
        holder.wait()
        holder.stdout.close()
        assert not is_free(path)
    finally:
        subprocess.run(["kill", "-9", str(child)], check=True)
    with locked(path, wait=True) as lock:
        assert lock is not None
