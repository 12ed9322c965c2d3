"""Kinds of ingested data: several sources merged, and lines for people."""

from __future__ import annotations

from dataclasses import fields

import pytest

from registry.errors import InputError
from registry.ingest_runs.kinds import KINDS, concatenated, describe, join_sweeps, only_one
from registry.model import CounterSweep, Profile, Trace
from registry.model.intake import IngestedData, Intake, Receipt
from tests.registry.counters.test_counters import sweep
from tests.support.fat_tree import at, fat_tree


def test_every_attribute_of_ingested_data_has_a_kind() -> None:
    assert {kind.name for kind in KINDS} == {field.name for field in fields(IngestedData)}
    merge = next(kind.merge for kind in KINDS if kind.name == "traces")
    trace = Trace(ranks=2, at=[0.0], sender=[0], receiver=[1], bytes=[1], tag=[0])  # type: ignore[arg-type]
    assert merge([("a", (None,)), ("b", (None, None))]) == ()  # only if there are any
    assert merge([("a", (None,)), ("b", (trace,))]) == (None, trace)


def test_a_second_value_is_refused_with_both_files() -> None:
    merge = only_one("fabric")
    assert merge([("a", None), ("b", 1)]) == 1
    assert merge([("a", None)]) is None
    with pytest.raises(InputError, match="a second fabric in one ingest, the first is in a") as error:
        merge([("a", 1), ("b", None), ("c", 2)])
    assert error.value.path == "c"
    assert concatenated([("a", (1, 2)), ("b", (3,))]) == (1, 2, 3)


def test_sweeps_of_other_counters_within_a_minute_are_joined() -> None:
    def joined(*sweeps: CounterSweep) -> list[tuple[float, tuple[str, ...]]]:
        found = join_sweeps([(f"file {k}", (one,)) for k, one in enumerate(sweeps)])
        return [((one.at - at(0)).total_seconds(), one.names) for one in found]

    errors = sweep(6, names="symbol_errors")
    both = ("xmit_bytes", "symbol_errors")
    assert joined(errors, sweep(5)) == [(360.0, both)]
    assert joined(errors, sweep(4)) == [(240.0, both[:1]), (360.0, both[1:])]
    assert joined(sweep(5), sweep(5.5)) == [(300.0, both[:1]), (330.0, both[:1])]


def test_an_ingest_is_described_kind_by_kind() -> None:
    intake = Intake(
        cluster="toy",
        observed_at=at(0),
        fabric=fat_tree(),
        profiles=(Profile.from_edges([0], [1], [1.0], name="pair"),),
    )
    size = f"{len(fat_tree().hosts)} hosts, {len(fat_tree().switches)} switches"
    fabric, profile = describe(intake, None)
    assert fabric.startswith("fabric of toy observed at 2026-")
    assert fabric.endswith(f"{size}, {fat_tree().cable_count} cables")
    assert profile == "profile pair would be saved"
    receipt = Receipt(cluster="toy", new_observation=True, new_content=True, links_opened=4)
    fabric, profile = describe(intake, receipt)
    assert fabric.endswith("; link directions: 4 new, 0 removed")
    assert profile == "profile pair saved"
