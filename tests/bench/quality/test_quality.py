"""Reports of bounds, of chains and of threads; peers in the mapping benchmark, and what they are given."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from bench.quality import bounds, cores, members
from bench.quality.peers import __main__ as command
from bench.quality.peers import child, tools
from bench.quality.peers.files import (
    first_slots,
    guest_graph,
    halved,
    hierarchies,
    host_graph,
    host_groups,
    native_target,
    write_graph,
    write_metis,
)
from bench.quality.peers.measure import METRICS, best, geometric_mean, markdown, score, summary
from bench.quality.peers.tools import Answer, run
from bench.support.instances import SHIPPED, Contest, Shape, generated, on_all, read, recorded
from bench.support.structured import BUFFER, fft, halving, hpl, structured
from ingest.generate.direct import mesh, torus
from ingest.generate.stencils import shuffled, stencil
from ingest.generate.trees import extended_generalised_fat_tree
from mapping.placement.catalog import Chain
from mapping.placement.methods.baselines import in_order
from mapping.routing import shortest_paths
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Fabric, Profile
from tests.support.sure import sure

ABOUT = {"date": "now", "machine": {"processor": "p", "cores": 2}, "seed": 0}


def test_optima_are_those_of_a_ring_on_a_ring() -> None:
    """Eight neighbours each way on eight neighbours: 16 bytes times one hop, one byte on each cable."""
    fabric, rank = torus((8,)), np.arange(8)
    routes = shortest_paths.build(fabric, fabric.hosts)
    around = Profile.from_edges(np.r_[rank, (rank + 1) % 8], np.r_[(rank + 1) % 8, rank], np.ones(16))
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    best = bounds.optima(routes, around, allocation)
    byte = 1.0 / float(fabric.links.capacity[0])
    assert best == {"hop_bytes": 16.0, "congestion_seconds": byte, "network_congestion_seconds": byte}
    found = bounds.compared(routes, around, allocation, best)
    assert found["ratios"]["hop_bytes"]["gilmore-lawler"] == pytest.approx(1.0)
    rows = bounds.summary({"ring": found})
    assert rows["hop_bytes"]["geometric_mean"] == pytest.approx(1.0)
    assert sum(rows["hop_bytes"]["best_of"].values()) == rows["hop_bytes"]["instances"] == 1
    tight = {"cases": 1, "at_optimum": 1, "least": 1.0, "geometric_mean": 1.0}
    small = {"hop_bytes": {"gilmore-lawler": tight}}
    page = bounds.markdown({"date": "now", "instances": {"ring": found}, "summary": rows, "small": small})
    assert "| ring | 1.000 " in page
    assert "| hop_bytes | gilmore-lawler | 1 | 1 | 1.000 |" in page


def test_slots_of_one_host_are_alike() -> None:
    """Two hosts of four slots: the four edges within fours cost nothing, one edge between them 2 bytes."""
    fabric = torus((2,), slots=4)
    routes = shortest_paths.build(fabric, fabric.hosts)
    profile = Profile.from_edges([0, 2, 4, 6, 0], [1, 3, 5, 7, 1], [9.0] * 5, ranks=8)
    allocation = Allocation.of(fabric, fabric.hosts.tolist(), 4)
    assert bounds.optima(routes, profile, allocation)["hop_bytes"] == 0.0


def test_the_best_known_value_is_of_any_tool() -> None:
    ours = dict.fromkeys(METRICS, 3.0)
    peers = [{**ours, "hop_bytes": 2.0}, {"peer": "failed"}, {**ours, "congestion_seconds": None}]
    assert bounds.best_known({"ours": [ours], "peers": peers}) == {**ours, "hop_bytes": 2.0}


def test_drawn_traffic_is_the_same_for_a_seed() -> None:
    first, again, other = bounds.drawn(1), bounds.drawn(1), bounds.drawn(2)
    assert first.ranks == 8
    assert np.array_equal(first.bytes, again.bytes)
    assert not np.array_equal(first.bytes, other.bytes)


def test_two_threads_are_set_beside_one() -> None:
    found = {
        "a": {"hop-bytes": {"two": 9.0, "one": 10.0}, "congestion": {"two": 2.0, "one": 1.0}},
        "b": {"hop-bytes": {"two": 10.0, "one": 9.0}, "congestion": {"two": 0.0, "one": 0.0}},
    }
    means = {objective: cores.mean(found, objective) for objective in ("hop-bytes", "congestion")}
    assert means == pytest.approx({"hop-bytes": 1.0, "congestion": math.sqrt(2.0)})
    record = {**ABOUT, "geometric_mean_of_two_over_one": means, "instances": found}
    page = cores.markdown({**record, "seconds": {"two": 10.0, "one": 18.0}})
    assert "| a | 0.900 | 2.000 |" in page
    assert "| geometric mean | 1.000 | 1.414 |" in page


def test_every_chain_can_be_parsed() -> None:
    for text in (text for chains in members.CHAINS.values() for text in chains):
        assert str(Chain.parse(text)) == text


def test_a_chain_is_set_beside_the_default() -> None:
    slow, fast, *others = members.CHAINS["hop-bytes"]
    found = {
        name: {"hop-bytes": {members.DEFAULT: 10.0, slow: 20.0, fast: value, **dict.fromkeys(others, 40.0)}}
        for name, value in (("a", 5.0), ("b", 10.0))
    }
    summary = members.summary(found, "hop-bytes")
    rows = {row["chain"]: row for row in summary}
    means = {name: row["geometric_mean_over_default"] for name, row in rows.items()}
    assert (means[members.DEFAULT], means[slow], means[fast]) == (1.0, 2.0, pytest.approx(math.sqrt(0.5)))
    assert rows[members.DEFAULT]["best_on"] == 1
    assert (rows[fast]["best_on"], rows[fast]["least"], rows[fast]["most"]) == (2, ["a", 0.5], ["b", 1.0])
    page = members.markdown({**ABOUT, "seconds": 3.0, "summary": {"hop-bytes": summary}})
    assert f"| {fast} | 0.707 | 2 of 2 | 0.500 (a) | 1.000 (b) |" in page


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
    monkeypatch.setattr(tools, "WAITING", 1000)
    busy = run([*python, "while True: pass"], 0.5)
    assert busy.why == "not done in 0.5 s"
    assert busy.cpu_seconds < 2.5
    monkeypatch.setattr(tools, "WAITING", 1)
    assert run(["sleep", "600"], 0.2).why == "not done in 0.2 s"


def test_the_best_peer_is_found_for_each_metric_among_valid_results() -> None:
    values = {"a": (3.0, 1.0, 9.0), "b": (2.0, 2.0, 8.0), "c": (0.1, 0.1, 0.1)}
    peers = [{"peer": name, **dict(zip(METRICS, those, strict=True))} for name, those in values.items()]
    peers[0]["why"], peers[2]["why"] = "", "2 hosts with two ranks"
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


SMALL = on_all(torus((2, 4)), stencil((2, 4), 5))
OTHER = on_all(torus((2, 4)), shuffled(stencil((2, 4), 5), 1))


class Bench:
    """The command on one small instance, with other tools replaced by ranks in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, output: Path) -> None:
        self.runs, self.searches, self.contest, self.output = 0, 0, SMALL, output
        monkeypatch.setattr(command, "run_peers", self.run_peers)
        monkeypatch.setattr(command, "measure", self.measure)
        monkeypatch.setattr(command, "generated", dict)
        monkeypatch.setattr(command, "structured", lambda: {"torus2x4/stencil8": lambda: self.contest})

    def run_peers(self, contest: Contest, *rest: object) -> list[dict[str, Any]]:
        self.runs += 1
        return [{"peer": "in-order", **score(contest, in_order(8, contest.allocation)), "run": self.runs}]

    def measure(self, contest: Contest, limits: object, peers: list[dict[str, Any]]) -> dict[str, Any]:
        self.searches += 1
        best = {metric: {"value": 2.0, "peer": "x"} for metric in METRICS}
        return {"bounds": dict.fromkeys(METRICS, 1.0), "peers": peers, "best_peer": best, "ours": []}

    def __call__(self, *options: str) -> None:
        command.main(["--no-folder", "--output", str(self.output), *options])

    @property
    def kept(self) -> dict[str, Any]:
        (one,) = json.loads(command.peer_runs(self.output).read_text()).values()
        found: dict[str, Any] = one
        return found

    @property
    def instances(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.output.read_text())["instances"]
        return found


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    return Bench(monkeypatch, tmp_path / "peers.json")


