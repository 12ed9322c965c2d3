"""Files for other tools, reading their answers, and the ratios that are reported of them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

from bench.quality.peers import process, tools
from bench.quality.peers.files import first_slots, guest_graph, host_graph, native_target, write_graph
from bench.quality.peers.measure import METRICS, best
from bench.quality.peers.process import Answer, run
from bench.quality.peers.table import geometric_mean, markdown, summary
from bench.support.instances import SHIPPED, Contest, Shape, generated, on_all, read, recorded
from bench.support.structured import BUFFER, fft, halving, hpl, structured
from ingest.generate.fat_trees import extended_generalised_fat_tree
from ingest.generate.stencils import stencil
from ingest.generate.tori import mesh, torus
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Fabric, Profile


def ring_on(fabric: Fabric, ranks: int, slots: int | list[int] = 1, shape: Shape | None = None) -> Contest:
    """A ring of ranks with 8 bytes to the next on all hosts of a machine."""
    rank = np.arange(ranks)
    return Contest(
        fabric=fabric,
        profile=Profile.from_edges(rank, (rank + 1) % ranks, np.full(ranks, 8.0), ranks=ranks),
        allocation=Allocation.of(fabric, fabric.hosts.tolist(), slots),
        shape=shape or Shape(),
    )


SIDES = (2, 3, 4)
RING = ring_on(torus(SIDES), 24, shape=Shape(sides=SIDES))
TWO_SLOTS = ring_on(torus(SIDES, slots=2), 48, 2)


def test_a_guest_graph_counts_both_directions_and_keeps_small_weights() -> None:
    profile = Profile.from_edges([0, 1, 2], [1, 0, 0], [3.0, 4.0, 1e-9], ranks=3)
    assert guest_graph(on_all(torus((3,)), profile)).todense().tolist() == [[0, 7, 1], [7, 0, 0], [1, 0, 0]]


def test_a_scotch_graph_names_vertices_arcs_and_weights(tmp_path: Path) -> None:
    """Scotch user's manual, centralized graph files: version, counts, base and flags, then degrees."""
    write_graph(tmp_path / "g", guest_graph(RING))
    lines = (tmp_path / "g").read_text().splitlines()
    assert lines[:4] == ["0", "24\t48", "0\t010", "2\t8\t1\t8\t23"]


def line_on(fabric: Fabric, **shape: Any) -> Contest:
    """A line of as many ranks as the machine has hosts."""
    return on_all(fabric, stencil((len(fabric.hosts), 1), 5), **shape)


@pytest.mark.parametrize(
    ("given", "target"),
    [
        (RING, "torus3D 4 3 2\n"),  # the fastest coordinate first
        (line_on(mesh((6, 4)), sides=(6, 4), wraps=False), "mesh2D 4 6\n"),
        (line_on(mesh((2, 3, 2, 2)), sides=(2, 3, 2, 2), wraps=False), "meshXD 4 2 2 3 2\n"),
        (line_on(torus((2,) * 6), sides=(2,) * 6), "hcub 6\n"),
        (line_on(torus((2,) * 6), sides=(2, 2, 2, 2, 4)), "torusXD 5 4 2 2 2 2\n"),
        (line_on(torus((2,) * 6), sides=(1,) * 6), None),  # too many dimensions
        (TWO_SLOTS, None),
        (ring_on(torus(SIDES), 20, shape=Shape(sides=SIDES)), None),  # free hosts
        # Hosts of a leaf are 2 links apart, of two leaves 4; a link is four units.
        (line_on(extended_generalised_fat_tree((2, 3), (1, 1)), groups=(2,)), "tleaf 2 3 8 2 8\n"),
    ],
)
def test_scotch_is_given_a_grid_or_a_tree_if_all_slots_of_one_are_used(
    given: Contest, target: str | None
) -> None:
    assert native_target(given) == target


def test_a_host_of_several_slots_becomes_vertices_that_hang_on_it() -> None:
    graph, vertex = host_graph(TWO_SLOTS, TWO_SLOTS.allocation)
    distance = shortest_path(graph, unweighted=True)[np.ix_(vertex, vertex)]
    hops = build_routes("shortest-paths", TWO_SLOTS.fabric, TWO_SLOTS.allocation.hosts).distances
    assert graph.shape[0] == 24 + 48
    expected = np.kron(hops, np.ones((2, 2))) + 2
    np.fill_diagonal(expected, 0)
    assert np.array_equal(distance, expected)


def test_the_first_slots_are_those_of_ranks_in_order() -> None:
    fabric = torus((4,), slots=5)
    first = first_slots(Allocation.of(fabric, [3, 1, 2], [2, 3, 5]), 4)
    assert (first.hosts.tolist(), first.slots.tolist()) == ([3, 1], [2, 2])


def scotch(terminal: Callable[[int], int]) -> Callable[[list[str], float], Answer]:
    """Return what takes the place of a process of Scotch, which lists the last rank first."""

    def mapped(command: list[str], limit: float) -> Answer:
        guest, _, out = map(Path, command[1:])
        count = int(guest.read_text().split()[1])
        rows = [f"{rank} {terminal(rank)}\n" for rank in reversed(range(count))]
        out.write_text(f"{count}\n" + "".join(rows))
        return Answer(tool="")

    return mapped


