"""Files for other tools, reading their answers, and the ratios that are reported of them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

from bench.quality.peers import tools
from bench.quality.peers.files import first_slots, guest_graph, host_graph, native_target, write_graph
from bench.quality.peers.measure import best
from bench.quality.peers.table import geometric_mean, markdown, summary
from bench.support.instances import SHIPPED, Contest, Shape, generated, read, recorded
from bench.support.structured import BUFFER, fft, halving, hpl, structured
from ingest.generate.fat_trees import extended_generalised_fat_tree
from ingest.generate.stencils import stencil
from ingest.generate.tori import mesh, torus
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Profile


def contest(slots: int = 1, hosts: int | None = None) -> Contest:
    """A 2 x 3 x 4 torus and a ring of as many ranks as the first hosts have slots."""
    fabric = torus((2, 3, 4), slots=slots)
    ranks = 24 if hosts is None else hosts
    rank = np.arange(ranks)
    profile = Profile.from_edges(rank, (rank + 1) % ranks, np.full(ranks, 8.0), ranks=ranks)
    return Contest(
        fabric=fabric,
        profile=profile,
        allocation=Allocation.of(fabric, fabric.hosts.tolist(), slots),
        shape=Shape(sides=(2, 3, 4)) if slots == 1 else Shape(),
    )


def test_a_guest_graph_counts_both_directions_and_keeps_small_weights() -> None:
    profile = Profile.from_edges([0, 1, 2], [1, 0, 0], [3.0, 4.0, 1e-9], ranks=3)
    fabric = torus((3,))
    graph = guest_graph(Contest(fabric=fabric, profile=profile, allocation=Allocation.of(fabric, [0, 1, 2])))
    assert graph.todense().tolist() == [[0, 7, 1], [7, 0, 0], [1, 0, 0]]


def test_a_scotch_graph_names_vertices_arcs_and_weights(tmp_path: Path) -> None:
    """Scotch user's manual, centralized graph files: version, counts, base and flags, then degrees."""
    write_graph(tmp_path / "g", guest_graph(contest()))
    lines = (tmp_path / "g").read_text().splitlines()
    assert lines[:3] == ["0", "24\t48", "0\t010"]
    assert lines[3] == "2\t8\t1\t8\t23"


def test_a_torus_is_given_to_scotch_with_the_fastest_coordinate_first() -> None:
    assert native_target(contest()) == "torus3D 4 3 2\n"


@pytest.mark.parametrize(
    ("sides", "target"), [((6, 4), "mesh2D 4 6\n"), ((2, 3, 2, 2), "meshXD 4 2 2 3 2\n")]
)
def test_a_mesh_is_not_given_to_scotch_as_a_torus(sides: tuple[int, ...], target: str) -> None:
    fabric = mesh(sides)
    given = Contest(
        fabric=fabric,
        profile=stencil((24, 1), 5),
        allocation=Allocation.of(fabric, fabric.hosts.tolist()),
        shape=Shape(sides=sides, wraps=False),
    )
    assert native_target(given) == target


def test_a_hypercube_and_a_torus_of_too_many_dimensions_are_told_apart() -> None:
    fabric = torus((2,) * 6)
    profile = stencil((64, 1), 5)
    for sides, target in (
        ((2,) * 6, "hcub 6\n"),
        ((2, 2, 2, 2, 4), "torusXD 5 4 2 2 2 2\n"),
        ((1,) * 6, None),
    ):
        given = Contest(
            fabric=fabric,
            profile=profile,
            allocation=Allocation.of(fabric, fabric.hosts.tolist()),
            shape=Shape(sides=sides),
        )
        assert native_target(given) == target


def test_hosts_with_several_slots_or_free_ones_have_no_native_torus() -> None:
    assert native_target(contest(slots=2, hosts=48)) is None
    assert native_target(contest(hosts=20)) is None


def test_levels_of_a_tree_cost_what_they_add_to_the_distance() -> None:
    fabric = extended_generalised_fat_tree((2, 3), (1, 1))
    profile = stencil((2, 3), 5)
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    given = Contest(fabric=fabric, profile=profile, allocation=allocation, shape=Shape(groups=(2,)))
    # Hosts of a leaf are 2 links apart, of two leaves 4; a link is four units.
    assert native_target(given) == "tleaf 2 3 8 2 8\n"


def test_a_host_of_several_slots_becomes_vertices_that_hang_on_it() -> None:
    given = contest(slots=2, hosts=48)
    graph, vertex = host_graph(given, given.allocation)
    distance = shortest_path(graph, unweighted=True)[np.ix_(vertex, vertex)]
    hops = build_routes("shortest-paths", given.fabric, given.allocation.hosts).distances
    assert graph.shape[0] == 24 + 48
    expected = np.kron(hops, np.ones((2, 2))) + 2
    np.fill_diagonal(expected, 0)
    assert np.array_equal(distance, expected)


