"""Declared layouts of AI training, NCCL's graphs and logs, and reports that tell no pairs of ranks."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.profiles.ai_layout import AI_LAYOUT
from ingest.formats.profiles.nccl import NCCL_GRAPH, NCCL_LOG
from ingest.formats.profiles.otf2 import DARSHAN, MPIP
from ingest.generate.collectives import DIMENSIONS, AiLayout, ai_layout
from ingest.options import Options
from ingest.pipeline import plan
from registry.errors import InputError, InvalidValue
from tests.support.inputs import DATA, bytes_of, file, parse, profile_of, read, refusal


@given(st.data())
def test_ranks_that_differ_along_one_dimension_alone_talk_and_no_others(data: st.DataObject) -> None:
    """Against a plain loop over places."""
    sizes = {name: data.draw(st.integers(1, 3)) for name in DIMENSIONS}
    order = data.draw(st.permutations(DIMENSIONS))
    given_bytes = {"tensor": 3.0, "context": 5.0, "data": 7.0, "pipeline": 11.0}
    places = list(product(*(range(sizes[name]) for name in reversed(order))))
    number = {
        tuple(dict(zip(reversed(order), place, strict=True))[name] for name in DIMENSIONS): rank
        for rank, place in enumerate(places)
    }
    expected: dict[tuple[int, int], float] = {}

    def add(a: tuple[int, ...], b: tuple[int, ...], size: float) -> None:
        if number[a] != number[b]:
            pair = number[a], number[b]
            expected[pair] = expected.get(pair, 0) + size

    for place in number:
        for axis, name in enumerate(DIMENSIONS):
            k = sizes[name]
            step = list(place)
            step[axis] = (place[axis] + 1) % k
            after = tuple(step)
            if name in ("tensor", "data"):
                add(place, after, 2 * given_bytes[name] * (k - 1) / k)
            elif name == "context":
                add(place, after, given_bytes[name])
            elif place[axis] + 1 < k:
                add(place, after, given_bytes[name])
                add(after, place, given_bytes[name])
    options: dict[str, Any] = {f"{name}_bytes": size for name, size in given_bytes.items()} | sizes
    made = ai_layout(AiLayout(order=order, **options))
    found = bytes_of(made)
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(size) for pair, size in expected.items())


def test_expert_groups_are_neighbours_among_the_data_parallel_ranks() -> None:
    made = bytes_of(ai_layout(AiLayout(tensor=2, data=4, expert=2, expert_bytes=100, expert_data_bytes=10)))
    tokens = {pair for pair, size in made.items() if size == 50}
    assert tokens == {(0, 2), (2, 0), (1, 3), (3, 1), (4, 6), (6, 4), (5, 7), (7, 5)}
    gradients = {pair for pair, size in made.items() if size == 10}
    assert gradients == {(0, 4), (4, 0), (1, 5), (5, 1), (2, 6), (6, 2), (3, 7), (7, 3)}


def test_interleaved_stages_close_the_ring_and_domains_can_be_left_out() -> None:
    assert (0, 2) in bytes_of(ai_layout(AiLayout(pipeline=3, pipeline_bytes=1, interleaved=True)))
    assert (0, 2) not in bytes_of(ai_layout(AiLayout(pipeline=3, pipeline_bytes=1)))
    left = bytes_of(
        ai_layout(AiLayout(tensor=4, data=2, tensor_bytes=1, data_bytes=8, domain=4, keep_inside=False))
    )
    assert left == {(a, (a + 4) % 8): 8.0 for a in range(8)}


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("tensor", {"tensor": 0}),
        ("expert", {"data": 4, "expert": 3}),
        ("order", {"order": ("tensor", "data", "pipeline")}),
        ("domain", {"tensor": 4, "domain": 3}),
        ("data_bytes", {"data": 2, "data_bytes": float("inf")}),
    ],
)
def test_a_layout_that_does_not_fit_is_refused(field: str, values: dict[str, object]) -> None:
    with pytest.raises(InvalidValue) as caught:
        ai_layout(AiLayout(**values))  # type: ignore[arg-type]
    assert caught.value.field == f"ai_layout.{field}"


def test_a_declared_layout_is_the_generators() -> None:
    report = plan([DATA / "profiles/layout.toml"])
    made = ai_layout(AiLayout(
        tensor=8, data=4, pipeline=2, expert=2,
        tensor_bytes=4e9, data_bytes=2e9, pipeline_bytes=5e8, expert_bytes=1e8, domain=8,
    ))  # fmt: skip
    (profile,) = report.profiles
    assert bytes_of(profile) == bytes_of(made)
    assert (profile.name, profile.source, profile.ranks) == ("moe-64", "ai-layout", 64)
    assert any("of the bytes stay within NVLink domains of 8 ranks" in warning for warning in report.warnings)
    assert parse(AI_LAYOUT, TEXT.replace("domain = 8", "")).warnings == ()


TEXT = read("profiles/layout.toml").decode()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("ranks = 64", "ranks = 32", "ranks is 32, but tensor 8 x context 1 x data 4 x pipeline 2 is 64"),
        ("data = 2e9", "", "bytes.data is missing: data is 4"),
        ("expert = 2", "expert = 3", "must divide data"),
        ("tensor = 8", "tensor = 8.5", "parallel.tensor must be a whole number"),
        ("tensor = 8", "tensor = true", "parallel.tensor must be a whole number"),
        ("tensor = 8", "tensro = 8", "no key parallel.tensro; known: tensor, "),
        ('"ring"', '"rings"', "algorithm.data must be one of ring"),
        ("domain = 8", "domain = 7", "must divide the 64 ranks"),
        ("[nvlink]", "[nvswitch]", "nvswitch"),
        ('"context", ', "", "must name tensor, context"),
        ("pipeline = 5e8", "pipeline = -1", "bytes.pipeline must be a number from 0 on"),
        ("pipeline = 5e8", "pipeline = inf", "bytes.pipeline must be a number from 0 on"),
        ("[parallel]", "parallel = 3\n[x]", "parallel must be a table"),
        ("ranks = 64", "ranks = ", "invalid TOML"),
    ],
)
def test_faults_of_a_declared_layout_are_named(old: str, new: str, reason: str) -> None:
    assert reason in refusal(AI_LAYOUT, TEXT.replace(old, new, 1)).reason
    assert refusal(AI_LAYOUT, "[parallel]\ntensor = = 8\n").line == 2


# --- NCCL -----------------------------------------------------------------------------------------------


def test_rings_go_round_trees_both_ways_and_other_patterns_are_counted() -> None:
    report = plan([DATA / "profiles/nccl_graph.xml"])
    rings = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 3), (3, 2), (2, 1), (1, 0)]
    assert bytes_of(report.profiles[0]) == dict.fromkeys(rings, 1.0)
    assert report.profiles[0].source == "nccl-graph, rings"
    assert any("no bytes and one node" in warning for warning in report.warnings)
    assert any("2 channels of other patterns than rings" in warning for warning in report.warnings)
    tree = [(1, 0), (0, 1), (0, 3), (3, 0), (3, 2), (2, 3)]
    found = profile_of(NCCL_GRAPH, GRAPH, Options(collectives="tree"))
    assert bytes_of(found) == dict.fromkeys(tree, 1.0)
    error = refusal(NCCL_GRAPH, GRAPH, Options(collectives="direct"))
    assert "rings and trees, not direct" in error.reason
    parsed = parse(NCCL_GRAPH, read("profiles/nccl_graph_nets.xml"))
    assert bytes_of(parsed.profiles[0]) == {(0, 1): 1.0}
    assert any("2 links through network devices" in warning for warning in parsed.warnings)


GRAPH = read("profiles/nccl_graph.xml").decode()


def log(*lines: str) -> str:
    begin = "node1:50292:50292 [0] NCCL INFO "
    return "".join(f"{begin}{line}\n" for line in ("NCCL version 2.20.5+cuda12.2", *lines))


RINGS = log(
    "Channel 00/02 :    0   1   2   3", "Channel 01/02 :    0   3   1   2", "P2P Chunksize set to 131072"
)
TREES = log(
    "Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1",
    "Trees [0] 2/3/-1->1->0 [1] 0/2/-1->1->-1",
    "Trees [0] -1/-1/-1->2->1 [1] 3/-1/-1->2->1",
    "Trees [0] -1/-1/-1->3->1 [1] -1/-1/-1->3->2",
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GRAPH.replace('dev="1"', 'dev="0"', 1), "is repeated"),
        (GRAPH.replace('<gpu dev="1"/>', "<gpu/>", 1), "without the number"),
        (GRAPH.replace('dev="1"', 'dev="99999999"', 1), "without the number"),
        (GRAPH[:500], "invalid XML"),
        ('<graphs version="1"><graph id="0" pattern="4" nchannels="0"/></graphs>', "no channel is a ring"),
        ("<!DOCTYPE g [<!ENTITY a 'b'>]>" + GRAPH, "unsupported XML"),
        ("<graph nchannels='1'/>", "expected the graphs of NCCL"),
    ],
)
def test_graphs_that_are_damaged_or_hostile_are_refused(text: str, reason: str) -> None:
    assert reason in refusal(NCCL_GRAPH, text).reason


def test_the_rings_of_a_log_go_round_over_all_nodes() -> None:
    parsed = parse(NCCL_LOG, RINGS)
    ring = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 3), (3, 1), (1, 2), (2, 0)]
    assert bytes_of(parsed.profiles[0]) == {pair: float(ring.count(pair)) for pair in ring}
    assert "no bytes" in parsed.warnings[0]
    assert bytes_of(profile_of(NCCL_LOG, RINGS + RINGS)) == bytes_of(parsed.profiles[0])


def test_links_of_trees_are_in_a_log_at_both_ends_and_counted_once() -> None:
    whole = bytes_of(profile_of(NCCL_LOG, TREES, Options(collectives="tree")))
    links = [(0, 1), (1, 2), (1, 3), (0, 1), (1, 2), (2, 3)]
    both = links + [(b, a) for a, b in links]
    assert whole == {pair: float(both.count(pair)) for pair in both}
    head, *ranks = TREES.splitlines(keepends=True)
    for rank in range(4):
        part = "".join([head, *ranks[:rank], *ranks[rank + 1 :]])
        with pytest.raises(InputError, match=rf"1 of 4 ranks sent is missing \({rank}\)"):
            parse(NCCL_LOG, part, Options(collectives="tree"))
        partial = Options(collectives="tree", allow_missing_ranks=True)
        assert bytes_of(profile_of(NCCL_LOG, part, partial)) == whole


@pytest.mark.parametrize(
    ("text", "algorithm", "reason"),
    [
        (RINGS + log("Channel 00/02 : 0 1"), "ring", "several communicators"),
        (log("Channel 00/01 : 0 1 1"), "ring", "repeats a rank"),
        (log("Channel 00/02 : 0 1 2", "Channel 01/02 : 0 1"), "ring", "different ranks"),
        (log("Using network Socket"), "ring", "no line of a ring found"),
        (RINGS, "tree", "no line of a tree found"),
        (RINGS, "direct", "rings and trees, not direct"),
        (TREES.replace("->3->1", "->3->2"), "tree", "contradict each other"),
        (TREES.replace("2/3/-1->1->0", "2/-1/-1->1->0"), "tree", "contradict each other"),
        (TREES.replace("2/3/-1->1->0", "2/2/-1->1->0"), "tree", "repeats a rank"),
        (TREES.replace("2/3/-1->1->0", "2/3->1->0"), "tree", "is invalid or truncated"),
        (TREES + log("Trees [0] 3/-1/-1->2->1"), "tree", "several communicators"),
    ],
)
def test_logs_that_are_damaged_or_of_several_communicators_are_refused(
    text: str, algorithm: str, reason: str
) -> None:
    assert reason in refusal(NCCL_LOG, text, Options(collectives=algorithm)).reason


# --- refused --------------------------------------------------------------------------------------------


def test_mpip_and_darshan_are_recognised_and_refused_with_what_to_record_instead() -> None:
    with pytest.raises(InputError, match=r"by call site, not by pairs of ranks.*pml_monitoring_enable"):
        plan([DATA / "profiles/mpip_cg_S_4.mpiP"])
    for data in (b"# darshan log version: 3.41\n# exe: a\n", b"3.41\0\0\0\0\x01\x02"):
        given_file = file(data, "job.darshan")
        assert DARSHAN.recognise(given_file.head(), given_file.path)
        assert "Darshan records file accesses" in refusal(DARSHAN, data).reason
        assert not MPIP.recognise(given_file.head(), given_file.path)


LOG = read("profiles/nccl_24_ranks.log").decode()
PRINTED = "".join(line for line in LOG.splitlines(keepends=True) if "->" not in line)
RING = {(rank, (rank + 1) % 24): 2.0 for rank in range(24)}


def links(text: str) -> dict[tuple[int, int], float]:
    return bytes_of(profile_of(NCCL_LOG, text))


def ring(ranks: int, *, size: int | None = None, shown: int = 20) -> str:
    """A log of one channel: what rank 0 prints, and the connections of all ranks."""
    order = list(range(0, ranks, 2)) + list(range(1, ranks, 2))
    lines = [f"n0:1:2 [0] NCCL INFO comm 0x1 rank 0 nRanks {size}\n"] if size else []
    lines.append(f"n0:1:2 [0] NCCL INFO Channel 00/01 : {' '.join(map(str, order[:shown]))}\n")
    for rank, following in zip(order, order[1:] + order[:1], strict=True):
        sends = f"Channel 00/0 : {rank}[0] -> {following}[0] [send] via NET/IB/0"
        lines.append(f"n{rank}:1:2 [0] NCCL INFO {sends}\n")
    return "".join(lines)


def test_a_ring_of_more_ranks_than_are_printed_is_completed_by_the_connections_of_all_ranks() -> None:
    trees = "n1:10:20 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
    messages = "n1:9:2 [0] NCCL INFO Channel 00/1 : 0[0] -> 9[1] via NET\n"
    for text in (LOG, re.sub(r".*n[rR]anks.*\n", "", LOG), LOG + trees, LOG + messages):
        assert links(text) == RING
    whole = links(ring(1300, size=1300))
    assert set(links(ring(1300, size=1300).replace("1 3 5", "1 1 5"))) == set(whole)
    assert len(whole) == 1300


@pytest.mark.parametrize("shown", [20, 19])
def test_a_ring_of_just_as_many_ranks_as_are_printed_is_closed(shown: int) -> None:
    first = ring(shown, size=shown).splitlines(keepends=True)[:2]
    assert len(links("".join(first))) == shown
    assert len(links(ring(shown))) == shown


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PRINTED, "NCCL prints only the first 20 ranks of a ring of 24, and to which one rank 19 sends in"),
        (re.sub(r".*nRanks.*\n", "", PRINTED), "first 20 ranks of a ring of 24"),
        (re.sub(r".*n[rR]anks.*\n", "", PRINTED), "first 20 ranks of a ring, and to which one rank 19"),
        (re.sub(r"n3.*->.*\n", "", LOG), "rank 19 sends in channel 0 is not in this log"),
        (LOG.replace("23[7] -> 0[0]", "23[7] -> 4[4]"), "several communicators"),
        (LOG.replace("19[3] -> 20[4]", "19[3] -> 0[0]"), "close a ring of 20 ranks, not of 24"),
        (LOG.replace("18   19\n", "19   18\n"), "several communicators"),
        (ring(10, size=24), "has 10 ranks, its communicator 24: is a line truncated?"),
    ],
)
def test_a_ring_that_the_log_does_not_contain_whole_is_refused(text: str, reason: str) -> None:
    assert reason in refusal(NCCL_LOG, text).reason
