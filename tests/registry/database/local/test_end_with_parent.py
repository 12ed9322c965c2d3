"""A child process ends with its parent, also if the parent is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux does this")
PARENT = """
import subprocess, sys, time
from registry.database.local.end_with_parent import die_with_parent
child = subprocess.Popen(["sleep", "600"], preexec_fn=die_with_parent())
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_child_ends_with_a_killed_parent(processes: None) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        os.kill(parent.pid, signal.SIGKILL)
    gone, _ = psutil.wait_procs([child], timeout=PATIENCE)
    assert gone == [child] or child.status() == psutil.STATUS_ZOMBIE
