"""Optical switches of clusters, stored and read back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from registry.errors import UnknownName
from registry.registry import Registry
from tests.registry.model.test_circuit_plan import optical_switch
from tests.registry.records.test_circuit_plans import HOSTS, known

__all__ = ["known"]


def test_a_switch_is_stored_with_its_cluster(known: Registry) -> None:
    switch = optical_switch(compute_seconds=0.5)
    stored = known.optical.save(switch)
    assert stored == known.optical.read("toy")
    assert stored.at is not None
    assert replace(stored, at=None) == switch
    assert known.optical.list() == (stored,)


def test_a_switch_replaces_the_earlier_one(known: Registry) -> None:
    known.optical.save(optical_switch())
    known.optical.save(optical_switch(hosts=HOSTS[:2], max_edges=1, circuits=()))
    now = known.optical.read("toy")
    assert (now.hosts, now.max_edges, now.circuits) == (HOSTS[:2], 1, ())


def test_an_unknown_cluster_or_switch_is_an_error(known: Registry) -> None:
    with pytest.raises(UnknownName, match="closest: toy"):
        known.optical.read("toys")
    with pytest.raises(UnknownName, match="almanac cluster optical"):
        known.optical.read("toy")
    with pytest.raises(UnknownName, match="closest: toy"):
        known.optical.save(optical_switch(cluster="toys"))
    assert known.optical.list() == ()
