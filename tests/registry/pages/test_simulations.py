"""Simulations with their fabric in one statement, against the same data read piece by piece."""

from __future__ import annotations

import pytest

from registry.errors import UnknownName
from registry.pages.simulations import open_simulations
from registry.registry import Registry
from tests.registry.records.test_simulations import known, record_on, same

__all__ = ["known"]


def test_simulations_are_opened_with_their_fabric(known: Registry) -> None:
    first, second = (known.simulations.save(record_on(known, code_version=one)) for one in ("1", "2"))
    found = open_simulations(known.database, [second, first, second])
    assert sorted(found) == sorted([first, second])
    snapshot = known.fabrics.read("toy")
    for name, opened in found.items():
        stored = known.simulations.read(name)
        assert opened.stored.code_version == stored.code_version
        assert same(opened.stored.simulation, stored.simulation)
        assert (opened.snapshot.id, opened.snapshot.observed_at) == (snapshot.id, snapshot.observed_at)
        assert opened.snapshot.fabric.names == snapshot.fabric.names
    assert found[first].snapshot is found[second].snapshot


def test_an_unknown_simulation_is_an_error_with_the_closest(known: Registry) -> None:
    identity = known.simulations.save(record_on(known))
    with pytest.raises(UnknownName) as error:
        open_simulations(known.database, [identity[:-1] + "x"])
    assert error.value.close == (identity,)
