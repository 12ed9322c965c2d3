"""The tier of a test follows from what it uses; without the fixture `processes` it cannot start a process."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.tiers import TESTS, in_order, tier


def item(path: str, *fixtures: str, server: str | None = None) -> Any:
    """Return a stand-in for a test with these fixtures, and on this server if it has one for each."""
    case = {} if server is None else {"callspec": SimpleNamespace(params={"server_kind": server})}
    return SimpleNamespace(path=TESTS / path, fixturenames=fixtures, nodeid=path, **case)


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (item("mapping/test_a.py", "tmp_path"), "unit"),
        (item("almanac/test_a.py", "server_kind", "database"), "server"),
        (item("dashboard/test_a.py", "embedded_server", "filled"), "server"),
        (item("dashboard/test_a.py", "embedded_server", "browser", "processes"), "system"),
        (item("dashboard/test_a_smoke.py", "embedded_server", "browser", "processes"), "smoke"),
        (item("registry/store/test_a.py", "server_kind", server="neo4j"), "server"),
        (item("registry/upkeep/test_a.py", "server_kind", server="neo4j"), "system"),
        (item("registry/upkeep/test_a.py", "server_kind", server="embedded"), "server"),
        (item("registry/upkeep/test_a.py", "neo4j_server"), "system"),
    ],
)
def test_a_tier_follows_from_fixtures_and_file(test: Any, expected: str) -> None:
    assert tier(test) == expected


def test_files_are_shuffled_within_their_tier_by_the_seed_alone() -> None:
    files = [f"mapping/test_{letter}.py" for letter in "abcdefgh"]
    tests = [item(path) for path in files for _ in range(2)] + [item("test_z.py", "processes")]
    orders = {seed: [test.nodeid for test in in_order(tests, seed)] for seed in ("", "one", "two")}
    assert [test.nodeid for test in in_order(tests, "one")] == orders["one"] != orders["two"]
    assert orders[""][1::2] == files
    for order in orders.values():
        assert order[0] == "test_z.py"
        assert order[1::2] == order[2::2]  # the tests of a file stay together


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.run(["true"]),
        lambda: multiprocessing.get_context("spawn").Process(target=os.getpid).start(),
        lambda: os.system("true"),
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
        lambda: os.fork() or os._exit(0),
    ],
)
def test_a_test_without_the_fixture_starts_no_process(start: Any, tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"test_a_test_without.* must use the fixture"):
        start()
