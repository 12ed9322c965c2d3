"""All viewers share one read of the clusters."""

from __future__ import annotations

from typing import cast

from bench.dashboard.statements import CountingDatabase
from dashboard.queries.clusters import cached_clusters
from registry.database.driver import Database
from registry.registry import Registry
from tests.dashboard.conftest import Filled


def test_ten_viewers_cost_one_statement(filled: Filled) -> None:
    with filled.connect() as registry:
        counting = CountingDatabase(registry.database)
        found = [cached_clusters(Registry(cast(Database, counting))) for _ in range(10)]
    assert set(found[0].infos) == {"ndr", "tree"}
    assert all(one is found[0] for one in found)
    assert len(counting.statements) == 1
