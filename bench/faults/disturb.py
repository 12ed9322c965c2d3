"""Disturb a command at a random moment: kill it or its server, let the disk run full, restart Neo4j.

The disk that runs full is a file system in memory (``mount`` needs root, or a user namespace); a file takes
what is left of it but some kilobytes.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import psutil

from bench.faults.commands import CASES, Case, Outcome, at_home, finish, run, start
from bench.faults.trial import Trial, judge, undisturbed
from registry.database.embedded_files import ServerFiles
from registry.database.embedded_server import ServerAddress
from registry.upkeep.restore import previous_path
from tests.support.neo4j_server import await_answer, neo4j

VICTIMS = ("command", "server")


def killed(
    case: Case, victim: str, moment: float, files: Path, variables: Mapping[str, str], work: Path
) -> Outcome:
    """Run a command and kill it, or the server that it uses, after some seconds."""
    began = time.monotonic()
    process = start(case.words(files, work), variables, work)
    while time.monotonic() - began < moment and process.poll() is None:
        time.sleep(0.005)
    if victim == "command":
        process.kill()
    else:
        state = ServerFiles(Path(variables["ALMANAC_HOME"]).resolve()).read_state()
        with suppress(ProcessLookupError):
            if state is not None and state.java:
                os.kill(state.java, signal.SIGKILL)
    return finish(process, began)


SIZE_MEGABYTES = 400


@contextmanager
def small_disk(folder: Path, megabytes: int = SIZE_MEGABYTES) -> Iterator[Path]:
    """Mount a file system of this size on a folder; unmount it at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "almanac", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def filled(
    case: Case, moment: float, left: int, disk: Path, files: Path, variables: Mapping[str, str]
) -> Outcome:
    """Run a command in a folder of the disk, and fill the disk after some seconds; make room at the end."""
    began = time.monotonic()
    process = start(case.words(files, disk), variables, disk)
    while time.monotonic() - began < moment and process.poll() is None:
        time.sleep(0.005)
    filler = disk / "filler"
    with filler.open("wb") as file:
        free = os.statvfs(disk)
        os.posix_fallocate(file.fileno(), 0, max(free.f_bavail * free.f_frsize - left, 1))
    try:
        return finish(process, began)
    finally:
        filler.unlink()


ENTRY_POINT = "org.neo4j.server.CommunityEntryPoint"
RESTARTS = 4
"""Number of restarts during each command."""


def restarted(base: Path, folder: Path, rng: np.random.Generator) -> Iterator[Trial]:
    """Load the data into Neo4j, run each command several times, restart the server meanwhile."""
    backup = folder / "base.backup"
    _required(["db", "backup", str(backup)], at_home(base), folder)
    home = folder / "neo4j"
    home.mkdir()
    with neo4j(home) as address, ThreadPoolExecutor(1) as other:
        variables = _variables(address, folder)
        try:
            for case in CASES:
                plain = None
                for _ in range(RESTARTS + 1):
                    work = folder / secrets.token_hex(4)
                    work.mkdir()
                    _required(["db", "restore", str(backup), "--replace"], variables, work)
                    previous_path(backup).unlink(missing_ok=True)
                    if plain is None:
                        plain = undisturbed(case, variables, base.parent / "files", work)
                        continue
                    began = time.monotonic()
                    process = start(case.words(base.parent / "files", work), variables, work)
                    restart = other.submit(_restart, address, home, float(rng.uniform(0, plain.seconds)))
                    outcome = finish(process, began)
                    restart.result()
                    yield judge(case, plain, outcome, variables, base.parent / "files", work)
        finally:
            _stopped(home)


def _restart(address: ServerAddress, home: Path, moment: float) -> None:
    """Stop the server of a folder after some seconds, start it with the same words, await its answer."""
    time.sleep(moment)
    log = home / "output.log"
    with log.open("ab") as output:
        server = psutil.Popen(_stopped(home), start_new_session=True, stdout=output, stderr=output)
    await_answer(address, server, log)


def _stopped(home: Path) -> list[str]:
    """Stop the server of a folder; return the words that started it."""
    (server,) = (
        process
        for process in psutil.process_iter(["cmdline"])
        if {ENTRY_POINT, f"--home-dir={home}"} <= set(process.info["cmdline"] or ())
    )
    words = server.cmdline()
    server.terminate()
    server.wait(60)
    return words


def _variables(address: ServerAddress, folder: Path) -> dict[str, str]:
    secret = folder / "password"
    secret.touch(0o600)
    secret.write_text(address.password)
    return {
        "ALMANAC_DB": address.uri,
        "ALMANAC_DB_USER": address.user,
        "ALMANAC_DB_PASSWORD_FILE": os.fspath(secret),
    }


def _required(words: list[str], variables: dict[str, str], work: Path) -> None:
    outcome = run(words, variables, work)
    if outcome.code:
        raise RuntimeError(outcome.said)
