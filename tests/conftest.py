"""Tiers of tests, and the servers that all workers of a run share.

``docs/explanation/testing.md`` describes how the suite is built.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support import servers, tiers

BUILD = Path(__file__).parents[1] / "build"
os.environ.pop(
    "PYTHONDONTWRITEBYTECODE", None
)  # each command that a test starts would compile all its modules
os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(BUILD / "pycache")
sys.dont_write_bytecode = False
os.environ["NUMBA_CACHE_DIR"] = str(BUILD / "kernels")

from registry.database.driver import Database, Transaction  # noqa: E402
from registry.database.embedded_server import ServerAddress, stop  # noqa: E402
from registry.database.schema import MIGRATIONS, SCHEMA_ID, WRITE_VERSION, migrate  # noqa: E402
from tests.support.dask_cluster import DaskCluster  # noqa: E402
from tests.support.doc_blocks import SAMPLE, Shell, runnable  # noqa: E402
from tests.support.neo4j_server import FIRST_COMPILER_ONLY  # noqa: E402

if TYPE_CHECKING:
    from registry.registry import Registry

MAIN = sys.modules["__main__"]
GUARD = tiers.ProcessGuard()

os.environ.setdefault("JAVA_TOOL_OPTIONS", FIRST_COMPILER_ONLY)  # also in the embedded server
# A run is repeatable, and no property fails on a busy machine, or since its first call compiles a kernel.
SLOW = [HealthCheck.too_slow]
settings.register_profile("all", deadline=None, derandomize=True, max_examples=60, suppress_health_check=SLOW)
settings.load_profile("all")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that select and order tests by their tier."""
    group = parser.getgroup("tiers of tests")
    group.addoption(
        "--tier", action="append", choices=tiers.TIERS, help="only tests of this tier; repeatable"
    )
    group.addoption("--order", default="", metavar="SEED", help="run files in an order made from this text")
    group.addoption(
        "--start-until", type=float, metavar="SECONDS", help="start no test later (seconds since the epoch)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder of this run, if this is its controller."""
    if not hasattr(config, "workerinput"):
        servers.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End all that was started for this run."""
    if not hasattr(config, "workerinput"):
        servers.end()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tiers asked for, and put them in order."""
    wanted = config.getoption("tier") or tiers.TIERS
    left = [item for item in items if tiers.tier(item) not in wanted]
    if left:
        config.hook.pytest_deselected(items=left)
    kept = [item for item in items if tiers.tier(item) in wanted]
    for item in kept:
        item.user_properties.append(("tier", tiers.tier(item)))
    items[:] = tiers.in_order(kept, config.getoption("order"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests each tier has, and the seconds of all their steps."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    steps = [report for report in reports if isinstance(report, pytest.TestReport)]
    terminalreporter.section("tiers")
    for name in tiers.TIERS:
        own = [step for step in steps if ("tier", name) in step.user_properties]
        tests, seconds = len({step.nodeid for step in own}), sum(step.duration for step in own)
        terminalreporter.line(f"{name}: {tests} tests, {seconds:.0f} s")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out a test for which there is no time; the summary lists it."""
    until = item.config.getoption("start_until")
    if until is not None and time.time() > until:
        pytest.skip(f"no time left: {item.nodeid}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Refuse processes to a test that does not use the fixture `processes`."""
    with GUARD.over(item):
        return (yield)


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """Restore ``__main__``: Streamlit's AppTest replaces it by its page, which new processes would run."""
    sys.modules["__main__"] = MAIN  # a fixture of wider scope may have drawn a page
    yield
    sys.modules["__main__"] = MAIN


@pytest.fixture(scope="session")
def processes() -> None:
    """Permission to start processes, which makes a test one of the system tier."""


# --- graph servers ------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def embedded_server() -> ServerAddress:
    """Return a database of this worker on the embedded server of the run."""
    with GUARD.lifted():
        return servers.embedded("tests")


@pytest.fixture(scope="session")
def embedded_database(embedded_server: ServerAddress) -> Iterator[Database]:
    """Connect to the embedded server and migrate its schema."""
    with embedded_server.connect() as database:
        migrate(database)
        yield database


@pytest.fixture(scope="session")
def neo4j_server() -> ServerAddress:
    """Return the run's real Neo4j; if there is none, fail in CI, and skip with the reason elsewhere."""
    with GUARD.lifted():
        try:
            return ServerAddress(**servers.kept("neo4j", "tests.support.neo4j_server:kept"))
        except servers.Unavailable as reason:
            if os.environ.get("CI") == "true":
                pytest.fail(str(reason))
            pytest.skip(str(reason))


@pytest.fixture(scope="session")
def neo4j_database(neo4j_server: ServerAddress) -> Iterator[Database]:
    """Connect to Neo4j, which has the schema."""
    with neo4j_server.connect() as database:
        yield database


@pytest.fixture
def neo4j_alone() -> Iterator[None]:
    """Let one worker at a time use Neo4j, which has a single database."""
    with servers.neo4j_alone():
        yield


@pytest.fixture
def server_kind() -> str:
    """Return which server a test uses; tests of the stores run on each in turn."""
    return "embedded"


@pytest.fixture
def server(request: pytest.FixtureRequest, server_kind: str) -> ServerAddress:
    """Return the server, with whatever it contains."""
    if server_kind == "neo4j":
        request.getfixturevalue("neo4j_alone")
    address = request.getfixturevalue(f"{server_kind}_server")
    assert isinstance(address, ServerAddress)
    return address


@pytest.fixture
def database(request: pytest.FixtureRequest, server: ServerAddress, server_kind: str) -> Database:
    """Return the server's database, migrated and otherwise empty."""
    found = request.getfixturevalue(f"{server_kind}_database")
    assert isinstance(found, Database)
    empty(found)
    return found


@pytest.fixture
def registry(server: ServerAddress, database: Database) -> Iterator[Registry]:
    """Return an empty registry on the server."""
    with servers.opened(server) as opened:
        yield opened


def empty(database: Database) -> None:
    """Delete everything from a database except constraints, indexes and version."""

    def work(transaction: Transaction) -> None:
        transaction.run("MATCH (n) DETACH DELETE n")
        transaction.run(WRITE_VERSION, id=SCHEMA_ID, version=MIGRATIONS[-1].version)

    database.write(work)


# --- other parts of a cluster -------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def dask(processes: None) -> DaskCluster:
    """Return the run's Dask scheduler with three workers, which tests leave running."""
    return DaskCluster(**servers.kept("dask", "tests.support.dask_cluster:kept"))


@pytest.fixture(scope="session")
def forking(processes: None) -> str:
    """Return the address of the run's process in whose children commands run."""
    return str(servers.kept("forking", "tests.support.forked:forking"))


@pytest.fixture(scope="session")
def sample(forking: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Return a shell with the sample cluster of the docs, as its page makes it."""
    folder = tmp_path_factory.mktemp("pages")
    shell = Shell(folder / "sample", folder / "home", forking)
    try:
        for block in runnable(SAMPLE):
            shell.run(block)
        yield shell
    finally:
        stop(shell.registry)