def test_the_first_slots_are_those_of_ranks_in_order() -> None:
    fabric = torus((4,), slots=5)
    allocation = Allocation.of(fabric, [3, 1, 2], [2, 3, 5])
    first = first_slots(allocation, 4)
    assert (first.hosts.tolist(), first.slots.tolist()) == ([3, 1], [2, 2])


SCRIPT = """
import sys
count = int(open(sys.argv[1]).read().split()[1])
offset = int(sys.argv[-1])
with open(sys.argv[3], "w") as out:
    print(count, file=out)
    for rank in reversed(range(count)):
        print(rank, (rank + offset) % 24 if offset else 0, file=out)
"""


def fake(path: Path, name: str, offset: int) -> str:
    """A tool that puts rank r on terminal r + offset, or all on 0."""
    script = path / f"{name}.py"
    script.write_text(SCRIPT)
    tool = path / name
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$1" "$2" "$3" {offset}\n')
    tool.chmod(0o755)
    return str(tool)


@pytest.mark.parametrize(("offset", "valid"), [(5, True), (0, False)])
def test_an_answer_is_read_by_vertex_and_refused_where_ranks_share_a_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: int, valid: bool
) -> None:
    (tmp_path / "bin").mkdir()
    mapper = fake(tmp_path / "bin", "gmap", offset)
    monkeypatch.setattr(tools, "gmap", lambda: mapper)
    monkeypatch.setattr(tools, "SCOTCH_OPTIONS", ((),))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(tools, "missing", lambda: {"PyScotch": "", "Mt-KaHyPar": ""})
    native, graph = tools.answers(contest(), tmp_path, 30.0)
    assert "amk_grf is missing" in graph.why
    if valid:
        assert native.slot_of_rank is not None
        assert native.slot_of_rank.tolist() == [(rank + 5) % 24 for rank in range(24)]
    else:
        assert native.slot_of_rank is None
        assert native.why == "23 ranks on a slot that another has"


def test_a_tool_that_takes_too_long_or_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, broken = tmp_path / "slow", tmp_path / "broken"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    broken.write_text("#!/bin/sh\necho no such thing >&2\nexit 3\n")
    whys = []
    for tool, limit in ((slow, 0.2), (broken, 30.0)):
        tool.chmod(0o755)
        monkeypatch.setattr(tools, "gmap", lambda tool=tool: str(tool))
        monkeypatch.setattr(tools, "SCOTCH_OPTIONS", ((),))
        monkeypatch.setattr(tools, "missing", lambda: {"PyScotch": "", "Mt-KaHyPar": ""})
        monkeypatch.setattr(shutil, "which", lambda name: None)
        whys.append(next(tools.answers(contest(), tmp_path, limit)).why)
    assert whys == ["not done in 0.2 s", "exit 3: no such thing"]


def test_the_best_peer_is_found_for_each_metric_among_valid_results() -> None:
    peers: list[dict[str, Any]] = [
        {
            "peer": "a",
            "congestion_seconds": 3.0,
            "network_congestion_seconds": 1.0,
            "hop_bytes": 9.0,
            "why": "",
        },
        {"peer": "b", "congestion_seconds": 2.0, "network_congestion_seconds": 2.0, "hop_bytes": 8.0},
        {
            "peer": "c",
            "why": "2 hosts with two ranks",
            "congestion_seconds": 0.1,
            "hop_bytes": 0.1,
            "network_congestion_seconds": 0.1,
        },
    ]
    found = best(peers)
    assert {metric: one["peer"] for metric, one in found.items()} == {
        "congestion_seconds": "b",
        "network_congestion_seconds": "a",
        "hop_bytes": "b",
    }


def found(peer: float, bound: float, ours: float) -> dict[str, Any]:
    metrics = ("congestion_seconds", "network_congestion_seconds", "hop_bytes")
    return {
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {"processor": "p", "cores": 2},
        "peer_seconds": 60.0,
        "bounds": dict.fromkeys(metrics, bound),
        "best_peer": {metric: {"value": peer, "peer": "x"} for metric in metrics},
        "peers": [{"peer": "y", "why": "not done in 60 s"}],
        "ours": [
            {"objective": objective, "seconds": 10.0, **dict.fromkeys(metrics, ours)}
            for objective in ("congestion", "hop-bytes")
        ],
    }


