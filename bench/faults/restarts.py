"""Restart Neo4j at a random moment of each command."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil

from bench.faults.commands import CASES, at_home, finish, run, start
from bench.faults.trial import Trial, judge, undisturbed
from registry.database.embedded_server import ServerAddress
from registry.upkeep.restore import previous_path
from tests.support.neo4j_server import await_answer, neo4j

ENTRY_POINT = "org.neo4j.server.CommunityEntryPoint"
TRIALS = 4
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
                for _ in range(TRIALS + 1):
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
