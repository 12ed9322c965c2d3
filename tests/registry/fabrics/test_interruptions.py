"""Cables that vanished from the scans of a period, compared with a walk through all scans."""

from __future__ import annotations

from collections import Counter

import numpy as np

from registry.model import Fabric
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.fat_tree import at, fat_tree

Ends = tuple[tuple[str, int], ...]


def save(registry: Registry, *scans: Fabric) -> None:
    for number, fabric in enumerate(scans):
        registry.save(Intake(cluster="toy", observed_at=at(10 * number), fabric=fabric))


def vanished(registry: Registry, start: float, until: float | None = None) -> dict[Ends, int]:
    found = registry.fabrics.interruptions("toy", at(start), None if until is None else at(until))
    return {
        tuple(sorted([(one.source, one.source_port), (one.target, one.target_port)])): one.times
        for one in found
    }


def cables(fabric: Fabric) -> set[Ends]:
    links = fabric.links
    ends = zip(
        links.source.tolist(),
        links.source_port.tolist(),
        links.target.tolist(),
        links.target_port.tolist(),
        strict=True,
    )
    return {tuple(sorted([(fabric.names[a], p), (fabric.names[b], q)])) for a, p, b, q in ends}


FLAPPING = ("leaf0", 3), ("spine0", 1)


def test_a_cable_that_comes_and_goes_is_counted_and_a_slower_one_is_not(registry: Registry) -> None:
    whole, without, slow = fat_tree(), fat_tree(without=(0,)), fat_tree(slow=(0, 1))
    save(registry, whole, without, whole, without, slow, whole, without)
    assert vanished(registry, 0) == {FLAPPING: 3}
    assert vanished(registry, 10) == {FLAPPING: 2}
    assert vanished(registry, 0, 30) == {FLAPPING: 2}
    assert vanished(registry, 60) == {}
    assert registry.fabrics.interruptions("other", at(0)) == ()


def test_the_counts_are_those_of_a_walk_through_the_scans(registry: Registry) -> None:
    draw = np.random.default_rng(1)
    scans = [
        fat_tree(rails=2, without=tuple(np.flatnonzero(draw.random(12) < 0.4).tolist())) for _ in range(8)
    ]
    save(registry, *scans)
    for start, until in ((0, 70), (20, 50), (35, 70)):
        counts: Counter[Ends] = Counter()
        for number in range(1, len(scans)):
            if start < 10 * number <= until:
                counts.update(cables(scans[number - 1]) - cables(scans[number]))
        assert vanished(registry, start, until) == dict(counts)
