"""Intended wiring beside the observed: which plan holds when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from registry.database.backups.backup import backup
from registry.database.backups.restore import restore
from registry.database.codec import digest
from registry.errors import InvalidValue, UnknownName
from registry.model import IntendedWiring, join_wiring
from registry.model.intake import Intake, Receipt
from registry.registry import Registry
from tests.conftest import empty
from tests.support.fat_tree import at

PLAN = IntendedWiring(
    source=("leaf0", "leaf0"),
    source_port=("Port 1", "Port 3"),
    target=("node00", "spine0"),
    target_port=("mlx5_0", "Port 1"),
    kind=("Data", ""),
    declared_at=at(0),
)
OTHER = replace(PLAN, target_port=("mlx5_0", "Port 2"))


def save(registry: Registry, plan: IntendedWiring, minute: float) -> Receipt:
    held = replace(plan, declared_at=at(minute))
    return registry.save(Intake(cluster="toy", intended=held, source="ndt", files=("plan.ndt",)))


def test_a_plan_comes_back_and_needs_no_fabric(registry: Registry) -> None:
    receipt = save(registry, PLAN, 0)
    stored = registry.intended.read("toy")
    assert (stored.wiring, stored.at, stored.origin, stored.id) == (
        PLAN,
        at(0),
        "ndt",
        receipt.ids("intended")[0],
    )
    assert receipt.new("intended")
    assert registry.fabrics.clusters() == ()


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
    fast = replace(PLAN, speed=(25e9, 0.0))
    assert save(registry, fast, 10).new("intended")
    assert registry.intended.read("toy").wiring == replace(fast, declared_at=at(10))
    assert registry.intended.read("toy", at(5)).wiring.speed == (0.0, 0.0)


def test_a_plan_without_speeds_has_the_content_that_earlier_versions_stored(registry: Registry) -> None:
    save(registry, PLAN, 0)
    columns = {
        name: getattr(PLAN, name) for name in ("source", "source_port", "target", "target_port", "kind")
    }
    _, rows = registry.database.query("MATCH (w:IntendedWiring) RETURN w.content AS content")
    assert rows == [(digest(columns),)]


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


def test_the_plan_that_holds_already_adds_nothing(registry: Registry) -> None:
    first = save(registry, PLAN, 0)
    again = save(registry, PLAN, 10)
    assert (again.ids("intended"), again.new("intended")) == (first.ids("intended"), 0)
    assert [run.outcome for run in registry.runs.list()] == ["unchanged", "saved"]


def test_what_is_not_there_is_said(registry: Registry) -> None:
    save(registry, PLAN, 10)
    with pytest.raises(UnknownName, match="closest: toy"):
        registry.intended.read("toi")
    with pytest.raises(UnknownName, match="there is none at that time"):
        registry.intended.read("toy", at(5))
    assert registry.intended.list("toi") == ()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"source": ("leaf0",)}, "one length"),
        ({"source": ("leaf0", "")}, "no name"),
        ({"speed": (25e9,)}, "one length"),
        ({"declared_at": at(0).replace(tzinfo=None)}, "time zone"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(change: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        replace(PLAN, **change)  # type: ignore[arg-type]


def test_an_intake_needs_the_time_since_when_a_plan_holds() -> None:
    with pytest.raises(InvalidValue, match="since when"):
        Intake(cluster="toy", intended=replace(PLAN, declared_at=None))


def test_a_dump_carries_plans(registry: Registry, tmp_path: Path) -> None:
    save(registry, PLAN, 0)
    backup(registry.database, tmp_path / "x")
    empty(registry.database)
    restore(registry.database, tmp_path / "x")
    assert registry.intended.read("toy").wiring == PLAN
