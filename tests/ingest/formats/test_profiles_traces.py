"""Profiles from recordings: traces of several tools, groups of DUMPI files, and Open MPI's monitoring."""

from __future__ import annotations

import json
import re
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.profiles import pytorch_trace
from ingest.formats.profiles.dumpi2ascii import DUMPI2ASCII, UNKNOWN, Made, members_of
from ingest.formats.profiles.dumpi2ascii import WORLD as ALL
from ingest.formats.profiles.edges import EDGE_CSV
from ingest.formats.profiles.openmpi_monitoring import OPENMPI_MONITORING
from ingest.formats.profiles.otf2 import OTF2
from ingest.formats.profiles.pytorch_trace import PYTORCH_TRACE
from ingest.generate import nas
from ingest.generate.stencils import lulesh
from ingest.options import Options
from ingest.pipeline import anchored, plan
from ingest.reading.source import SourceFile, read_paths
from registry.errors import InputError, InvalidValue, MissingExtra
from registry.installation import install_command
from registry.model import Profile
from tests.support.inputs import (
    DATA,
    archive,
    bytes_of,
    file,
    profile_of,
    read,
    recorded,
    survives,
    traffic_of,
)

Edges = dict[tuple[int, int], tuple[float, int]]


# --- OTF2 -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("otf2")
    with tarfile.open(DATA / "profiles/otf2_sp16.tar.xz") as opened:
        opened.extractall(folder, filter="data")
    return folder / "otf2_sample"


@pytest.mark.usefixtures("processes")
def test_an_archive_is_one_source_as_tar_as_folder_and_by_its_anchor(unpacked: Path) -> None:
    """The archive was written from a trace of NAS SP on 64 ranks, its first 16 ranks; with 64 edges."""
    pytest.importorskip("otf2")
    paths = (DATA / "profiles/otf2_sp16.tar.xz", unpacked, unpacked / "traces.otf2")
    (tar,), (folder,), (anchor,) = (plan([path]).profiles for path in paths)
    assert traffic_of(tar) == traffic_of(folder) == traffic_of(anchor)
    assert (tar.name, folder.name) == ("otf2_sp16", "otf2_sample")
    assert (tar.ranks, tar.pairs, int(tar.messages.sum())) == (16, 64, 2560)
    whole = traffic_of(nas.sp(64, points=64, steps=1))
    assert traffic_of(tar).keys() == {pair for pair in whole if max(pair) < 16}


@pytest.mark.usefixtures("processes")
def test_two_archives_of_one_tar_are_two_profiles(tmp_path: Path, unpacked: Path) -> None:
    pytest.importorskip("otf2")
    path = tmp_path / "both.tar"
    with tarfile.open(path, "w") as made:
        made.add(unpacked, "a")
        made.add(unpacked, "b")
    one, other = plan([path]).profiles
    assert traffic_of(one) == traffic_of(other)


@pytest.mark.usefixtures("processes")
def test_communicators_are_translated_and_collectives_counted(tmp_path: Path) -> None:
    """An archive written here: ranks 1 and 3 of the world are 0 and 1 of a communicator."""
    otf2 = pytest.importorskip("otf2")
    from otf2.enums import CollectiveOp, GroupType, LocationGroupType, Paradigm

    with otf2.writer.open(str(tmp_path / "made"), timer_resolution=1000) as trace:
        definitions = trace.definitions
        node = definitions.system_tree_node("n")
        process = LocationGroupType.PROCESS
        groups = [definitions.location_group(f"MPI Rank {rank}", process, node) for rank in range(4)]
        locations = [definitions.location("main", group=group) for group in groups]
        world, pair = (
            definitions.group(name, group_type=kind, paradigm=Paradigm.MPI, members=members)
            for name, kind, members in (
                ("world", GroupType.COMM_LOCATIONS, locations),
                ("pair", GroupType.COMM_GROUP, [1, 3]),
            )
        )
        everyone, some = definitions.comm("w", world), definitions.comm("p", pair)
        writers = [trace.event_writer_from_location(location) for location in locations]
        writers[1].mpi_send(1, 1, some, 0, 100)
        writers[3].mpi_isend(2, 0, some, 0, 50, 7)
        writers[0].mpi_send(3, 2, everyone, 0, 9)
        writers[0].mpi_send(4, 0, everyone, 0, 5)
        writers[2].mpi_collective_begin(5)
        writers[2].mpi_collective_end(6, CollectiveOp.BARRIER, everyone, 0, 0, 0)
    report = plan([tmp_path / "made" / "traces.otf2"])
    (profile,) = report.profiles
    assert traffic_of(profile) == {(1, 3): (100, 1), (3, 1): (50, 1), (0, 2): (9, 1)}
    assert (profile.ranks, profile.self_bytes) == (4, 5)
    assert any("1 events of collectives" in warning for warning in report.warnings)