def test_other_tools_are_run_alone_and_then_kept_if_asked(bench: Bench) -> None:
    bench("--peers-only")
    assert (bench.runs, bench.searches, bench.output.exists()) == (1, 0, False)
    bench("--keep-peers")
    assert (bench.runs, bench.searches) == (1, 1)
    (found,) = bench.instances.values()
    assert (found["peers"], found["peers_date"]) == (bench.kept["results"], bench.kept["date"])
    bench()
    assert (bench.runs, bench.kept["results"][0]["run"]) == (2, 2)


def test_kept_results_need_the_same_limit_and_instance(bench: Bench) -> None:
    bench("--peers-only")
    bench("--peers-only", "--keep-peers", "--peer-seconds", "5")
    assert (bench.runs, bench.kept["peer_seconds"]) == (2, 5.0)
    bench.contest = OTHER
    for _ in range(2):
        bench("--peers-only", "--keep-peers", "--peer-seconds", "5")
        assert bench.runs == 3
    expected = score(OTHER, in_order(8, OTHER.allocation))["hop_bytes"]
    assert np.isclose(bench.kept["results"][0]["hop_bytes"], expected)


def test_a_part_of_the_record_may_come_from_another_machine_and_limit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench()
    both = ["torus2x4/stencil8", "torus2x4/other"]
    monkeypatch.setattr(command, "structured", lambda: dict.fromkeys(both, lambda: SMALL))
    monkeypatch.setattr("bench.support.machine.machine", lambda: {"processor": "another", "cores": 4})
    bench("--only", "other", "--peer-seconds", "5")
    assert list(bench.instances) == both
    first, second = bench.instances.values()
    assert second["machine"]["processor"] == "another"
    assert first["machine"] != second["machine"]
    assert (first["peer_seconds"], second["peer_seconds"]) == (60.0, 5.0)
    assert "may take 5 or 60 s of processor time." in bench.output.with_suffix(".md").read_text()


