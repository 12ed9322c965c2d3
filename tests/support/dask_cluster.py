"""A real Dask scheduler and worker processes on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from registry.database.local.supervisor import die_with_parent
from tests.support.paths import ROOT

PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class DaskCluster:
    """A running scheduler with its workers, each a process with one thread."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: tuple[subprocess.Popen[bytes], ...]
    logs: Path

    def log(self) -> str:
        """Return what scheduler and workers wrote."""
        return "\n".join(path.read_text() for path in sorted(self.logs.glob("*.log")))


@contextlib.contextmanager
def dask_cluster(
    folder: Path, workers: int = 3, environment: Mapping[str, str] | None = None, protocol: str = "tcp"
) -> Iterator[DaskCluster]:
    """Start a scheduler and workers, wait until the workers are registered, and end all of them afterwards.

    `environment`: further variables, such as settings of Dask.
    """
    found = folder / "scheduler.json"
    words = ("--port", "0", "--protocol", protocol, "--scheduler-file", str(found))
    with contextlib.ExitStack() as processes:
        scheduler = processes.enter_context(_process(folder, "scheduler", words, environment or {}))
        _wait(lambda: found.exists() and found.read_text().endswith("}"), folder, [scheduler])
        address = json.loads(found.read_text())["address"]
        started = _start_workers(processes, folder, address, range(workers), environment or {})
        yield DaskCluster(address, scheduler, started, folder)


@contextlib.contextmanager
def more_workers(cluster: DaskCluster) -> Iterator[None]:
    """Start one more worker and end it afterwards."""
    with contextlib.ExitStack() as processes:
        _start_workers(processes, cluster.logs, cluster.address, [len(cluster.workers)], {})
        yield


def _start_workers(
    processes: contextlib.ExitStack,
    folder: Path,
    address: str,
    numbers: Sequence[int],
    environment: Mapping[str, str],
) -> tuple[subprocess.Popen[bytes], ...]:
    words = (address, "--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
    started = tuple(
        processes.enter_context(_process(folder, f"worker{number}", words, environment)) for number in numbers
    )
    logs = [folder / f"worker{number}.log" for number in numbers]
    _wait(lambda: all("Registered to" in log.read_text() for log in logs), folder, started)
    return started


@contextlib.contextmanager
def _process(
    folder: Path, name: str, words: Sequence[str], environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a scheduler or a worker; kill it afterwards."""
    program = f"distributed.cli.dask_{name.rstrip('0123456789')}"
    own = {"PYTHONPATH": str(ROOT), "DASK_LOGGING__DISTRIBUTED": "info", **environment}
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                program,
                *words,
                "--host",
                "127.0.0.1",
                "--dashboard-address",
                "127.0.0.1:0",
            ],
            env={**os.environ, **own},
            stdout=log,
            stderr=log,
            cwd=folder,
            preexec_fn=die_with_parent(),
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait(ready: Callable[[], bool], folder: Path, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    end = time.monotonic() + PATIENCE
    while not ready():
        logs = "\n".join(path.read_text() for path in folder.glob("*.log"))
        assert time.monotonic() < end, logs
        assert all(process.poll() is None for process in processes), logs
        time.sleep(0.05)
