"""Tiers of tests, derived from the fixtures that a test uses and the file in which it is.

======  =======================================================================================
unit    no graph server and no other process
server  the embedded graph server; Neo4j too for the store contract
smoke   everything in files ``test_*_smoke.py``: one test of each system part
system  whatever else uses the fixture ``processes``, and Neo4j beyond the store contract
======  =======================================================================================

A test that starts a process without the fixture ``processes`` fails. The fixtures of browsers, launchers,
schedulers and further servers depend on it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TIERS = ("unit", "server", "smoke", "system")
CONTRACT = ("registry/store", "registry/database")
"""Folders, without those below them, of the store contract: what the registry promises on both servers."""
STARTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system"})
"""Audit events of a process that starts."""


def tier(item: pytest.Item) -> str:
    folder = item.path.parent.relative_to(TESTS).as_posix()
    fixtures = getattr(item, "fixturenames", ())
    if item.path.stem.endswith("_smoke"):
        return "smoke"
    if "processes" in fixtures or (uses_neo4j(item) and folder not in CONTRACT):
        return "system"
    return "server" if "embedded_server" in fixtures or "server_kind" in fixtures else "unit"


def uses_neo4j(item: pytest.Item) -> bool:
    """Return True for a test, or the case of a test, that runs on Neo4j."""
    case = getattr(item, "callspec", None)
    on_neo4j = case is not None and case.params.get("server_kind") == "neo4j"
    return on_neo4j or "neo4j_server" in getattr(item, "fixturenames", ())


def in_order(items: Sequence[pytest.Item], seed: str) -> list[pytest.Item]:
    """Return the tests tier by tier, the files of each in an order that depends on the seed.

    Without a seed the files stay as they are. Within a tier the tests on Neo4j, which one worker uses at a
    time, come first. The tests of a file that are of one tier and server stay together: they share set-ups.
    """

    def place(item: pytest.Item) -> tuple[int, bool, str]:
        path = item.path.relative_to(TESTS).as_posix()
        shuffled = hashlib.sha256(f"{seed} {path}".encode()).hexdigest() if seed else ""
        return -TIERS.index(tier(item)), not uses_neo4j(item), shuffled

    return sorted(items, key=place)


class ProcessGuard:
    """Refuses processes while a test runs that does not use the fixture ``processes``."""

    def __init__(self) -> None:
        self.test: str | None = None
        sys.addaudithook(self._audit)
        start = BaseProcess.start

        def guarded(self_: BaseProcess) -> None:
            self._audit("os.fork", ())  # multiprocessing raises no audit event
            start(self_)

        setattr(BaseProcess, "start", guarded)  # noqa: B010 - a method of another library's class

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.test is not None and event in STARTS:
            # Not an Exception, which code under test may catch.
            pytest.fail(f"{self.test} starts a process: it must use the fixture `processes`")

    @contextmanager
    def over(self, item: pytest.Item) -> Iterator[None]:
        """Refuse processes within this block, unless the test may start some."""
        free = "processes" in getattr(item, "fixturenames", ())
        self.test = None if free else item.nodeid
        try:
            yield
        finally:
            self.test = None

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Let a fixture of the whole run start its server within this block."""
        test, self.test = self.test, None
        try:
            yield
        finally:
            self.test = test
