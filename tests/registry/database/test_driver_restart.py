"""A server that restarts during a transaction, and a user who stops a statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from neo4j._async_compat.network._bolt_socket import BoltSocketBase as BoltSocket
from neo4j.exceptions import AuthError

import registry.database.driver
from registry.database.driver import Database, Transaction
from registry.database.local.server import ServerAddress
from registry.errors import DatabaseUnavailable
from tests.support.forwarder import Forwarder
from tests.support.waiting import SteeredClock


@pytest.fixture
def forwarder(server: ServerAddress) -> Iterator[Forwarder]:
    parts = urlsplit(server.uri)
    running = Forwarder((parts.hostname or "", parts.port or 0))
    yield running
    running.stop()


def connected(server: ServerAddress, forwarder: Forwarder, seconds: float) -> Database:
    login: dict[str, Any] = {"user": server.user, "password": server.password, "name": server.name}
    return Database.connect(f"bolt://127.0.0.1:{forwarder.port}", wait_seconds=seconds, **login)


def test_a_transaction_is_repeated_when_the_server_is_back(
    server: ServerAddress, forwarder: Forwarder, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = []

    def restart() -> None:
        monkeypatch.undo()
        forwarder.start()

    def work(transaction: Transaction) -> int:
        attempts.append(1)
        transaction.run("CREATE (:Cluster {id: 'restart'})")
        if len(attempts) == 1:
            forwarder.stop()
            monkeypatch.setattr(registry.database.driver, "time", SteeredClock(restart))
        return len(transaction.run("MATCH (c:Cluster {id: 'restart'}) RETURN c.id"))

    with connected(server, forwarder, 60.0) as through:
        assert through.write(work) == 1
        assert through.query("MATCH (c:Cluster) RETURN count(c)")[1] == [(1,)]
    assert len(attempts) == 2


def test_a_stopping_server_without_users_is_waited_for(
    server: Any, forwarder: Forwarder, database: Database
) -> None:
    """What ArcadeDB answers on open connections then; a wrong password is not tried again."""
    attempts = []

    def work(transaction: Transaction) -> int:
        attempts.append(1)
        if len(attempts) == 1:
            raise refused("The credentials of this connection are no longer valid")
        return len(transaction.run("RETURN 1"))

    def never(transaction: Transaction) -> None:
        attempts.append(1)
        raise refused("The client is unauthorized due to authentication failure.")

    with connected(server, forwarder, 60.0) as through:
        assert through.write(work) == 1
        assert len(attempts) == 2
        with pytest.raises(DatabaseUnavailable, match="the user or the password is refused"):
            through.write(never)
        assert len(attempts) == 3


def refused(message: str) -> AuthError:
    """The driver's error for an answer of a server."""
    error = AuthError._hydrate_neo4j(code="Neo.ClientError.Security.Unauthorized", message=message)
    assert isinstance(error, AuthError)
    return error


def test_the_wait_for_a_server_ends(server: Any, forwarder: Forwarder, monkeypatch: Any) -> None:
    for wait, least in ((0.0, 0.0), (1.5, 0.5)):  # pauses double, with jitter: the last may not fit
        with connected(server, forwarder, wait) as through:
            forwarder.stop()
            clock = SteeredClock()
            monkeypatch.setattr(registry.database.driver, "time", clock)
            with pytest.raises(DatabaseUnavailable):
                through.read(lambda transaction: transaction.run("RETURN 1"))
            assert least <= clock.now <= wait + 0.75  # by the jitter of the last pause
            monkeypatch.undo()
        forwarder.start()


@pytest.mark.parametrize("call", [2, 3, 4, 5, 9])
@pytest.mark.parametrize("shape", ["many rows", "one large row"])
def test_an_interrupt_in_the_middle_of_an_answer_keeps_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch, call: int, shape: str
) -> None:
    receive: Any = BoltSocket.recv_into
    calls = []

    def interrupted(self: BoltSocket, buffer: Any, size: int) -> int:
        calls.append(size)
        if len(calls) == call:
            raise KeyboardInterrupt
        return int(receive(self, buffer, min(size, 50)))

    def work(transaction: Transaction) -> None:
        transaction.run("CREATE (:Cluster {id: 'half'})")
        made = "x" if shape == "many rows" else "collect(x) AS x"
        transaction.run(f"UNWIND range(1, 3000) AS x RETURN {made}")

    with monkeypatch.context() as patch:
        patch.setattr(BoltSocket, "recv_into", interrupted)
        with pytest.raises(KeyboardInterrupt):
            database.write(work)
    assert len(calls) == call  # nothing more was read of a torn answer
    assert database.query("MATCH (c:Cluster) RETURN count(c)")[1] == [(0,)]
