"""Fixtures that every test may use: both real graph servers, one of each a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from registry.database import Database, Transaction
from registry.local.server import ServerAddress, ensure_server, stop
from registry.schema import MIGRATIONS, SCHEMA_ID, WRITE_VERSION, migrate
from tests import servers

if TYPE_CHECKING:
    from registry.registry import Registry

SERVERS = ("embedded", "neo4j")
MAIN = sys.modules["__main__"]


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