def members() -> list[SourceFile]:
    (group,) = anchored(read_paths([DATA / "profiles/otf2_sp16.tar.xz"]))
    return list(group.files)


@pytest.mark.usefixtures("processes")
def test_a_damaged_archive_is_refused() -> None:
    pytest.importorskip("otf2")
    files = [file(b"OTF2" if one.path.endswith(".def") else one.data, one.path) for one in members()]
    with pytest.raises(InputError, match="unreadable archive"):
        OTF2.parse(files, Options())


def test_an_anchor_without_its_files_or_with_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    files = members()
    with pytest.raises(InputError, match=r"the \.def file and the folder of the anchor file are missing"):
        OTF2.parse(files[:1], Options())
    with pytest.raises(InputError, match="ingest the whole archive"):
        OTF2.parse(files[1:], Options())
    anchor = next(one for one in files if one.path.endswith(".otf2"))
    folder = anchor.path.removesuffix("traces.otf2")
    for name in ("", "traces.def/0.evt", "a/b/c", "../up", "nul\0"):
        with pytest.raises(InputError, match=r"does not belong|the file cannot be stored with the others"):
            OTF2.parse([*files, file(b"x", f"{folder}{name}")], Options())
    monkeypatch.setitem(sys.modules, "otf2", None)
    with pytest.raises(MissingExtra, match=re.escape(install_command("otf2"))):
        OTF2.parse(files, Options())


# --- DUMPI ----------------------------------------------------------------------------------------------


def test_a_recording_of_lulesh_has_the_pairs_and_bytes_of_the_program() -> None:
    """LULESH with -s 4 -i 2 on 8 ranks."""
    report = plan([DATA / "profiles/dumpi2ascii_lulesh_8.tar.xz"])
    (profile,) = report.profiles
    assert traffic_of(profile) == traffic_of(lulesh(2, size=4, iterations=2))
    assert profile.name == "dumpi2ascii_lulesh_8"
    assert any("24 calls of collectives" in warning for warning in report.warnings)


def test_a_recording_with_communicators_and_types_is_translated() -> None:
    """Six ranks in two rows of three, numbered from the last; a number of a communicator comes again."""
    (profile,) = plan([DATA / "profiles/dumpi2ascii_comms_6.tar.xz"]).profiles
    expected: Edges = {}

    def add(source: int, target: int, size: int, count: int = 1) -> None:
        before = expected.get((source, target), (0, 0))
        expected[source, target] = before[0] + size * count, before[1] + count

    for rank in range(6):
        row, place = divmod(rank, 3)
        add(rank, (rank + 1) % 6, 10 * 4)  # a ring of all
        if place:
            add(rank, rank - 1, 8 * (100 + rank))  # in the row, by MPI_Comm_split with falling keys
        # Its copy; persistent, a vector of triples.
        add(rank, 3 * row + (place - 1) % 3, 2 * 4 * 2 * 3 * 8, 4)
        add(rank, (rank + 3) % 6, 7)  # in the column
        add(rank, 3 * row + (place + 1) % 3, 5 * 4)  # MPI_Cart_create
    assert traffic_of(profile) == expected


