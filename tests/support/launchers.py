"""Run real launchers on pretended hosts: each has a name, all are this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from registry.database.supervisor import die_with_parent
from tests.support.waiting import PATIENCE, comes_true

OPEN_MPI_ON_LOOPBACK = ("--mca", "oob_tcp_if_include", "lo", "--mca", "btl_tcp_if_include", "lo")
HYDRA_ON_LOOPBACK = ("-iface", "lo")
AGENT = """#!/bin/sh
# Takes ssh's place: runs the command on this machine, under the host's name.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec unshare --uts sh -c "hostname $host; $*"
"""
SLURM_CONF = """\
ClusterName=ft
SlurmctldHost={here}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdParameters=config_overrides
NodeName={nodes} NodeHostname={here} NodeAddr=127.0.0.1 Port={first}-{last} CPUs={slots}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def require(*programs: str) -> None:
    """Skip the test if a program is missing or hosts cannot have their own names; fail instead in CI."""
    reason = _lacking(programs)
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


def _lacking(programs: Sequence[str]) -> str:
    for program in programs:
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "host names of one's own need root and unshare"
    if subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode != 0:
        return "this machine lets nobody change a host's name, not even in a namespace"
    return ""


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def agent(folder: Path) -> Path:
    """Return a program that replaces ssh."""
    return executable(folder / "agent", AGENT)


def printed(command: Sequence[object], environment: Mapping[str, str] | None = None) -> dict[int, str]:
    """Return what each rank prints, given the job's output lines ``rank TEXT``."""
    words, variables = [str(word) for word in command], {**os.environ, **(environment or {})}
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr + done.stdout
    pairs = [line.split() for line in done.stdout.splitlines() if line.strip()]
    found = {int(rank): host for rank, host in pairs}
    assert len(found) == len(pairs), "a rank ran twice"
    return found


@dataclass(frozen=True)
class Slurm:
    """A running scheduler, and the variables by which its commands find it."""

    environment: Mapping[str, str]
    nodes: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return Path(self.environment["SLURM_CONF"]).parent


@contextlib.contextmanager
def slurm(
    folder: Path,
    names: str,
    nodes: Sequence[str],
    slots: int,
    *,
    topology: str | None = None,
    more: str = "",
    daemons_too: bool = True,
) -> Iterator[Slurm]:
    """Start a controller and a daemon per node, all on this machine, without authentication.

    With `topology` as its topology.conf, and with `more` lines in slurm.conf; without daemons the nodes are
    never idle.
    """
    for name in ("state", *(f"spool.{node}" for node in nodes)):
        (folder / name).mkdir()
    controller = _ports(len(nodes) + 1)
    conf = folder / "slurm.conf"
    values = {
        "here": socket.gethostname(),
        "folder": folder,
        "port": controller,
        "nodes": names,
        "slots": slots,
    }
    ports = {"first": f"[{controller + 1}", "last": f"{controller + len(nodes)}]"}
    conf.write_text(SLURM_CONF.format(**values, **ports))
    if topology is not None:
        (folder / "topology.conf").write_text(topology)
        conf.write_text(f"{conf.read_text()}TopologyPlugin=topology/tree\n")
    conf.write_text(conf.read_text() + more)
    environment = {"SLURM_CONF": str(conf)}
    daemons: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> None:
        with (folder / f"{command[0]}.out").open("ab") as log:
            how: dict[str, Any] = {"env": {**os.environ, **environment}, "preexec_fn": die_with_parent()}
            daemons.append(subprocess.Popen(command, stdout=log, stderr=log, **how))

    try:
        start("slurmctld", "-D")
        _wait(lambda: _says(environment, "scontrol", "ping") is not None, folder)
        for node in nodes if daemons_too else ():
            start("slurmd", "-D", "-N", node)
        idle = ["sinfo", "--noheader", "--format=%D", "--states=idle"]
        if daemons_too:
            _wait(lambda: (_says(environment, *idle) or "").strip() == str(len(nodes)), folder)
        yield Slurm(environment, tuple(nodes))
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(30)


def _says(environment: Mapping[str, str], *command: str) -> str | None:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def _wait(ready: Callable[[], bool], folder: Path) -> None:
    assert comes_true(ready), (folder / "slurmctld.log").read_text()


def _ports(count: int) -> int:
    """Return the first of several consecutive free ports."""
    for first in range(21_000 + os.getpid() % 5000, 60_000, count):
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no free ports")