def test_congestion_counts_only_where_a_peer_is_above_the_bound() -> None:
    rows = summary({"open": found(10.0, 5.0, 4.0), "closed": found(10.0, 9.9, 10.0)})
    by_metric = {row["metric"]: row for row in rows}
    worst = by_metric["congestion_seconds"]
    assert (worst["instances"], worst["geometric_mean"]) == (1, pytest.approx(0.4))
    assert (worst["at_bound"], worst["at_bound_met"], worst["above_1"]) == (1, 1, 0)
    assert by_metric["hop_bytes"]["geometric_mean"] == pytest.approx(0.4**0.5)
    assert (by_metric["hop_bytes"]["largest"], by_metric["hop_bytes"]["largest_of"]) == (1.0, "closed")


def test_results_that_are_worse_with_more_time_are_named() -> None:
    one, other = found(10.0, 5.0, 4.0), found(10.0, 5.0, 4.0)
    for instance, longer in ((one, 4.03), (other, 4.05)):
        instance["ours"] += [{**run, "seconds": 30.0, "hop_bytes": longer} for run in instance["ours"]]
    rows = {(row["metric"], row["seconds"]): row for row in summary({"a": one, "b": other})}
    assert rows["hop_bytes", 30.0]["worse_with_time"] == ["b"]
    assert rows["hop_bytes", 10.0]["worse_with_time"] == []


def test_a_page_names_tools_that_gave_nothing() -> None:
    instances = {"torus/ring": found(10.0, 5.0, 12.0)}
    record = {
        "date": "2026-01-01",
        "missing": {"Scotch gmap": "apt-get install scotch"},
        "summary": summary(instances),
        "all_hosts": [],
        "instances": instances,
    }
    page = markdown(record)
    assert "- Scotch gmap: not installed (apt-get install scotch)" in page
    assert "- torus/ring, y: not done in 60 s" in page
    assert "A process of another tool may take 60 s of processor time." in page
    assert "1.200 (torus/ring) | 1 |" in page
    assert "2026-01-01; p, 2 cores. " in page


def test_a_geometric_mean_of_nothing_is_none() -> None:
    assert geometric_mean([]) is None
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)


def test_shipped_instances_come_with_what_tools_are_told_of_them() -> None:
    plain, told = read(SHIPPED, "torus8", "fem_512"), recorded(SHIPPED, "torus8", "fem_512")
    assert told.shape.sides == (8, 8, 8)
    assert np.array_equal(plain.allocation.hosts, told.allocation.hosts)


MADE = generated() | structured()
QUICK = [name for name in MADE if not any(word in name for word in ("kkt", "crankshaft"))]


@pytest.mark.parametrize("name", QUICK)
def test_generated_instances_fit_their_hosts(name: str) -> None:
    given = MADE[name]()
    given.allocation.require(given.profile.ranks)
    one_slot_each = int(given.allocation.slots.max()) == 1
    native = native_target(given)
    assert (native is not None) == bool((given.shape.sides and one_slot_each) or given.shape.groups)


@pytest.mark.parametrize("name", [name for name in structured() if "irregular" not in name])
def test_the_sides_of_structured_instances_are_those_of_their_hosts(name: str) -> None:
    given = structured()[name]()
    place = np.stack(np.unravel_index(np.arange(len(given.allocation)), given.shape.sides), axis=1)
    step = np.abs(place[:, None] - place)
    around = np.minimum(step, np.array(given.shape.sides) - step) if given.shape.wraps else step
    hops = build_routes("shortest-paths", given.fabric, given.allocation.hosts).distances
    assert np.array_equal(hops, around.sum(axis=2))


def traffic(profile: Profile) -> dict[tuple[int, int], float]:
    return {
        (int(one), int(other)): float(size)
        for one, other, size in zip(profile.sender, profile.partner, profile.bytes, strict=True)
    }


def test_a_transform_on_a_grid_transposes_rows_and_columns() -> None:
    # Ranks 0 1 2 / 3 4 5: a column of two shares the buffer by halves, a row of three by thirds.
    sent = traffic(fft((2, 3)))
    assert {other: size for (one, other), size in sent.items() if one == 4} == {
        1: pytest.approx(BUFFER / 2),
        3: pytest.approx(BUFFER / 3),
        5: pytest.approx(BUFFER / 3),
    }


def test_halving_sends_most_to_the_furthest_partner() -> None:
    sent = traffic(halving(8))
    assert {other: size for (one, other), size in sent.items() if one == 1} == {
        0: BUFFER / 4,
        3: BUFFER / 2,
        5: BUFFER,
    }


def test_panels_pass_around_rows_and_swaps_cross_columns() -> None:
    # Ranks 0 1 2 / 3 4 5: a ring of three passes on two thirds of a panel, two of a column swap all.
    sent = traffic(hpl(2, 3))
    assert {other: size for (one, other), size in sent.items() if one == 3} == {
        4: pytest.approx(BUFFER / 2 * 2 / 3),
        0: pytest.approx(BUFFER / 3),
    }
