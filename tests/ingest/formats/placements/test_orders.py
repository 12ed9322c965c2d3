"""Placements without host names, read with given hosts: MPICH_RANK_ORDER, task maps of Flux."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.placements import flux_taskmap, mpich_rank_order
from ingest.formats.profiles import edge_csv
from ingest.options import Options
from registry.errors import InputError, InvalidValue
from tests.support.inputs import damaged, file, parse, survives

ON_THREE = Options(hosts=("b", "c", "a"), slots=(2,))
GRID_ORDER = """\
# grid_order -R -Z -c 4 -g 4,2
# Region 0: 0,0 (0..7)
0,1,4,5
2,3,6,7
"""
"""In the form of published outputs of HPE's tool: a line a node."""
VECTORS = {
    "[[0,1,1,1]]": "0",
    "[[0,2,1,1]]": "0;1",
    "[[0,1,2,1]]": "0-1",
    "[[0,2,2,1]]": "0-1;2-3",
    "[[0,2,1,2]]": "0,2;1,3",
    "[[1,1,1,1],[0,1,1,1]]": "1;0",
    "[[0,4,4,1]]": "0-3;4-7;8-11;12-15",
    "[[0,4,1,4]]": "0,4,8,12;1,5,9,13;2,6,10,14;3,7,11,15",
    "[[0,4,2,2]]": "0-1,8-9;2-3,10-11;4-5,12-13;6-7,14-15",
    "[[0,4,2,1],[4,2,4,1]]": "0-1;2-3;4-5;6-7;8-11;12-15",
    "[[0,6,1,2],[4,2,1,2]]": "0,6;1,7;2,8;3,9;4,10,12,14;5,11,13,15",
    "[[5,1,4,1],[4,1,4,1],[3,1,2,1],[2,1,2,1],[1,1,2,1],[0,1,2,1]]": "14-15;12-13;10-11;8-9;4-7;0-3",
    "[[0,5,2,1],[6,1,2,1],[5,1,2,1],[7,1,2,1]]": "0-1;2-3;4-5;6-7;8-9;12-13;10-11;14-15",
    "[[3,1,4,1],[2,1,4,1],[1,1,4,1],[0,1,4,1]]": "12-15;8-11;4-7;0-3",
}
"""Test vectors of RFC 34: a map, and the tasks of each node."""


def node_of_task(raw: str) -> tuple[str, ...]:
    """``0,2;1``: tasks 0 and 2 on n0, task 1 on n1."""
    found: dict[int, str] = {}
    for node, tasks in enumerate(raw.split(";")):
        for part in tasks.split(","):
            first, _, last = part.partition("-")
            for task in range(int(first), int(last or first) + 1):
                found[task] = f"n{node}"
    return tuple(found[task] for task in range(len(found)))


def hosts(parser: object, content: str, options: Options) -> tuple[str, ...]:
    placement = parse(parser, content, options).placements[0]  # type: ignore[arg-type]
    assert placement is not None
    return placement.hosts


def test_a_rank_order_lists_the_rank_of_each_slot() -> None:
    # Slots b b c c a a hold ranks 1 4 0 2 3 5: rank 0 is on c, rank 1 on b, ...
    assert hosts(mpich_rank_order, "1,4,0,2,3,5\n", ON_THREE) == ("c", "b", "c", "a", "b", "a")


def test_comments_ranges_and_lines_of_a_rank_order_are_read() -> None:
    two = Options(hosts=("x", "y"), slots=(4,))
    assert hosts(mpich_rank_order, GRID_ORDER, two) == tuple("xxyyxxyy")
    assert hosts(mpich_rank_order, "4-7 # second half\n0-1,\n3, 2", two) == tuple("yyyyxxxx")