def call(name: str, *lines: str) -> str:
    time = "cputime 0.1 seconds in thread 0."
    begin, end = f"{name} entering at walltime 1.5, {time}", f"{name} returning at walltime 1.6, {time}"
    return "\n".join((begin, *lines, end, ""))


WORLD = "MPI_Comm comm=2 (MPI_COMM_WORLD)"
END = call("MPI_Finalize")


def dumpi(rank: int, *calls: str, size: int = 4) -> SourceFile:
    begin = call("MPI_Comm_size", WORLD, f"int size={size}"), call("MPI_Comm_rank", WORLD, f"int rank={rank}")
    return file("".join((*begin, *calls, END)), f"d/{rank}.txt")


def send(
    dest: int, count: int, comm: str = WORLD, kind: str = "14 (MPI_DOUBLE)", name: str = "MPI_Send"
) -> str:
    return call(
        name, f"int count={count}", f"MPI_Datatype datatype={kind}", f"int dest={dest}", "int tag=0", comm
    )


def split(color: int, key: int, new: int, old: str = "2 (MPI_COMM_WORLD)") -> str:
    made = f"MPI_Comm newcomm={new} (user-defined-comm)"
    return call("MPI_Comm_split", f"MPI_Comm oldcomm={old}", f"int color={color}", f"int key={key}", made)


def sums(files: Sequence[SourceFile], options: Options | None = None) -> Edges:
    return traffic_of(DUMPI2ASCII.parse(files, options or Options()).profiles[0])


def test_ranks_of_a_split_communicator_go_by_color_then_key_then_rank() -> None:
    comm = "MPI_Comm comm=4 (user-defined-comm)"
    traces = [
        dumpi(0, split(0, 5, 4), send(0, 1, comm)),  # even ranks, keys descending: 2 is 0, 0 is 1
        dumpi(1, split(1, 0, 4), send(1, 2, comm)),
        dumpi(2, split(0, 3, 4), send(1, 3, comm)),
        dumpi(3, split(1, 0, 4), send(0, 4, comm)),
    ]
    assert sums(traces) == {(0, 2): (8, 1), (1, 3): (16, 1), (2, 0): (24, 1), (3, 1): (32, 1)}


def test_communicators_made_of_others_are_followed_and_numbers_may_come_again() -> None:
    four, five = "comm=4 (user-defined-comm)", "comm=5 (user-defined-comm)"
    dup = call("MPI_Comm_dup", f"MPI_Comm old{four}", f"MPI_Comm new{five}")
    later = (send(1, 1, f"MPI_Comm {five}"), send(0, 1, f"MPI_Comm {four}"))
    traces = [
        dumpi(rank, split(rank % 2, 0, 4), dup, later[0], split(rank // 2, 0, 4), later[1])
        for rank in range(4)
    ]
    assert sums(traces) == dict.fromkeys([(0, 2), (1, 3), (1, 0), (3, 2)], (8, 1))


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ((send(0, 1, "MPI_Comm comm=9 (user-defined-comm)"),), "whose ranks are not in the files"),
        ((send(1, 1, kind="30 (user-defined-datatype)"),), "a type whose size"),
        ((call("MPI_Put", "int origincount=1"),), "one-sided"),
        ((send(7, 1),), "rank 7 of a communicator of 4"),
        ((call("MPI_Send", "int count=1"),), "without count, type"),
        (("noise\n",), "expected the start of an MPI call"),
        ((send(1, 1).replace("returning", "leaving"),), "does not return"),
    ],
)
def test_what_cannot_be_translated_is_refused_with_its_line(calls: Sequence[str], reason: str) -> None:
    traces = [dumpi(0, *calls), *(dumpi(rank) for rank in range(1, 4))]
    with pytest.raises(InputError, match=reason) as caught:
        DUMPI2ASCII.parse(traces, Options())
    assert caught.value.line is not None