@pytest.mark.parametrize("shared", [False, True])
def test_an_answer_is_read_by_vertex_and_refused_where_ranks_share_a_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    monkeypatch.setattr(tools, "run", scotch(lambda rank: 0 if shared else (rank + 5) % 24))
    monkeypatch.setattr(tools, "SCOTCH_OPTIONS", ((),))
    monkeypatch.setattr(tools, "missing", lambda: {"PyScotch": "", "Mt-KaHyPar": ""})
    monkeypatch.setattr(shutil, "which", lambda name: None)
    native, graph = tools.answers(RING, tmp_path, 30.0)
    assert "amk_grf is missing" in graph.why
    slots = None if native.slot_of_rank is None else native.slot_of_rank.tolist()
    assert slots == (None if shared else [(rank + 5) % 24 for rank in range(24)])
    assert native.why == ("23 ranks on a slot that another has" if shared else "")


def test_a_process_has_one_thread_and_limits_of_time(
    processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = [sys.executable, "-c"]
    check = "import os, sys; print(file=sys.stderr); sys.exit('threads: ' + os.environ['OMP_NUM_THREADS'])"
    assert run([*python, check], 30.0).why == "exit 1: threads: 1"
    monkeypatch.setattr(process, "WAITING", 1000)
    busy = run([*python, "while True: pass"], 0.5)
    assert busy.why == "not done in 0.5 s"
    assert busy.cpu_seconds < 2.5
    monkeypatch.setattr(process, "WAITING", 1)
    assert run(["sleep", "600"], 0.2).why == "not done in 0.2 s"


def test_the_best_peer_is_found_for_each_metric_among_valid_results() -> None:
    peers: list[dict[str, Any]] = [
        {"peer": name, **dict(zip(METRICS, values, strict=True)), "why": why}
        for name, values, why in (
            ("a", (3.0, 1.0, 9.0), ""),
            ("b", (2.0, 2.0, 8.0), ""),
            ("c", (0.1, 0.1, 0.1), "2 hosts with two ranks"),
        )
    ]
    del peers[1]["why"]
    assert [best(peers)[metric]["peer"] for metric in METRICS] == ["b", "a", "b"]


def found(peer: float, bound: float, ours: float) -> dict[str, Any]:
    return {
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {"processor": "p", "cores": 2},
        "peer_seconds": 60.0,
        "bounds": dict.fromkeys(METRICS, bound),
        "best_peer": {metric: {"value": peer, "peer": "x"} for metric in METRICS},
        "peers": [{"peer": "y", "why": "not done in 60 s"}],
        "ours": [
            {"objective": objective, "seconds": 10.0, **dict.fromkeys(METRICS, ours)}
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
    missing = {"Scotch gmap": "apt-get install scotch"}
    record = {"date": "2026-01-01", "missing": missing, "all_hosts": [], "instances": instances}
    page = markdown({**record, "summary": summary(instances)})
    assert "- Scotch gmap: not installed (apt-get install scotch)" in page
    assert "- torus/ring, y: not done in 60 s" in page
    assert "A process of another tool may take 60 s of processor time." in page
    assert "1.200 (torus/ring) | 1 |" in page
    assert "2026-01-01; p, 2 cores. " in page


def test_a_geometric_mean_of_nothing_is_none() -> None:
    assert geometric_mean([]) is None
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)


def test_shipped_instances_come_with_what_tools_know_of_them() -> None:
    plain, known = read(SHIPPED, "torus8", "fem_512"), recorded(SHIPPED, "torus8", "fem_512")
    assert known.shape.sides == (8, 8, 8)
    assert np.array_equal(plain.allocation.hosts, known.allocation.hosts)


MADE = generated() | structured()


@pytest.mark.parametrize("name", [name for name in MADE if "kkt" not in name and "crankshaft" not in name])
def test_made_instances_fit_their_hosts(name: str) -> None:
    given = MADE[name]()
    given.allocation.require(given.profile.ranks)
    one_slot_each = int(given.allocation.slots.max()) == 1
    native = native_target(given)
    assert (native is not None) == bool((given.shape.sides and one_slot_each) or given.shape.groups)
    if name in structured() and given.shape.sides:
        some = np.unique(np.linspace(0, len(given.allocation) - 1, 300).astype(int))
        place = np.stack(np.unravel_index(some, given.shape.sides), axis=1)
        step = np.abs(place[:, None] - place)
        around = np.minimum(step, np.array(given.shape.sides) - step) if given.shape.wraps else step
        hops = build_routes("shortest-paths", given.fabric, given.allocation.hosts[some]).distances
        assert np.array_equal(hops, around.sum(axis=2))


@pytest.mark.parametrize(
    ("profile", "rank", "sent"),
    [
        # Ranks 0 1 2 / 3 4 5: a column of two shares the buffer by halves, a row of three by thirds.
        (fft((2, 3)), 4, {1: BUFFER / 2, 3: BUFFER / 3, 5: BUFFER / 3}),
        # The furthest partner gets most.
        (halving(8), 1, {0: BUFFER / 4, 3: BUFFER / 2, 5: BUFFER}),
        # Ranks 0 1 2 / 3 4 5: a ring of three passes on two thirds of a panel, two of a column swap all.
        (hpl(2, 3), 3, {4: BUFFER / 2 * 2 / 3, 0: BUFFER / 3}),
    ],
    ids=["fft", "halving", "hpl"],
)
def test_collectives_on_a_grid_send_as_by_hand(profile: Profile, rank: int, sent: dict[int, float]) -> None:
    ends = zip(profile.sender.tolist(), profile.partner.tolist(), profile.bytes.tolist(), strict=True)
    assert {to: size for one, to, size in ends if one == rank} == pytest.approx(sent)
