"""Contents: one hash for one wiring, and facts that contain all of it; the intervals in which facts hold."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.database import codec
from registry.errors import DatabaseError, InconsistentGraph
from registry.model import Fabric
from registry.store.derived import device_facts, device_keys, fabric_of, link_facts
from registry.store.snapshots import canonical, content_hash, pack_fabric, unpack_fabric
from registry.store.timeline import FOREVER, Interval, edits, intervals
from tests.support.fat_tree import at, fat_tree, tree_tables
from tests.support.full_cluster import same
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), rails=st.integers(1, 3), cables=st.integers(1, 2))
def test_the_order_in_a_file_changes_nothing(seed: int, rails: int, cables: int) -> None:
    shown = canonical(fat_tree(rails=rails, cables=cables))
    shuffled = canonical(fat_tree(rails=rails, cables=cables, shuffle=seed))
    assert same(shown, shuffled)
    assert content_hash(shown) == content_hash(shuffled)


def test_each_part_of_the_wiring_changes_the_hash() -> None:
    plain = canonical(fat_tree())
    adapters, zeros = plain.adapters, np.zeros(len(plain), np.int32)
    changes: list[dict[str, Any]] = [
        *({"lid": plain.lid + 1}, {"slots": plain.slots * 2}, {"forwards": np.ones(len(plain), bool)}),
        *({"level": zeros}, {"coordinates": np.stack([zeros] * 3, axis=1)}),
        {"adapters": replace(adapters, port_lid=adapters.port_lid + 1)},
    ]
    variants = [plain, *(replace(plain, **changed) for changed in changes)]
    variants += [fat_tree(without=(0,)), fat_tree(slow=(0,)), fat_tree(rails=2)]
    variants.append(fat_tree(renamed={"leaf0": "leafX"}))
    assert len({content_hash(canonical(fabric)) for fabric in variants}) == len(variants)


def test_time_tables_and_the_order_of_parallel_cables_are_no_part_of_the_wiring() -> None:
    scan = replace(fat_tree(), observed_at=at(0), tables=tree_tables())
    assert content_hash(canonical(scan)) == content_hash(canonical(fat_tree()))
    one = Fabric.from_arcs(list("ab"), [0, 0, 1], [1, 1, 0], [1.0, 2.0, 3.0])
    other = Fabric.from_arcs(list("ab"), [1, 0, 0], [0, 1, 1], [3.0, 2.0, 1.0])
    assert content_hash(canonical(one)) == content_hash(canonical(other))


@settings(max_examples=60)
@given(fabric=adapter_fabrics() | plain_fabrics())
def test_bytes_and_facts_contain_the_whole_wiring(fabric: Fabric) -> None:
    wiring = canonical(fabric)
    assert same(unpack_fabric(pack_fabric(wiring)), wiring)
    assert same(fabric_of(device_facts(wiring).values(), link_facts(wiring)), wiring)


def test_facts_contain_levels_and_coordinates() -> None:
    plain = canonical(fat_tree())
    axes = np.arange(2 * len(plain), dtype=np.int32).reshape(-1, 2)
    wiring = replace(plain, level=np.arange(len(plain), dtype=np.int32), coordinates=axes)
    shown = fabric_of(device_facts(wiring).values(), link_facts(wiring))
    assert content_hash(shown) == content_hash(wiring)


def test_keys_of_links_and_devices_stay_when_capacities_and_names_change() -> None:
    fast, slow = (link_facts(canonical(fat_tree(slow=slow))) for slow in ((), (0,)))
    assert {(fact.source, fact.key) for fact in fast} == {(fact.source, fact.key) for fact in slow}
    assert set(fast) != set(slow)
    arcs = Fabric.from_arcs(list("ab"), [0, 0, 0, 1], [1, 1, 1, 0], [1.0, 1.0, 2.0, 3.0])
    assert len({(fact.source, fact.key) for fact in link_facts(canonical(arcs))}) == 4
    keys = [set(device_keys(fat_tree(renamed=names))) for names in ({}, {"leaf0": "top"})]
    assert keys[0] == keys[1]
    twins = replace(fat_tree(), guid=np.full(8, 7, np.uint64))  # known by their names
    assert len(set(device_keys(twins))) == len(twins)


def test_a_blob_of_something_else_is_refused() -> None:
    with pytest.raises(DatabaseError, match="stored fabric is damaged"):
        unpack_fabric(codec.pack({"names": ["a"]}))
    columns = codec.unpack(pack_fabric(canonical(fat_tree())))
    with pytest.raises(DatabaseError, match="stored fabric is damaged"):
        unpack_fabric(codec.pack({**columns, "link_source": columns["link_source"] + 100}))


Stored = dict[str, list[Interval]]
Log = list[tuple[datetime, frozenset[str]]]
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def t(hours: int) -> datetime:
    return EPOCH + timedelta(hours=hours)


def insert(stored: Stored, log: Log, at: datetime, facts: frozenset[str]) -> None:
    """What a database does with one more observation."""
    earlier = [seen for seen in log if seen[0] <= at]
    later = [seen for seen in log if seen[0] > at]
    before = earlier[-1][1] if earlier else frozenset()
    until = later[0][0] if later else FOREVER
    touching = {
        fact: [span for span in stored.get(fact, []) if span.start <= until and span.end >= at]
        for fact in before ^ facts
    }
    change = edits(sorted(before), sorted(facts), at, until, touching)
    for fact, span in change.removed:
        stored[fact].remove(span)
    for fact, span in change.moved:
        old = next(s for s in stored[fact] if s.start == span.start)
        assert old.end != span.end
        stored[fact].remove(old)
        stored[fact].append(span)
    for fact, span in change.opened:
        stored.setdefault(fact, []).append(span)
    for fact in before ^ facts:
        stored[fact].sort()
    log[:] = [*earlier, (at, facts), *later]


FACTS = st.frozensets(st.sampled_from("abcd"))
OBSERVATIONS = st.lists(st.tuples(st.integers(0, 12).map(t), FACTS), max_size=10)


@given(seen=OBSERVATIONS)
def test_observations_in_any_order_give_the_intervals_of_their_order_in_time(seen: Log) -> None:
    stored: Stored = {}
    log: Log = []
    for moment, facts in seen:
        insert(stored, log, moment, facts)
        assert {fact: spans for fact, spans in stored.items() if spans} == intervals(log)
    in_time = sorted(seen, key=lambda observation: observation[0])
    assert intervals(in_time) == intervals(log)


@given(seen=OBSERVATIONS, hours=st.integers(-1, 13))
def test_intervals_hold_the_facts_of_the_last_observation_and_are_maximal(seen: Log, hours: int) -> None:
    log = sorted(seen, key=lambda observation: observation[0])
    earlier = [facts for at, facts in log if at <= t(hours)]
    shown = set()
    for fact, spans in intervals(log).items():
        assert all(span.start < span.end for span in spans)
        assert all(one.end < other.start for one, other in itertools.pairwise(spans))
        if any(span.start <= t(hours) < span.end for span in spans):
            shown.add(fact)
    assert shown == (earlier[-1] if earlier else frozenset())


def test_a_flapping_fact_has_two_intervals() -> None:
    seen = [(t(0), {"a"}), (t(1), {"b"}), (t(2), {"a"})]
    twice = [Interval(t(0), t(1)), Interval(t(2), FOREVER)]
    assert intervals(seen) == {"a": twice, "b": [Interval(t(1), t(2))]}


def test_a_late_observation_cuts_or_joins_intervals() -> None:
    change = edits(["a"], ["a"], t(1), FOREVER, {})  # like the one before
    assert (change.removed, change.moved, change.opened) == ([], [], [])
    change = edits(["a"], [], t(1), t(2), {"a": [Interval(t(0), FOREVER)]})
    assert change.moved == [("a", Interval(t(0), t(1)))]
    assert change.opened == [("a", Interval(t(2), FOREVER))]
    change = edits([], ["a"], t(1), t(2), {"a": [Interval(t(0), t(1)), Interval(t(2), FOREVER)]})
    assert (change.moved, change.opened) == ([("a", Interval(t(0), FOREVER))], [])
    assert change.removed == [("a", Interval(t(2), FOREVER))]
    with pytest.raises(InconsistentGraph, match="rebuilt"):
        edits(["a"], [], t(1), FOREVER, {})  # the graph contradicts the observations