def test_a_grid_is_cut_along_its_longest_side() -> None:
    # 4 x 6: columns in two halves of three, rows in two of two, the three columns, the two rows.
    arities, node = halved((4, 6))
    assert arities == (2, 2, 3, 2)
    assert node[:6].tolist() == [0, 6, 1, 7, 2, 8]
    assert node[[6, 12, 18]].tolist() == [12, 3, 15]
    assert sorted(node.tolist()) == list(range(24))


def test_a_level_costs_the_mean_distance_that_it_adds() -> None:
    fabric = torus((4,))
    (tree, in_order) = hierarchies(given := ring_on(fabric, 4, shape=Shape(sides=(4,))), given.allocation)
    # Neighbours are 1 hop apart; of two halves of a ring of four, two pairs are 2 and two 1 hop apart.
    assert tree.tleaf == in_order.tleaf == "tleaf 2 2 2 2 4\n"
    assert tree.inside_out == ("2:2", "4:6")
    assert tree.largest_distance == 6


def test_slots_are_the_leaves_of_their_host() -> None:
    given = ring_on(torus((2, 3), slots=2), 12, slots=2, shape=Shape(sides=(2, 3)))
    first, second = hierarchies(given, given.allocation)
    assert (first.kind, first.arities) == ("sides halved", (3, 2, 2))
    assert first.slot.tolist() == [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]
    assert (second.kind, second.arities) == ("hosts in order", (2, 3, 2))
    assert second.slot.tolist() == list(range(12))


