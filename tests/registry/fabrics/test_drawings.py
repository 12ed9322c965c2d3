"""Drawings of fabrics: kept once, found again by content and rule."""

from __future__ import annotations

import numpy as np
import pytest

from registry.errors import DatabaseError, InvalidValue, UnknownName
from registry.registry import Registry
from tests.support.busy_cluster import fill


def test_a_saved_drawing_is_read_back_and_stays(registry: Registry) -> None:
    fill(registry)
    snapshot = registry.fabrics.read("toy")
    n = len(snapshot.fabric)
    x, y, tier = np.linspace(0, 1, n), np.arange(n) / 3, np.arange(n)
    assert registry.drawings.read(snapshot.id, "free-1") is None
    registry.drawings.save(snapshot.id, "free-1", x, y, tier)
    registry.drawings.save(snapshot.id, "free-1", y, x, tier)
    found = registry.drawings.read(snapshot.id, "free-1")
    assert found is not None
    assert np.array_equal(found.x, x)
    assert np.array_equal(found.y, y)
    assert np.array_equal(found.tier, tier)
    assert registry.drawings.read(snapshot.id, "free-2") is None
    assert registry.database.query("MATCH (d:Drawing)-[:OF]->(x:Content) RETURN d.rule, d.cluster, x.id")[
        1
    ] == [("free-1", "toy", snapshot.id)]


def test_a_drawing_that_does_not_fit_is_refused_and_a_damaged_one_an_error(registry: Registry) -> None:
    fill(registry)
    snapshot = registry.fabrics.read("toy")
    n = len(snapshot.fabric)
    zeros = np.zeros(n)
    with pytest.raises(UnknownName, match="no snapshot 'toy/none'"):
        registry.drawings.save("toy/none", "free-1", zeros, zeros, zeros)
    with pytest.raises(InvalidValue, match=f"2 positions for {n} vertices"):
        registry.drawings.save(snapshot.id, "free-1", np.zeros(2), np.zeros(2), np.zeros(2))
    with pytest.raises(InvalidValue, match="y: has 1 entries"):
        registry.drawings.save(snapshot.id, "free-1", zeros, np.zeros(1), zeros)
    with pytest.raises(InvalidValue, match="finite"):
        registry.drawings.save(snapshot.id, "free-1", np.full(n, np.nan), zeros, zeros)
    assert registry.drawings.read(snapshot.id, "free-1") is None
    registry.drawings.save(snapshot.id, "free-1", zeros, zeros, zeros)
    registry.database.write(lambda tx: tx.run("MATCH (d:Drawing) SET d.blob = $blob", blob=b"no blob"))
    with pytest.raises(DatabaseError, match="damaged"):
        registry.drawings.read(snapshot.id, "free-1")
