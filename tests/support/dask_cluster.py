"""A real Dask scheduler and worker processes on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from registry.database.supervisor import die_with_parent
from tests.support.paths import ROOT
from tests.support.waiting import comes_true

Settings = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DaskCluster:
    """A running scheduler with its workers, each a process with one thread."""

    address: str
    scheduler: int
    """Process."""
    workers: list[int]
    """Processes."""
    logs: str
    """Folder of what they write."""

    def log(self) -> str:
        return "\n".join(path.read_text() for path in sorted(Path(self.logs).glob("*.log")))


@contextlib.contextmanager
def kept(folder: Path) -> Iterator[dict[str, Any]]:
    """Start the Dask cluster of a test run, for `tests.support.servers.kept`."""
    with dask_cluster(folder) as cluster:
        yield asdict(cluster)


@contextlib.contextmanager
def dask_cluster(
    folder: Path, workers: int = 3, environment: Settings | None = None, protocol: str = "tcp"
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
        yield DaskCluster(address, scheduler.pid, [worker.pid for worker in started], str(folder))


@contextlib.contextmanager
def more_workers(cluster: DaskCluster) -> Iterator[None]:
    with contextlib.ExitStack() as processes:
        _start_workers(processes, Path(cluster.logs), cluster.address, [len(cluster.workers)], {})
        yield


def _start_workers(
    processes: contextlib.ExitStack, folder: Path, address: str, numbers: Sequence[int], environment: Settings
) -> tuple[subprocess.Popen[bytes], ...]:
    words = (address, "--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
    opened = (_process(folder, f"worker{number}", words, environment) for number in numbers)
    started = tuple(map(processes.enter_context, opened))
    logs = [folder / f"worker{number}.log" for number in numbers]
    _wait(lambda: all("Registered to" in log.read_text() for log in logs), folder, started)
    return started


@contextlib.contextmanager
def _process(folder: Path, name: str, words: Sequence[str], environment: Settings) -> Iterator[Any]:
    """Run a scheduler or a worker; kill it afterwards."""
    program = f"distributed.cli.dask_{name.rstrip('0123456789')}"
    local = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
    own = {"PYTHONPATH": str(ROOT), "DASK_LOGGING__DISTRIBUTED": "info", **environment}
    with (folder / f"{name}.log").open("wb") as log:
        command = [sys.executable, "-m", program, *words, *local]
        how: dict[str, Any] = {"env": {**os.environ, **own}, "cwd": folder, "preexec_fn": die_with_parent()}
        process = subprocess.Popen(command, stdout=log, stderr=log, **how)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait(ready: Callable[[], bool], folder: Path, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    came = comes_true(ready, unless=lambda: any(process.poll() is not None for process in processes))
    assert came, "\n".join(path.read_text() for path in folder.glob("*.log"))


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for this machine and its key; return their paths."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    begin = datetime.now(UTC) - timedelta(minutes=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return files