def test_types_made_of_others_and_persistent_sends_are_followed() -> None:
    def kinds(old: str, new: int) -> tuple[str, str]:
        return f"MPI_Datatype oldtype={old}", f"MPI_Datatype newtype={new} (user-defined-datatype)"

    row = call("MPI_Type_contiguous", "int count=3", *kinds("14 (MPI_DOUBLE)", 29))
    sizes = ("int count=2", "int blocklength=4", "int stride=9")
    grid = call("MPI_Type_vector", *sizes, *kinds("29 (user-defined-datatype)", 30))
    world = f"{WORLD}\nMPI_Request request=[7]"
    init = send(1, 2, world, kind="30 (user-defined-datatype)", name="MPI_Send_init")
    start = call("MPI_Start", "MPI_Request request=[7]")
    every = call("MPI_Startall", "int count=2", "MPI_Request requests[2]=[3, 7]")
    traces = [dumpi(0, row, grid, init, start, every, size=2), dumpi(1, send(-1, 5), size=2)]
    assert sums(traces) == {(0, 1): (2 * 2 * 2 * 4 * 3 * 8, 2)}


def test_ranks_without_a_trace_or_the_end_of_one_are_refused() -> None:
    with pytest.raises(InputError, match=r"2 of 4 ranks sent is missing \(1, 3\)"):
        DUMPI2ASCII.parse([dumpi(0), dumpi(2)], Options())
    parsed = DUMPI2ASCII.parse([dumpi(0, send(3, 1)), dumpi(2)], Options(allow_missing_ranks=True))
    assert parsed.profiles[0].missing_ranks == (1, 3)
    with pytest.raises(InputError, match=r"0\.txt: rank 0 is also in d/0"):
        DUMPI2ASCII.parse([dumpi(0), dumpi(0)], Options())
    whole = dumpi(0, size=1)
    for data in (whole.data[: -len(END)], whole.data[:-80]):
        with pytest.raises(InputError, match="truncated"):
            DUMPI2ASCII.parse([file(data, "0")], Options())


# --- PyTorch --------------------------------------------------------------------------------------------


def test_the_public_sample_gives_what_its_rank_sends() -> None:
    """Ten all-gathers of one float in a group of two: four bytes each to the other."""
    path = DATA / "profiles/pytorch_rank0.json.xz"
    with pytest.raises(InputError, match=r"1 of 2 ranks sent is missing \(1\)"):
        plan([path])
    report = plan([path], Options(allow_missing_ranks=True))
    assert traffic_of(report.profiles[0]) == {(0, 1): (40, 10)}
    assert report.profiles[0].source == "pytorch-trace, ring"
    assert any("expanded by the algorithm ring" in warning for warning in report.warnings)


