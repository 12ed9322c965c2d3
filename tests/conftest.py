"""Fixtures that every test may use: both real graph servers, one of each a run."""

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
from tests.support import servers

if TYPE_CHECKING:
    from registry.registry import Registry

SERVERS = ("embedded", "neo4j")
MAIN = sys.modules["__main__"]
HERE = Path(__file__).parent
SERVED = ("registry", "dashboard", "almanac")
"""Folders whose tests need servers; the first needs no kernels."""
COMPILING = ("test_simulate_against_slow", "test_circuit_plans", "test_bad_problems", "test_budget")
"""Tests of mapping that need what takes longest to compile, and what most others need too."""

settings.register_profile("untimed", deadline=None)  # a busy machine fails no property
settings.load_profile("untimed")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one of two workers begin with servers and the other by compiling kernels; quick tests come last.

    Each begins with its half of the list and, when done, takes from the end of the other's (worksteal): so
    kernels are compiled once and not by both at the same time, and the dashboard is set up by one of them.
    """
    served = sorted(filter(_is_served, items), key=_served_turn)
    others = [item for item in items if not _is_served(item)]
    compiling = sorted((item for item in others if _folder(item) == "mapping"), key=_compiling_turn)
    quick = [item for item in others if _folder(item) != "mapping"]
    room = max(len(items) // 2 - len(served), 0)
    items[:] = served + quick[:room] + compiling + quick[room:]


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(HERE).parts[0]


def _is_served(item: pytest.Item) -> bool:
    return _folder(item) in SERVED or "database" in getattr(item, "fixturenames", ())


def _served_turn(item: pytest.Item) -> tuple[int, bool]:
    """Folder by folder; what the other worker may take from the end needs no Neo4j."""
    turn = SERVED.index(_folder(item)) if _folder(item) in SERVED else 0
    return turn, turn == len(SERVED) - 1 and "neo4j" not in item.nodeid


def _compiling_turn(item: pytest.Item) -> int:
    return COMPILING.index(item.path.stem) if item.path.stem in COMPILING else len(COMPILING)


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """Streamlit's AppTest puts its page in place of ``__main__``, which new processes then would run."""
    sys.modules["__main__"] = MAIN  # a fixture of wider scope may have drawn a page
    yield
    sys.modules["__main__"] = MAIN


@pytest.fixture(scope="session")
def embedded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerAddress]:
    """The embedded server on a data folder of this run."""
    home = tmp_path_factory.mktemp("embedded")
    yield ensure_server(home, idle_seconds=120)
    stop(home)


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerAddress]:
    """A real Neo4j; in CI its absence is a failure, elsewhere a skip that says why."""
    with ExitStack() as stack:
        try:
            address = stack.enter_context(servers.neo4j(tmp_path_factory.mktemp("neo4j")))
        except servers.NoNeo4j as reason:
            if os.environ.get("CI") == "true":
                pytest.fail(str(reason))
            pytest.skip(str(reason))
        yield address


@pytest.fixture(scope="session")
def embedded_database(embedded_server: ServerAddress) -> Iterator[Database]:
    """A connection to the embedded server, migrated."""
    with embedded_server.connect() as database:
        migrate(database)
        yield database


@pytest.fixture(scope="session")
def neo4j_database(neo4j_server: ServerAddress) -> Iterator[Database]:
    """A connection to Neo4j, migrated."""
    with neo4j_server.connect() as database:
        migrate(database)
        yield database


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> ServerAddress:
    """Each server in turn, whatever it holds."""
    address = request.getfixturevalue(f"{request.param}_server")
    assert isinstance(address, ServerAddress)
    return address


@pytest.fixture(params=SERVERS)
def database(request: pytest.FixtureRequest) -> Database:
    """Each server in turn, migrated and else empty."""
    found = request.getfixturevalue(f"{request.param}_database")
    assert isinstance(found, Database)
    empty(found)
    return found


@pytest.fixture
def registry(request: pytest.FixtureRequest, database: Database) -> Iterator[Registry]:
    """The registry on each server in turn, empty."""
    from registry.registry import Registry

    address = request.getfixturevalue(f"{'neo4j' if database.kind == 'neo4j' else 'embedded'}_server")
    with Registry.open(
        address.uri, user=address.user, password=address.password, name=address.name
    ) as opened:
        yield opened


def empty(database: Database) -> None:
    """Take everything out of a database but its constraints, indexes and version."""

    def work(transaction: Transaction) -> None:
        transaction.run("MATCH (n) DETACH DELETE n")
        transaction.run(WRITE_VERSION, id=SCHEMA_ID, version=MIGRATIONS[-1].version)

    database.write(work)
