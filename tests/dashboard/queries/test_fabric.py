from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numpy as np
import pytest

from dashboard.queries.caching import cached_in_order
from dashboard.queries.fabric import fabric_view
from mapping import evaluate
from registry.database.driver import Database, Transaction
from registry.pages.fabric import read_fabric_history
from registry.pages.placements import open_placement
from registry.registry import Registry
from tests.dashboard.conftest import SCANNED, Filled

T = TypeVar("T")


class CountingDatabase:
    """A database that counts the statements that it is asked to run."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.uri = database.uri
        self.statements: list[str] = []

    def read(self, work: Callable[[Transaction], T]) -> T:
        def counted(transaction: Transaction) -> T:
            outer = self

            class Counting:
                def run(self, statement: str, /, **parameters: object) -> list[dict[str, Any]]:
                    outer.statements.append(statement)
                    return transaction.run(statement, **parameters)

            return work(cast(Transaction, Counting()))

        return self.database.read(counted)


@pytest.fixture(scope="module")
def opened(filled: Filled) -> Iterator[Registry]:
    with filled.connect() as registry:
        yield registry


@pytest.fixture
def counted(opened: Registry) -> tuple[Registry, CountingDatabase]:
    database = CountingDatabase(opened.database)
    return Registry(cast(Database, database)), database


@pytest.mark.parametrize("placement", [True, False])
@pytest.mark.parametrize("at", [None, SCANNED])
def test_the_fabric_view_takes_three_statements_and_one_when_seen_again(
    counted: tuple[Registry, CountingDatabase], filled: Filled, at: Any, placement: bool
) -> None:
    registry, database = counted
    for most in (3, 1):
        database.statements.clear()
        found = read_fabric_history(cast(Database, database), "tree", at, counters=True)
        fabric_view(registry, found, at, filled.alone if placement else None)
        assert len(database.statements) <= most


def test_saved_loads_are_those_of_the_fabric_that_is_drawn(opened: Registry, filled: Filled) -> None:
    whole = open_placement(opened.database, filled.second)
    assert whole.profile is not None
    assert whole.stored.evaluation is not None
    again = evaluate(whole.snapshot.fabric, whole.profile.profile, whole.stored.placement)
    assert np.allclose(again.link_bytes, whole.stored.evaluation.link_bytes)


def test_ranks_in_order_cost_what_was_saved_of_them(opened: Registry, filled: Filled) -> None:
    whole = open_placement(opened.database, filled.second)
    found = cached_in_order(filled.second, whole)
    assert found is not None
    assert whole.stored.in_order is not None
    assert found.congestion_seconds == pytest.approx(whole.stored.in_order.congestion_seconds)
