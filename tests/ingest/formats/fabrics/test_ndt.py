"""NDT files: planned cables as they are written, each port once."""

from __future__ import annotations

import csv
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.formats.fabrics import ndt
from ingest.options import Options
from registry.errors import InputError
from registry.model import IntendedWiring
from tests.support.inputs import WHEN, damaged, file, parse, read, survives

PLAN = read("formats/fabric.ndt").decode()


def plan_of(text: str, options: Options | None = None) -> IntendedWiring:
    plan = parse(ndt, text, options, path="plan").intended
    assert plan is not None
    return plan


def test_every_row_of_the_sample_is_a_cable() -> None:
    plan = plan_of(PLAN)
    rows = list(csv.reader(PLAN.splitlines()[1:]))
    columns = (plan.source, plan.source_port, plan.target, plan.target_port, plan.kind)
    assert [list(row) for row in zip(*columns, strict=True)] == rows
    assert (len(plan), plan.declared_at) == (96, WHEN)


def test_the_time_may_be_given() -> None:
    since = datetime(2025, 5, 5, tzinfo=UTC)
    assert plan_of(PLAN, Options(observed_at=since)).declared_at == since


@pytest.mark.parametrize(
    "text",
    [
        PLAN.replace("\n", "\r\n"),
        PLAN.replace("#Start", "Start"),
        PLAN.replace("#", "# ", 1),
        PLAN + "\n# the end\n",
        PLAN.replace(",Port 1,", ", Port 1 ,"),
        PLAN.replace("leaf08,Port 9", '"leaf08","Port 9"'),
    ],
    ids=["carriage returns", "no mark", "blank", "comment", "blanks", "quotes"],
)
def test_the_same_plan_in_another_dress(text: str) -> None:
    assert ndt.recognise(text, "x")
    assert plan_of(text) == plan_of(PLAN)


def test_columns_come_in_any_order_and_the_kind_may_be_missing() -> None:
    rows = [line.split(",") for line in PLAN.splitlines()]
    turned = "\n".join(",".join([row[3], row[0], row[1], row[2]]) for row in rows).replace("#", "")
    plan = plan_of(turned)
    assert plan.source == plan_of(PLAN).source
    assert set(plan.kind) == {""}


def test_a_cable_that_is_planned_from_both_ends_is_one() -> None:
    parsed = parse(ndt, PLAN + "spine01,Port 8,leaf08,Port 9,Data\n")
    assert parsed.intended == plan_of(PLAN)
    assert parsed.warnings == ("1 cable(s) are listed twice",)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("leaf08,Port 2,", "leaf08,Port 1,", "leaf08 Port 1 has another cable in line 2"),
        ("EndPort", "EndGate", "is missing"),
        ("LinkType", "EndPort", "a column is repeated"),
        ("leaf08,Port 2,", ",Port 2,", "a device or port is empty"),
        ("leaf08,Port 2,node0058,mlx5_0,Data", "leaf08,Port 2,node0058", "3: 3 cells, but there are 5"),
        ("leaf08,Port 9,spine01,Port 8", "leaf08,Port 9,leaf08,Port 9", "back to its own port"),
        ("leaf08,Port 2,", 'leaf08,"Port 2,', "invalid CSV"),
    ],
)
def test_what_cannot_be_is_shown(old: str, new: str, reason: str) -> None:
    assert old in PLAN
    with pytest.raises(InputError, match=reason) as caught:
        plan_of(PLAN.replace(old, new, 1))
    assert (caught.value.path, caught.value.line is not None) == ("plan", True)


def test_a_plan_of_nothing_is_an_error() -> None:
    with pytest.raises(InputError, match="no cables found"):
        plan_of(PLAN.splitlines()[0] + "\n")


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_arbitrary_bytes_only_ever_raise_input_errors(data: bytes) -> None:
    survives(ndt, [file(data)])
    survives(ndt, [file(PLAN.encode()[:100] + data)])


@settings(max_examples=200, deadline=None)
@given(damaged(PLAN.encode()))
def test_damaged_plans_only_ever_raise_input_errors(data: bytes) -> None:
    survives(ndt, [file(data)])