def torch(
    rank: int, *calls: dict[str, object], groups: Sequence[tuple[str, Sequence[int]]] = ()
) -> SourceFile:
    listed = [{"pg_name": name, "ranks": list(ranks), "group_size": len(ranks)} for name, ranks in groups]
    entries = listed or [{"pg_name": "0", "ranks": [], "group_size": 4}]
    nodes: list[dict[str, object]] = [
        {"id": 1, "name": pytorch_trace.INIT, "inputs": {"values": [json.dumps(entries)]}},
        *calls,
    ]
    return file(json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": nodes}), f"et/rank{rank}.json")


def collective(
    name: str, slot: int, count: int, group: str = "0", dtype: str = "Float", **more: object
) -> dict[str, object]:
    """As PyTorch 2.4 writes it: the pair of name and description among the inputs, sizes as attributes."""
    values = [[], [7, False], [group, "default_pg"], slot, name, [], [], 0, 1, 4]
    attributes = {"collective_name": name, "dtype": dtype, "in_msg_nelems": count, "pg_name": group, **more}
    listed = [{"name": key, "type": "string", "value": value} for key, value in attributes.items()]
    return {"id": 9, "name": pytorch_trace.CALL, "inputs": {"values": values}, "attrs": listed}


def traced(files: Sequence[SourceFile], options: Options | None = None) -> Edges:
    return traffic_of(PYTORCH_TRACE.parse(files, options or Options()).profiles[0])


def test_every_rank_sends_its_part_of_a_collective_by_the_given_algorithm() -> None:
    files = [torch(rank, collective("allreduce", rank, 100), collective("wait", 0, 0)) for rank in range(4)]
    ring = traced(files)
    assert ring == {(rank, (rank + 1) % 4): (2 * 400 * 3 / 4, 6) for rank in range(4)}
    doubling = traced(files, Options(collectives="recursive-doubling"))
    assert doubling == {(rank, rank ^ bit): (400, 1) for rank in range(4) for bit in (1, 2)}
    direct = traced(files, Options(collectives="direct"))
    assert direct == {(a, b): (200, 2) for a in range(4) for b in range(4) if a != b}
    levels = traced(files, Options(collectives="hierarchical", domain=2))
    assert sum(size for size, _ in levels.values()) == sum(size for size, _ in ring.values())


def test_groups_roots_and_receivers_are_ranks_of_the_job() -> None:
    groups = [("0", range(4)), ("odd", (3, 1))]
    broadcast = collective("broadcast", 1, 10, "odd")
    files = [
        torch(0, collective("allreduce", 0, 0), collective("send", 2, 5, dtype="BFloat16"), groups=groups),
        torch(1, collective("_allgather_base", 1, 10, "odd"), broadcast, groups=groups),
        torch(2, collective("recv", 0, 5), collective("allreduce", 2, 0), groups=groups),
        torch(3, collective("_allgather_base", 0, 10, "odd"), broadcast, groups=groups),
    ]
    found = traced(files)
    assert found[0, 2] == (10, 1)
    assert found[1, 3] == (40 + 40, 2)  # its part of the gather, and the broadcast that it is the root of
    assert found[3, 1] == (40, 1)


def test_an_uneven_all_to_all_follows_its_splits() -> None:
    parts = [[rank, 2, 3, 5 - rank] for rank in range(4)]
    calls = [collective("all_to_allv", rank, 10, in_split_size=str(part)) for rank, part in enumerate(parts)]
    found = traced([torch(rank, call) for rank, call in enumerate(calls)])
    expected = {(a, b): 4.0 * parts[a][b] for a in range(4) for b in range(4) if a != b and parts[a][b]}
    assert {pair: size for pair, (size, _) in found.items() if size} == expected


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (collective("allsomething", 0, 1), "unknown collective"),
        (collective("allreduce", 0, 1, "7"), "process group .7., which is not described"),
        (collective("allreduce", 0, 1, dtype="Quad"), "type of elements"),
        (collective("send", 9, 1), "sends to rank 9 of 4"),
        (collective("broadcast", 9, 1), "root 9 of 4"),
        (collective("allreduce", -1, 1), "is not a whole number from"),
        (collective("all_to_all", 0, 10, in_split_size="[1,2]"), "splits"),
        (collective("all_to_all", 0, 10, in_split_size="[1,"), "splits are not a list"),
    ],
)
def test_collectives_that_are_not_understood_are_refused(node: dict[str, object], reason: str) -> None:
    groups = (("0", range(4)), ("1", range(2)))
    with pytest.raises(InputError, match=reason):
        PYTORCH_TRACE.parse([torch(0, node, groups=groups)], Options(allow_missing_ranks=True))


