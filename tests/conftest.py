"""Fixtures for all tests: the two real graph servers, one of each per run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from registry.database.driver import Database, Transaction
from registry.database.local.server import ServerAddress, ensure_server, stop
from registry.database.schema import MIGRATIONS, SCHEMA_ID, WRITE_VERSION, migrate
from tests.support.dask_cluster import DaskCluster, dask_cluster
from tests.support.neo4j_server import FIRST_COMPILER_ONLY, NoNeo4j, neo4j

if TYPE_CHECKING:
    from registry.registry import Registry

SERVERS = ("embedded", "neo4j")
MAIN = sys.modules["__main__"]
HERE = Path(__file__).parent
SERVED = ("registry", "dashboard", "almanac")
"""Folders whose tests all need servers."""
SERVED_ORDER = ("registry", "ingest", "mapping", "dashboard", "almanac")
"""Order of the folders in which tests that need servers run; the first two need no kernels."""
COMPILING = (
    "mapping/simulation/test_simulation_against_slow.py",
    "mapping/service/test_circuit_search.py",
    "mapping/placement/problem/test_problem.py",
    "mapping/placement/moves",
)
"""Tests whose kernels take longest to compile, or are needed by most other tests; they run first."""

os.environ.setdefault("JAVA_TOOL_OPTIONS", FIRST_COMPILER_ONLY)  # also in the embedded server
settings.register_profile("untimed", deadline=None)  # a busy machine fails no property
settings.load_profile("untimed")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests: one of two workers begins with servers, the other with compiling kernels.

    Each worker begins with its half of the list and, when done, takes from the end of the other's
    (worksteal). So no kernel is compiled by both at the same time, and one of them sets up the dashboard.
    """
    served = sorted(filter(_is_served, items), key=_served_order)
    others = [item for item in items if not _is_served(item)]
    compiling = sorted((item for item in others if _folder(item) == "mapping"), key=_compiling_order)
    quick = [item for item in others if _folder(item) != "mapping"]
    room = max(len(items) // 2 - len(served), 0)
    items[:] = served + quick[:room] + compiling + quick[room:]


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(HERE).parts[0]


def _is_served(item: pytest.Item) -> bool:
    return _folder(item) in SERVED or "database" in getattr(item, "fixturenames", ())


def _served_order(item: pytest.Item) -> tuple[int, bool]:
    """Sort by folder; the last tests, which the other worker may take, need no Neo4j."""
    folder = _folder(item)
    place = SERVED_ORDER.index(folder) if folder in SERVED_ORDER else 0
    return place, folder == SERVED_ORDER[-1] and "neo4j" not in item.nodeid


def _compiling_order(item: pytest.Item) -> int:
    path = item.path.relative_to(HERE).as_posix()
    return next((place for place, first in enumerate(COMPILING) if path.startswith(first)), len(COMPILING))


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """Restore ``__main__``: Streamlit's AppTest replaces it by its page, which new processes would run."""
    sys.modules["__main__"] = MAIN  # a fixture of wider scope may have drawn a page
    yield
    sys.modules["__main__"] = MAIN


@pytest.fixture(scope="session")
def embedded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerAddress]:
    """Start the embedded server on a data folder of this run."""
    home = tmp_path_factory.mktemp("embedded")
    yield ensure_server(home, idle_seconds=120)
    stop(home)


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerAddress]:
    """Start a real Neo4j; if there is none, fail in CI, and skip with the reason elsewhere."""
    with ExitStack() as stack:
        try:
            address = stack.enter_context(neo4j(tmp_path_factory.mktemp("neo4j")))
        except NoNeo4j as reason:
            if os.environ.get("CI") == "true":
                pytest.fail(str(reason))
            pytest.skip(str(reason))
        yield address


@pytest.fixture(scope="session")
def embedded_database(embedded_server: ServerAddress) -> Iterator[Database]:
    """Connect to the embedded server and migrate its schema."""
    with embedded_server.connect() as database:
        migrate(database)
        yield database


@pytest.fixture(scope="session")
def neo4j_database(neo4j_server: ServerAddress) -> Iterator[Database]:
    """Connect to Neo4j and migrate its schema."""
    with neo4j_server.connect() as database:
        migrate(database)
        yield database


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> ServerAddress:
    """Return each server in turn, with whatever it contains."""
    address = request.getfixturevalue(f"{request.param}_server")
    assert isinstance(address, ServerAddress)
    return address


@pytest.fixture(params=SERVERS)
def database(request: pytest.FixtureRequest) -> Database:
    """Return each server's database in turn, migrated and otherwise empty."""
    found = request.getfixturevalue(f"{request.param}_database")
    assert isinstance(found, Database)
    empty(found)
    return found


@pytest.fixture
def server_of(request: pytest.FixtureRequest, database: Database) -> ServerAddress:
    """Return the address of the server that `database` is."""
    address = request.getfixturevalue(f"{'neo4j' if database.kind == 'neo4j' else 'embedded'}_server")
    assert isinstance(address, ServerAddress)
    return address


@pytest.fixture
def registry(server_of: ServerAddress) -> Iterator[Registry]:
    """Return the registry on each server in turn, empty."""
    from registry.registry import Registry

    with Registry.open(
        server_of.uri, user=server_of.user, password=server_of.password, name=server_of.name
    ) as opened:
        yield opened


def empty(database: Database) -> None:
    """Delete everything from a database except constraints, indexes and version."""

    def work(transaction: Transaction) -> None:
        transaction.run("MATCH (n) DETACH DELETE n")
        transaction.run(WRITE_VERSION, id=SCHEMA_ID, version=MIGRATIONS[-1].version)

    database.write(work)


@pytest.fixture(scope="session")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """Return a Dask scheduler with three workers, which tests leave running."""
    with dask_cluster(tmp_path_factory.mktemp("dask")) as cluster:
        yield cluster
