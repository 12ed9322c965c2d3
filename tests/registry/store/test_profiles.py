"""Profiles in the graph: one recording is one profile, under all its names."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from operator import attrgetter

import numpy as np
import pytest

from registry.errors import DatabaseError, UnknownName
from registry.model import Profile
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store import profiles
from registry.store.profiles import profile_id
from tests.support.full_cluster import same


def ring(ranks: int = 4, name: str = "ring", scale: float = 1.0, application: str = "cg") -> Profile:
    """Each rank sends to the next one."""
    source = np.arange(ranks)
    made = Profile.from_edges(source, (source + 1) % ranks, scale * (1.0 + source), messages=source + 2)
    return replace(made, source="made", name=name, application=application)


def save(registry: Registry, *saved: Profile) -> tuple[str, ...]:
    return registry.save(Intake(profiles=saved)).ids("profiles")


def test_a_saved_profile_is_read_back(registry: Registry) -> None:
    given = replace(ring(5), missing_ranks=(2, 4), self_edges=3, self_bytes=7.5)
    (identity,) = save(registry, given)
    assert identity == profile_id(given)
    for name in ("ring", identity, identity[:6]):
        stored = registry.profiles.read(name)
        assert stored.id == identity
    assert same(stored.profile, given)
    save(registry, Profile.from_edges([], [], [], ranks=3, name="quiet"))
    assert (registry.profiles.read("quiet").profile.ranks, registry.profiles.list()[0].pairs) == (3, 0)


def test_an_unknown_name_is_an_error_with_the_closest(registry: Registry) -> None:
    ids = save(registry, *(ring(scale=1.0 + number) for number in range(20)))
    first = sorted(identity[0] for identity in ids)
    shared = next(a for a, b in pairwise(first) if a == b)
    with pytest.raises(UnknownName):
        registry.profiles.read(shared)  # with which several ids begin
    for name, is_file in (("ring.csv", True), ("./ring", True), ("rong", False), ("", False)):
        with pytest.raises(UnknownName) as caught:
            registry.profiles.read(name)
        assert ("almanac ingest" in str(caught.value)) is is_file  # how to store it
        assert not name or is_file or caught.value.close == ("ring",)


def test_the_same_profile_again_adds_a_name_at_most(registry: Registry) -> None:
    (one,) = save(registry, ring(name="a"))
    before = registry.database.query("MATCH (n) RETURN count(n)")[1]
    assert registry.save(Intake(profiles=(ring(name="a"),))).new("profiles") == 0
    assert registry.database.query("MATCH (n) RETURN count(n)")[1] == before
    assert save(registry, ring(name="b")) == (one,)
    (info,) = registry.profiles.list()
    assert (info.name, info.names) == ("b", ("a", "b"))
    assert registry.profiles.read("a").profile.name == "a"
    assert registry.profiles.read(one).profile.name == "b"
    assert save(registry, ring(name="a", application="lu")) != (one,)


def test_a_name_belongs_to_the_profile_that_got_it_last(registry: Registry) -> None:
    old, new = save(registry, ring())[0], save(registry, ring(scale=2.0))[0]
    assert registry.profiles.read("ring").id == new
    save(registry, ring())
    assert registry.profiles.read("ring").id == new
    assert registry.profiles.read(old).id == old


def test_a_profile_without_a_name_has_its_applications_or_its_id(registry: Registry) -> None:
    save(registry, ring(name=""))
    (anonymous,) = save(registry, ring(name="", application=""))
    assert registry.profiles.read("cg").profile.name == "cg"
    assert registry.profiles.read(anonymous).profile.name == anonymous


def test_the_list_has_totals_newest_first(registry: Registry) -> None:
    save(registry, ring(3, "old"))
    save(registry, ring(4, "new"))
    read = attrgetter("name", "ranks", "pairs", "bytes", "messages")
    shown = [read(info) for info in registry.profiles.list()]
    assert shown == [("new", 4, 4, 10.0, 14), ("old", 3, 3, 6.0, 9)]


def test_ranks_and_what_they_send_are_a_graph(registry: Registry) -> None:
    save(registry, ring(3))
    _, rows = registry.database.query(
        "MATCH (:Application {id: 'cg'})<-[:OF]-(:Profile)-[:HAS_RANK]->(a:Rank)-[s:SENDS]->(b:Rank) "
        "RETURN a.index, b.index, s.bytes, s.messages ORDER BY a.index"
    )
    assert rows == [(0, 1, 1.0, 2), (1, 2, 2.0, 3), (2, 0, 3.0, 4)]


def test_a_large_profile_is_a_blob_only(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "MAX_GRAPH_PAIRS", 3)
    save(registry, ring(4))
    _, rows = registry.database.query("MATCH (p:Profile) OPTIONAL MATCH (r:Rank) RETURN p.in_graph, count(r)")
    assert rows == [(False, 0)]
    assert registry.profiles.read("ring").profile.pairs == 4


def test_a_damaged_profile_is_an_error(registry: Registry) -> None:
    (identity,) = save(registry, ring())
    registry.database.write(lambda tx: tx.run("MATCH (p:Profile) SET p.blob = $blob", blob=b"none"))
    with pytest.raises(DatabaseError, match="damaged"):
        registry.profiles.read(identity)