def test_groups_of_a_machine_are_its_tree_and_uneven_slots_are_taken_in_order() -> None:
    fabric = extended_generalised_fat_tree((2, 3), (1, 1))
    given = ring_on(fabric, 6, shape=Shape(groups=(2,)))
    (tree,) = hierarchies(given, given.allocation)
    assert (tree.kind, tree.arities, tree.costs) == ("groups", (3, 2), (8, 8))
    given = ring_on(torus((4,), slots=2), 6, slots=[2, 2, 1, 1])
    (tree,) = hierarchies(given, given.allocation)
    assert (tree.kind, tree.arities) == ("slots in order", (2, 3))
    assert tree.slot.tolist() == list(range(6))


def test_a_metis_graph_numbers_vertices_from_one(tmp_path: Path) -> None:
    given = ring_on(torus((4,)), 3)
    write_metis(tmp_path / "g", guest_graph(given))
    assert (tmp_path / "g").read_text() == "3 3 001\n2 8 3 8\n1 8 3 8\n1 8 2 8\n"


def treematch(leaves: Sequence[int]) -> Callable[[list[str], float], Answer]:
    """Return what takes the place of a process of TreeMatch."""
    trees = iter(("tleaf 2 3 2 2 4\n", "tleaf 2 2 3 3 4\n"))

    def mapped(command: list[str], limit: float) -> Answer:
        _, graph, tree, out = map(Path, command)
        head, *rows = graph.read_text().splitlines()
        assert int(head.split()[0]) == len(rows) == 6, head
        assert tree.read_text() == next(trees)
        out.write_text("".join(f"{leaf}\n" for leaf in leaves))
        return Answer(tool="")

    return mapped


@pytest.fixture
def only_treematch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "program", lambda tool: tool if tool == "TreeMatch" else None)


@pytest.mark.usefixtures("only_treematch")
def test_leaves_become_slots_and_free_slots_are_ranks_without_traffic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "run", treematch(range(5, -1, -1)))
    given = ring_on(torus((2, 3)), 5, shape=Shape(sides=(2, 3)))
    first, _ = tools.tree_answers(given, given.allocation, ", all slots", tmp_path, 30.0)
    assert (first.tool, first.why) == ("TreeMatch (sides halved, all slots)", "")
    # Leaves are slots 0 3 1 4 2 5; rank r is on leaf 5 - r.
    assert sure(first.slot_of_rank).tolist() == [5, 2, 4, 1, 3]


def test_a_program_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREEMATCH", sys.executable)
    assert tools.program("TreeMatch") == sys.executable


@pytest.mark.usefixtures("only_treematch")
def test_a_prime_number_of_slots_has_no_groups(tmp_path: Path) -> None:
    given = ring_on(torus((5,)), 5)
    (answer,) = tools.tree_answers(given, given.allocation, "", tmp_path, 30.0)
    assert (answer.tool, answer.why) == ("TreeMatch", "5 slots form no equal groups")


@pytest.mark.usefixtures("only_treematch")
def test_an_answer_for_other_leaves_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "run", treematch([0, 1]))
    given = ring_on(torus((2, 3)), 6, shape=Shape(sides=(2, 3)))
    answer, *_ = tools.tree_answers(given, given.allocation, "", tmp_path, 30.0)
    assert answer.why == "no readable answer: 2 places of 6"


