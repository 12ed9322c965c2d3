"""Intended wiring beside the observed: which plan holds when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from registry.database.codec import digest
from registry.errors import InvalidValue, UnknownName
from registry.model import IntendedWiring, join_wiring
from registry.model.intake import Intake, Receipt
from registry.registry import Registry
from tests.support.fat_tree import at

NEAR: dict[str, Any] = {"source": ("leaf0", "leaf0"), "source_port": ("Port 1", "Port 3")}
FAR: dict[str, Any] = {"target": ("node00", "spine0"), "target_port": ("mlx5_0", "Port 1")}
PLAN = IntendedWiring(**NEAR, **FAR, kind=("Data", ""), declared_at=at(0))
OTHER = replace(PLAN, target_port=("mlx5_0", "Port 2"))


def save(registry: Registry, plan: IntendedWiring, minute: float) -> Receipt:
    held = replace(plan, declared_at=at(minute))
    return registry.save(Intake(cluster="toy", intended=held, source="ndt", files=("plan.ndt",)))


def test_a_plan_comes_back_and_needs_no_fabric(registry: Registry) -> None:
    receipt = save(registry, PLAN, 10)
    stored = registry.intended.read("toy")
    assert stored.wiring == replace(PLAN, declared_at=at(10))
    assert (stored.at, stored.origin, (stored.id,)) == (at(10), "ndt", receipt.ids("intended"))
    assert receipt.new("intended")
    assert registry.fabrics.clusters() == ()
    again = save(registry, PLAN, 20)  # it holds already
    assert (again.ids("intended"), again.new("intended")) == (receipt.ids("intended"), 0)
    assert [run.outcome for run in registry.runs.list()] == ["unchanged", "saved"]
    with pytest.raises(UnknownName, match="closest: toy"):
        registry.intended.read("toi")
    with pytest.raises(UnknownName, match="there is none at that time"):
        registry.intended.read("toy", at(5))
    assert registry.intended.list("toi") == ()


def test_each_plan_holds_until_the_next(registry: Registry) -> None:
    for minute, plan in ((0, PLAN), (20, PLAN), (10, OTHER)):
        save(registry, plan, minute)
    assert [one.at for one in registry.intended.list("toy")] == [at(0), at(10)]
    assert registry.intended.read("toy", at(5)).wiring == PLAN
    assert registry.intended.read("toy", at(15)).wiring.target_port == OTHER.target_port
    save(registry, PLAN, 20)
    assert registry.intended.read("toy").at == at(20)


def test_speeds_are_kept_and_make_another_plan(registry: Registry) -> None:
    save(registry, PLAN, 0)
    names = ("source", "source_port", "target", "target_port", "kind")
    _, rows = registry.database.query("MATCH (w:IntendedWiring) RETURN w.content AS content")
    assert rows == [(digest({name: getattr(PLAN, name) for name in names}),)]  # as earlier versions stored it
    fast = replace(PLAN, speed=(25e9, 0.0))
    assert save(registry, fast, 10).new("intended")
    assert registry.intended.read("toy").wiring == replace(fast, declared_at=at(10))
    assert registry.intended.read("toy", at(5)).wiring.speed == (0.0, 0.0)


def test_a_plan_that_lacks_most_of_the_one_before_is_saved_with_a_warning(registry: Registry) -> None:
    assert save(registry, PLAN, 0).warnings == ()
    assert save(registry, OTHER, 10).warnings == ()  # half of its two cables are the same
    other = replace(PLAN, source=("leaf7", "leaf7"))
    reason = "the intended wiring replaces one of 2 cables and lacks 2 of them"
    expected = f"{reason}: give all files of a plan in one call"
    receipt = save(registry, other, 20)
    assert (receipt.warnings, receipt.new("intended")) == ((expected,), 1)


def test_several_cables_of_a_port_and_plans_in_several_files() -> None:
    crowded = replace(PLAN, source_port=("Port 1", "PORT 1"))
    assert crowded.conflicts == {("leaf0", "Port 1"): (0, 1)}
    expected = "1 port has several cables in the intended wiring, for example leaf0 Port 1 (2 cables)"
    assert crowded.conflict_lines() == [expected]
    assert (PLAN.conflicts, PLAN.conflict_lines()) == ({}, [])
    turned = replace(PLAN, source=PLAN.target, source_port=PLAN.target_port,
                     target=("LEAF0", "leaf9"), target_port=PLAN.source_port, declared_at=at(5))  # fmt: skip
    joined = join_wiring([PLAN, turned])
    assert (joined.source, joined.target) == (("leaf0", "leaf0", "spine0"), ("node00", "spine0", "leaf9"))
    assert joined.declared_at == at(5)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"source": ("leaf0",)}, "one length"),
        ({"source": ("leaf0", "")}, "no name"),
        ({"speed": (25e9,)}, "one length"),
        ({"declared_at": at(0).replace(tzinfo=None)}, "time zone"),
        ({"declared_at": None}, "since when"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        Intake(cluster="toy", intended=replace(PLAN, **change))