def test_hierarchical_needs_the_size_of_a_domain() -> None:
    files = [torch(rank, collective("allreduce", rank, 1)) for rank in range(4)]
    with pytest.raises(InputError, match="needs the ranks of a domain"):
        traced(files, Options(collectives="hierarchical"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


KEYS = [
    "collective_name", "dtype", "pg_name", "in_msg_nelems", "pg_size", "global_rank_start",
    "global_rank_stride", "in_split_size",
]  # fmt: skip


@given(values=st.lists(JSON, max_size=6), attributes=st.dictionaries(st.sampled_from(KEYS), JSON))
def test_any_values_of_a_call_are_read_or_refused(
    values: list[object], attributes: dict[str, object]
) -> None:
    listed = [{"name": key, "value": value} for key, value in attributes.items()]
    node: dict[str, object] = {"name": pytorch_trace.CALL, "inputs": {"values": values}, "attrs": listed}
    survives(PYTORCH_TRACE, [torch(0, node)], Options(allow_missing_ranks=True))


def dup(parent: int, turn: int) -> Made:
    return Made(parent, turn, "MPI_Comm_dup", 0, 0)


def split_of(parent: int, turn: int, color: int, key: int = 0) -> Made:
    return Made(parent, turn, "MPI_Comm_split", color, key)


def test_a_split_has_the_ranks_of_one_color_by_key() -> None:
    made = {rank: [split_of(ALL, 0, rank % 2, -rank)] for rank in range(4)}
    found = members_of(made, 4)
    assert [found[rank, 0] for rank in range(4)] == [(2, 0), (3, 1), (2, 0), (3, 1)]
    assert list(found[0, ALL]) == [0, 1, 2, 3]


def test_calls_of_a_duplicate_are_not_those_of_its_parent() -> None:
    # The second split of the duplicate has other colors than the second call of MPI_COMM_WORLD.
    made = {
        rank: [dup(ALL, 0), split_of(ALL, 1, rank // 2), split_of(0, 0, 0), split_of(0, 1, rank % 2)]
        for rank in range(4)
    }
    found = members_of(made, 4)
    assert [found[rank, 1] for rank in range(4)] == [(0, 1), (0, 1), (2, 3), (2, 3)]
    assert [found[rank, 3] for rank in range(4)] == [(0, 2), (1, 3), (0, 2), (1, 3)]


def test_communicators_with_unknown_members_are_ignored() -> None:
    made = {0: [split_of(ALL, 0, 0), dup(0, 0), dup(ALL, 1)], 1: [split_of(ALL, 0, 0), dup(0, 0)]}
    assert set(members_of(made, 3)) == {(0, ALL), (1, ALL), (0, 2)}
    assert (0, 0) not in members_of({0: [dup(UNKNOWN, 0)]}, 1)
    assert (0, 0) not in members_of({0: [Made(ALL, 0, "other", 0, 0)]}, 1)


TOTALS = {
    # run: (ranks, point-to-point edges, those to oneself, their bytes, bytes of collectives as sent)
    "hpcg_16_64": (64, 936, 0, 566688960, 1707480),
    "lulesh_s5_i10_27": (27, 316, 0, 2998208, 6400),
    "lulesh_s5_i10_64": (64, 936, 0, 8157888, 28152),
    "npb_bt_A_it5_64": (64, 384, 0, 279229440, 36516),
    "npb_cg_S_16": (16, 48, 4, 56131584, 180),
    "npb_cg_S_64": (64, 256, 8, 150421504, 756),
    "npb_ep_S_64": (64, 0, 0, 0, 40188),
    "npb_ft_W_64": (64, 1984, 0, 65011712, 33629276),
    "npb_sp_A_it5_256": (256, 1536, 0, 472135680, 62220),
    "npb_sp_A_it5_64": (64, 384, 0, 220329984, 36012),
    "npb_sp_S_16": (16, 96, 0, 44421120, 6380),
    "snap_16": (16, 48, 0, 15728640, 22612),
    "snap_64": (64, 224, 0, 36700160, 167316),
}
"""Counted apart from this program, by a script over the same files."""


def profile(files: Sequence[SourceFile], options: Options | None = None) -> Profile:
    return OPENMPI_MONITORING.parse(files, options or Options()).profiles[0]


def recording(rank: int, traffic: str, ranks: int = 3) -> SourceFile:
    """The file of a rank as Open MPI would write it."""
    world = ",".join(map(str, range(ranks)))
    text = f"# POINT TO POINT\n{traffic}# OSC\n# COLLECTIVES\nD\tMPI_COMM_SELF\tprocs: {rank}\n"
    text += f"O2A\t{rank}\t0 bytes\t0 msgs sent\nD\tMPI_COMM_WORLD\tprocs: {world}\n"
    return file(text, f"run/app.{rank}.prof")


def sent(kind: str, source: int, target: int, size: int, count: int = 1) -> str:
    return f"{kind}\t{source}\t{target}\t{size} bytes\t{count} msgs sent\n"


@pytest.mark.parametrize("run", TOTALS)
def test_totals_of_real_runs(run: str) -> None:
    ranks, edges, own, point_to_point, collective = TOTALS[run]
    both = recorded(run)
    assert both.ranks == ranks
    assert both.bytes.sum() + both.self_bytes == point_to_point + collective
    external = recorded(run, "E")
    assert external.bytes.sum() + external.self_bytes == point_to_point
    assert (external.pairs + external.self_edges, external.self_edges) == (edges, own)
    internal = recorded(run, "I")
    assert internal.bytes.sum() + internal.self_bytes == collective
    assert both.missing_ranks == ()


@pytest.mark.parametrize("run", ["npb_cg_S_16", "lulesh_s5_i10_27", "npb_ep_S_64", "npb_ft_W_64"])
def test_the_edge_list_of_a_run_is_the_same_profile(run: str) -> None:
    found = recorded(run)
    listed = profile_of(EDGE_CSV, read(f"edges/{run}.csv.gz"), path=f"{run}.csv.gz")
    for column in ("indptr", "partner", "bytes", "messages"):
        np.testing.assert_array_equal(getattr(found, column), getattr(listed, column))
    assert (found.name, found.self_edges) == (listed.name, listed.self_edges)


def test_kinds_are_summed_as_chosen_and_one_sided_reads_flow_backwards() -> None:
    traffic = sent("E", 0, 1, 1) + sent("I", 0, 1, 2) + sent("S", 0, 1, 4) + sent("C", 0, 1, 8)
    files = [recording(0, traffic), recording(1, ""), recording(2, "")]
    assert bytes_of(profile(files)) == {(0, 1): 3.0}
    assert bytes_of(profile(files, Options(kinds=("E",)))) == {(0, 1): 1.0}
    assert bytes_of(profile(files, Options(kinds=("E", "I", "S", "R")))) == {(0, 1): 7.0}
    with pytest.raises(InvalidValue, match="only E, I, S, R are traffic"):
        profile(files, Options(kinds=("E", "C")))
    files = [recording(0, sent("R", 0, 2, 5)), recording(1, ""), recording(2, "")]
    assert bytes_of(profile(files, Options(kinds=("R",)))) == {(2, 0): 5.0}
    silent = profile([recording(rank, "") for rank in range(3)])
    assert (silent.ranks, silent.pairs) == (3, 0)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_missing_file_is_refused_unless_allowed(lost: int) -> None:
    files = [recording(rank, sent("E", rank, (rank + 1) % 3, 1)) for rank in range(3) if rank != lost]
    with pytest.raises(InputError) as caught:
        profile(files)
    assert (caught.value.path, caught.value.reason) == (
        "run",
        f"what 1 of 3 ranks sent is missing ({lost}): "
        "--allow-missing-ranks ingests the recording without them",
    )
    partial = OPENMPI_MONITORING.parse(files, Options(allow_missing_ranks=True))
    assert (partial.profiles[0].ranks, partial.profiles[0].missing_ranks) == (3, (lost,))
    assert partial.profiles[0].pairs == 2
    assert partial.warnings[-1].startswith("what 1 of 3 ranks")


def test_missing_ranks_of_a_real_run_and_below_the_highest_receiver_are_found() -> None:
    files = [given for given in archive("openmpi/npb_cg_S_16.tar.gz") if ".15.prof" not in given.path]
    with pytest.raises(InputError, match=r"1 of 16 ranks sent is missing \(15\)"):
        profile(files)
    with pytest.raises(InputError, match=r"15 of 16 ranks sent is missing \(1, 2"):
        profile([file(read("openmpi/enable1.0.prof"), "enable1.0.prof")])
    bare = [file(sent("E", 0, 5, 1), "run/app.0.prof"), file(sent("E", 1, 0, 1), "run/app.1.prof")]
    with pytest.raises(InputError, match=r"4 of 6 ranks sent is missing \(2, 3, 4, 5\)"):
        profile(bare)


def test_files_of_one_rank_or_records_of_another_are_refused() -> None:
    twin = file(recording(1, "").data, "run/app.7.prof")
    with pytest.raises(InputError, match=r"are these two runs, or two phases of one\?"):
        profile([recording(0, ""), recording(1, ""), recording(2, ""), twin])
    with pytest.raises(InputError) as caught:
        profile([recording(0, sent("E", 0, 1, 1) + sent("E", 2, 1, 1)), recording(1, ""), recording(2, "")])
    assert (caught.value.line, caught.value.reason) == (3, "the file of rank 0 contains what rank 2 sends")
    with pytest.raises(InputError, match="contains a rank above"):
        profile([file(sent("E", 0, 99_999_999, 1), "app.0.prof")])


def test_output_in_one_file_without_lists_of_communicators_or_without_tabs_is_read() -> None:
    files = [recording(rank, sent("E", rank, (rank + 1) % 3, 1)) for rank in range(3)]
    gathered = [file(b"".join(given.data for given in files), "all.txt")]
    spaced = [file(given.data.replace(b"\t", b"  "), given.path) for given in files]
    assert bytes_of(profile(gathered)) == bytes_of(profile(spaced)) == bytes_of(profile(files))
    text = "".join(sent("E", rank, 1 - rank, 9, 2) for rank in (0, 1))
    assert bytes_of(profile([file(text, "stderr.txt")])) == {(0, 1): 9.0, (1, 0): 9.0}


CUT = (
    "E\t0\t1\t1171712 bytes\t12", "E\t0\t1\t11717", "E\t0\t1\t-5 bytes\t1 msgs sent", "O2A\t0\t0 by",
    "E\t0\tx\t5 bytes\t1 msgs sent", "D\tMPI_COMM_WORLD\tpro", "D\tMPI_COMM_WORLD\tprocs: 0,,1", "Hello",
)  # fmt: skip


@pytest.mark.parametrize("line", CUT)
def test_a_line_that_is_cut_off_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(InputError) as caught:
        profile([recording(0, sent("E", 0, 1, 1) + line + "\n"), recording(1, ""), recording(2, "")])
    assert (caught.value.path, caught.value.line, caught.value.text) == ("run/app.0.prof", 3, line)


def test_a_file_cut_between_lines_is_refused() -> None:
    whole = [recording(rank, sent("E", rank, (rank + 1) % 3, 1)) for rank in range(3)]
    cut = file(b"\n".join(whole[1].data.split(b"\n")[:4]), whole[1].path)
    with pytest.raises(InputError, match=r"at the end is missing: the file is truncated"):
        profile([whole[0], cut, whole[2]])


def test_name_is_the_archives_or_the_folders() -> None:
    (tar,) = read_paths([DATA / "openmpi/npb_cg_S_16.tar.gz"])
    assert OPENMPI_MONITORING.recognise(tar.files[0].head(), "x")
    assert profile(tar.files).name == "npb_cg_S_16"
    assert profile(tar.files, Options(name="mine")).name == "mine"
    assert profile([recording(rank, "") for rank in range(3)]).name == "run"