def test_weights_are_scaled_until_their_sum_can_be_counted() -> None:
    given = ring_on(torus((4,)), 3)
    (tree,) = hierarchies(given, given.allocation)
    heavy = csr_array(([1 << 30, 1, 1 << 30, 1], [1, 2, 0, 0], [0, 2, 3, 4]), shape=(3, 3))
    scaled = tools._scaled(heavy, tree)
    assert scaled.shape == (4, 4)
    assert scaled.indptr.tolist() == [0, 2, 3, 4, 4]
    assert tools.LARGEST_SUM * 0.99 < scaled.data.sum() * tree.largest_distance <= tools.LARGEST_SUM
    assert scaled.data.min() == 1


def test_hosts_are_grouped_into_at_most_so_many_compact_parts() -> None:
    given = ring_on(torus((4, 8)), 32, shape=Shape(sides=(4, 8)))
    # Cut to 4 x 4, 2 x 4, 2 x 2 and 1 x 2: sixteen groups of two hosts side by side.
    (groups,) = host_groups(given, given.allocation, 16)
    assert len(np.unique(groups)) == 16
    assert np.array_equal(groups.reshape(4, 8)[:, ::2], groups.reshape(4, 8)[:, 1::2])
    assert host_groups(given, given.allocation, 4).shape == (2, 32)


def test_the_distance_of_groups_is_the_mean_of_their_hosts() -> None:
    distances = np.array([[0.0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]])
    means = child._means(distances, np.array([0, 0, 1, 1]))
    assert means[0, 1] == means[1, 0] == 8  # (2 + 3 + 1 + 2) / 4 hops, four units each


class Steiner:
    """Stands for Mt-KaHyPar: keeps what it is asked, fills block after block; other calls return itself."""

    PresetType = SimpleNamespace(DEFAULT="default")

    def __init__(self, surplus: int = 0) -> None:
        self.asked: list[tuple[int, list[int]]] = []
        self.surplus = surplus

    def __getattr__(self, name: str) -> Callable[..., Steiner]:
        return lambda *given: self

    def set_individual_target_block_weights(self, weights: list[int]) -> None:
        self.weights = weights

    def create_graph(self, context: object, ranks: int, *rest: object) -> Steiner:
        self.ranks = ranks
        return self

    def create_target_graph(self, context: object, blocks: int, links: int, pairs: object, cost: Any) -> None:
        self.asked.append((self.ranks, cost))

    def get_partition(self) -> Any:
        filled = np.repeat(np.arange(len(self.weights)), self.weights)[: self.ranks]
        return np.r_[filled[: self.surplus] * 0, filled][: self.ranks]


def request(path: Path, given: Contest, groups: list[list[int]]) -> None:
    graph = guest_graph(given)
    hops = np.abs(np.arange(len(given.allocation))[:, None] - np.arange(len(given.allocation)))
    columns = {"indptr": graph.indptr, "indices": graph.indices, "weights": graph.data}
    columns |= {"distances": hops.astype(float), "slots": given.allocation.slots}
    in_groups = np.array(groups, np.int64).reshape(-1, len(given.allocation))
    np.savez(path / "request.npz", groups=in_groups, **columns)


def test_ranks_are_mapped_onto_groups_and_then_onto_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Steiner()
    monkeypatch.setattr(child, "import_module", lambda name: tool)
    request(tmp_path, ring_on(torus((4,), slots=2), 8, slots=2), [[1, 1, 0, 0]])
    # The first group in number is the second half of the hosts.
    assert child.mtkahypar(tmp_path, "DEFAULT").tolist() == [2, 2, 3, 3, 0, 0, 1, 1]
    assert tool.asked == [(8, [8]), (4, [4]), (4, [4])]


def test_a_group_with_too_many_ranks_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "import_module", lambda name: Steiner(surplus=1))
    request(tmp_path, ring_on(torus((4,)), 4), [[0, 0, 1, 1]])
    with pytest.raises(SystemExit, match="more ranks on a group of hosts than it has slots"):
        child.mtkahypar(tmp_path, "DEFAULT")