def test_the_hosts_are_those_of_a_comment_or_of_the_caller() -> None:
    text = "# hosts b*2 c*1\n1,2,0\n"
    assert hosts(mpich_rank_order, text, Options()) == ("c", "b", "b")
    same = Options(hosts=("b", "c"), slots=(2, 1))
    assert hosts(mpich_rank_order, text, same) == ("c", "b", "b")
    with pytest.raises(InputError, match="the hosts or slots in the file differ from those given"):
        parse(mpich_rank_order, text, Options(hosts=("b", "c"), slots=(2,)))


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("0,1,0\n", 1, "rank 0 is repeated on c, first in line 1 on b"),
        ("0,1\n3\n", 2, "1 of 4 ranks are missing, rank 2 first"),
        ("0-6\n", 1, "more ranks than slots of the hosts (6)"),
        ("3-1\n", 1, "invalid range of ranks"),
        ("0,99999999\n", 1, "invalid range of ranks"),
        ("0;1\n", 1, "expected a list of ranks separated by commas"),
        ("0,,1\n", 1, "expected a list of ranks separated by commas"),
        ("# hosts b*99999999 c*1\n0,1\n", 1, "more than 16777216 slots"),
        ("# only this\n", None, "no ranks found"),
    ],
)
def test_a_rank_order_that_cannot_be_read_is_refused(text: str, line: int | None, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(mpich_rank_order, text, ON_THREE)
    assert (caught.value.path, caught.value.line) == ("input", line)
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize(("parser", "text"), [(mpich_rank_order, "1,0\n"), (flux_taskmap, "[[0,1,2,1]]")])
def test_without_hosts_the_error_has_the_remedy(parser: object, text: str) -> None:
    with pytest.raises(InputError, match="--hosts"):
        parse(parser, text)  # type: ignore[arg-type]


def test_a_matrix_is_no_rank_order() -> None:
    for text in ("0,5,1\n5,0,2\n1,2,0\n", "0 1\n", "4\n", "src,dst,bytes\n0,1,2\n", "", "a,b\n", "0,1.5\n"):
        assert not mpich_rank_order.recognise(text, "x")
        assert edge_csv.recognise(text, "x") == text.startswith("src")
    for text in ("2,0,1\n", GRID_ORDER, "0-3\n", "# hosts a*2\n1,0\n"):
        assert mpich_rank_order.recognise(text, "x")


@pytest.mark.parametrize("text", VECTORS)
def test_task_maps_mean_what_the_vectors_of_rfc_34_say(text: str) -> None:
    nodes = Options(hosts=tuple(f"n{node}" for node in range(8)))
    expected = node_of_task(VECTORS[text])
    assert flux_taskmap.recognise(text, "x")
    assert hosts(flux_taskmap, text, nodes) == expected
    wrapped = f'{{"version": 1, "map": {text}}}'
    assert flux_taskmap.recognise(wrapped, "x")
    assert hosts(flux_taskmap, wrapped, nodes) == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([[0, 4, 1, 1]], "node 3 is not one of the 3 hosts given"),
        ([[0, 1, 1]], "has 3 numbers, not the four of nodeid, nnodes, ppn, repeat"),
        ([[0, 0, 1, 1]], "is not a whole number from 1"),
        ([[-1, 1, 1, 1]], "is not a whole number from 0"),
        ([[0, 3, 16777216, 1]], "places more than 16777216 ranks"),
        ([], "no ranks found"),
        ({"version": 2, "map": [[0, 1, 1, 1]]}, "is not 1, the supported version"),
        ({"version": 1}, "is not a list"),
        ([5], "is not a list"),
    ],
)
def test_a_task_map_that_cannot_be_read_is_refused(value: object, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(flux_taskmap, json.dumps(value), ON_THREE)
    assert caught.value.path == "input"
    assert reason in caught.value.reason


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    survives(mpich_rank_order, [file(body)], ON_THREE)
    survives(flux_taskmap, [file(body)], ON_THREE)


@given(damaged(GRID_ORDER.encode()), damaged(b'{"version": 1, "map": [[0,2,1,2],[1,1,2,1]]}'))
def test_a_damaged_file_is_read_or_refused(order: bytes, task_map: bytes) -> None:
    survives(mpich_rank_order, [file(order)], Options(hosts=("x", "y"), slots=(4,)))
    survives(flux_taskmap, [file(task_map)], ON_THREE)


def test_hosts_and_slots_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"Options\.hosts"):
        Options(hosts=("a", "a"))
    for slots in ((1, 2), (0,), ()):
        with pytest.raises(InvalidValue, match=r"Options\.slots"):
            Options(hosts=("a", "b", "c"), slots=slots)
