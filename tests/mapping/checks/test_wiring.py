"""Planned against observed wiring: missing, unexpected and moved cables, found for every such change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.formats.fabrics import ndt
from ingest.options import Options
from mapping.checks.catalog import check
from mapping.checks.finding import Severity, Subject
from mapping.checks.wiring.differences import compare
from mapping.checks.wiring.findings import find
from mapping.checks.wiring.names import End
from mapping.checks.wiring.pairing import Wire
from registry.model import NO_PORT, Fabric, IntendedWiring, Links
from tests.support.infiniband_data import infiniband
from tests.support.inputs import file, read

TREE = infiniband("fattree2-64-traffic")
TEXT = read("formats/fabric.ndt").decode()


def plan_of(text: str) -> IntendedWiring:
    plan = ndt.parse([file(text)], Options()).intended
    assert plan is not None
    return plan


PLAN = plan_of(TEXT)


def rewired(cables: list[tuple[int, int]], fabric: Fabric = TREE) -> Fabric:
    """The fabric with only these cables, each given as the rows of its two directions."""
    rows = np.asarray([row for cable in cables for row in cable], np.int64)
    return replace(fabric, links=fabric.links.take(rows), tables=None)


def pairs(fabric: Fabric) -> list[tuple[int, int]]:
    """Rows of both directions of each cable."""
    links = fabric.links
    row = {
        end: k for k, end in enumerate(zip(links.source.tolist(), links.source_port.tolist(), strict=True))
    }
    ends = zip(links.target.tolist(), links.target_port.tolist(), strict=True)
    return [(k, row[end]) for k, end in enumerate(ends) if k < row[end]]


def turned(fabric: Fabric, first: tuple[int, int], second: tuple[int, int]) -> Fabric:
    """The fabric with the far ends of two cables exchanged."""
    links, columns = fabric.links, {}
    for end, rows in zip(("target", "source"), zip(first, second, strict=True), strict=True):
        for name in (end, f"{end}_port", f"{end}_adapter"):
            columns[name] = getattr(links, name).copy()
            columns[name][[*rows]] = columns[name][[*reversed(rows)]]
    return replace(fabric, links=Links(capacity=links.capacity, cables=links.cables, **columns), tables=None)


CABLES = pairs(TREE)


def test_the_sample_plan_is_the_wiring_of_the_fabric_that_it_was_made_for() -> None:
    assert len(CABLES) == TREE.cable_count == 96
    found = compare(PLAN, TREE)
    assert (found.matching, found.empty, found.unknown_devices) == (96, True, ())
    assert list(find(Subject(fabric=TREE, plan=PLAN))) == []


@settings(max_examples=40)
@given(st.sets(st.integers(0, 95), min_size=1, max_size=6))
def test_pulled_cables_are_missing(pulled: set[int]) -> None:
    found = compare(PLAN, rewired([cable for k, cable in enumerate(CABLES) if k not in pulled]))
    assert (len(found.missing), found.matching) == (len(pulled), 96 - len(pulled))
    assert [len(found.unexpected), len(found.swapped), len(found.moved)] == [0, 0, 0]


@settings(max_examples=40)
@given(st.sets(st.integers(1, 96), min_size=1, max_size=6))
def test_cables_that_no_line_plans_are_unexpected_between_planned_devices(forgotten: set[int]) -> None:
    lines = TEXT.splitlines()
    rows = [line.split(",") for k, line in enumerate(lines) if k and k not in forgotten]
    mentioned = {row[0] for row in rows} | {row[2] for row in rows}
    known = [{lines[k].split(",")[0], lines[k].split(",")[2]} <= mentioned for k in forgotten]
    found = compare(plan_of("\n".join(line for k, line in enumerate(lines) if k not in forgotten)), TREE)
    assert (len(found.unexpected), len(found.outside)) == (sum(known), len(known) - sum(known))
    assert found.matching == 96 - len(forgotten)
    assert [len(found.missing), len(found.swapped), len(found.moved)] == [0, 0, 0]


@settings(max_examples=40)
@given(st.integers(0, 95), st.integers(0, 95))
def test_two_cables_with_their_ends_exchanged_are_swapped(one: int, other: int) -> None:
    rows = [CABLES[one][0], CABLES[other][0]]
    near, far = TREE.links.source[rows].tolist(), TREE.links.target[rows].tolist()
    if one == other or far[0] == near[1] or far[1] == near[0]:
        return
    found = compare(PLAN, turned(TREE, CABLES[one], CABLES[other]))
    (mix,) = found.swapped
    assert (len(mix.planned), len(mix.found), found.matching) == (2, 2, 94)
    assert {end for wire in mix.planned for end in wire} == {end for wire in mix.found for end in wire}
    assert [len(found.missing), len(found.unexpected), len(found.moved)] == [0, 0, 0]


def test_a_cable_in_a_free_port_was_moved() -> None:
    plan = plan_of(TEXT.replace("leaf08,Port 9,spine01,Port 8", "leaf08,Port 9,spine01,Port 15"))
    found = compare(plan, TREE)
    (mix,) = found.moved
    assert str(mix.found[0]) == "leaf08:9 - spine01:8"
    assert str(mix.planned[0]) == "leaf08:9 - spine01:15"
    assert (found.matching, found.missing, found.unexpected, found.swapped) == (95, (), (), ())


def test_a_dead_spine_is_a_spines_cables() -> None:
    found = compare(PLAN, infiniband("fattree2-64-dead-spine"))
    assert len(found.missing) == 8
    assert len({wire.far.device for wire in found.missing}) == 1
    assert found.unknown_devices == (found.missing[0].far.device,) or found.unknown_devices == ()


def test_devices_that_the_fabric_does_not_have_are_named() -> None:
    found = compare(plan_of(TEXT.replace("node0057", "node9957")), TREE)
    assert found.unknown_devices == ("node9957",)
    (mix,) = found.moved
    assert mix.planned == (Wire(End("leaf08", "", 1), End("node9957", "mlx5_0", NO_PORT)),)
    assert [str(wire) for wire in mix.found] == ["leaf08:1 - node0057 mlx5_0:1"]


@pytest.mark.parametrize("label", ["Blade 3_Port 2/20", "slot 1 port 1", "ibp12s0"])
def test_a_port_that_is_not_understood_is_any_port_of_that_device(label: str) -> None:
    assert compare(plan_of(TEXT.replace("mlx5_0", label)), TREE).empty
    one, other = f"node0057,{label}", f"node0058,{label}"
    wrong = TEXT.replace("node0057,mlx5_0", other, 1).replace("node0058,mlx5_0", one, 1)
    assert not compare(plan_of(wrong), TREE).empty


def test_a_scan_without_ports_is_compared_by_how_many_cables_join_two_devices() -> None:
    links = TREE.links
    portless = Links.of(links.source, links.target, links.capacity, cables=links.cables)
    plain = replace(TREE, tables=None, links=portless)
    assert (plain.links.source_port == NO_PORT).all()
    assert compare(PLAN, plain).empty
    other = TEXT.replace("leaf08,Port 9,spine01", "leaf08,Port 9,spine02")
    other = other.replace("leaf08,Port 10,spine02,Port 8", "leaf08,Port 10,spine02,Port 9")
    found = compare(plan_of(other), plain)
    assert (len(found.missing), len(found.unexpected), found.matching) == (1, 1, 95)


def test_findings_describe_cables() -> None:
    swapped = turned(TREE, CABLES[0], CABLES[5])
    pulled = Subject(fabric=rewired(pairs(swapped)[:-1], swapped), plan=PLAN)
    texts = [finding.text for finding in find(pulled)]
    assert any(text.startswith("swapped: ") and " instead of " in text for text in texts)
    assert any(text.startswith("the planned cable ") and text.endswith(" is missing") for text in texts)
    extra = plan_of(TEXT.replace("leaf08,Port 9,spine01,Port 8,Data\n", ""))
    (finding,) = check(Subject(fabric=TREE, plan=extra), ["wiring"])
    assert (finding.severity, finding.check) == (Severity.NOTE, "wiring")
    assert finding.text.endswith("is not planned")
