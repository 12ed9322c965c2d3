"""A user who stops a statement: the interrupt comes out as itself, and nothing is kept."""

from __future__ import annotations

from typing import Any

import pytest
from neo4j._async_compat.network._bolt_socket import BoltSocketBase as BoltSocket

from registry.database.driver import Database, Transaction


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
