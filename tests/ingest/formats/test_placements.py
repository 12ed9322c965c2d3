"""Where ranks are: host files, rankfiles, reports of launchers and jobs, and orders without host names."""

from __future__ import annotations

import json
from itertools import permutations

import pytest

from ingest import catalog
from ingest.formats.flux import FLUX_TASKMAP
from ingest.formats.hostlists import expand
from ingest.formats.placements import (
    HOSTFILE,
    INTEL_MPI_MAP,
    MPICH_RANK_ORDER,
    OPENMPI_MAP,
    OPENMPI_RANKFILE,
    PLACEMENT_CSV,
    RANK_LIST,
)
from ingest.formats.profiles.edges import EDGE_CSV
from ingest.options import Options
from ingest.parsed import Format
from registry.errors import InputError
from tests.support.inputs import file, hosts_of, parse, read, refusal

CSV = "rank,host,slot\n0,b,0\n1,a,0\n2,b,1\n"
FIVE = ("node0002", "node0001", "node0003", "node0001", "node0002")
"""Hosts of the five ranks of the jobs that the samples are of, see tests/data/placements/README.md."""
INTEL = """\
[0] MPI startup(): Intel(R) MPI Library, Version 2021.3
[0] MPI startup(): ===== NIC pinning on c2 =====
[0] MPI startup(): Rank    Pin nic
[0] MPI startup(): 0       ib0
[0] MPI startup(): ===== CPU pinning =====
Hello from rank 1
[0] MPI startup(): Rank    Pid      Node name  Pin cpu
[0] MPI startup(): 0       12475    c2         {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,
                                 30,31,32,33,34,35}
[0] MPI startup(): 1       12458    c3.local   0
Hello from rank 0
[0] MPI startup(): 2       12459    c1         {1}
[0] MPI startup(): I_MPI_DEBUG=5
"""
"""In the form of published outputs."""


ON_THREE = Options(hosts=("b", "c", "a"), slots=(2,))
GRID_ORDER = """\
# grid_order -R -Z -c 4 -g 4,2
# Region 0: 0,0 (0..7)
0,1,4,5
2,3,6,7
"""
"""In the form of published outputs of HPE's tool: a line a node."""
VECTORS = {
    "[[0,1,1,1]]": "0", "[[0,2,1,1]]": "0;1", "[[0,1,2,1]]": "0-1", "[[0,2,2,1]]": "0-1;2-3",
    "[[0,2,1,2]]": "0,2;1,3", "[[1,1,1,1],[0,1,1,1]]": "1;0", "[[0,4,4,1]]": "0-3;4-7;8-11;12-15",
    "[[0,4,1,4]]": "0,4,8,12;1,5,9,13;2,6,10,14;3,7,11,15",
    "[[0,4,2,2]]": "0-1,8-9;2-3,10-11;4-5,12-13;6-7,14-15",
    "[[0,4,2,1],[4,2,4,1]]": "0-1;2-3;4-5;6-7;8-11;12-15",
    "[[0,6,1,2],[4,2,1,2]]": "0,6;1,7;2,8;3,9;4,10,12,14;5,11,13,15",
    "[[5,1,4,1],[4,1,4,1],[3,1,2,1],[2,1,2,1],[1,1,2,1],[0,1,2,1]]": "14-15;12-13;10-11;8-9;4-7;0-3",
    "[[0,5,2,1],[6,1,2,1],[5,1,2,1],[7,1,2,1]]": "0-1;2-3;4-5;6-7;8-9;12-13;10-11;14-15",
    "[[3,1,4,1],[2,1,4,1],[1,1,4,1],[0,1,4,1]]": "12-15;8-11;4-7;0-3",
}  # fmt: skip
"""Test vectors of RFC 34: a map, and the tasks of each node."""


TURNED = tuple(f"node{i}" for i in (3, 2, 1, 0, 0, 1, 2, 3))
READ: list[tuple[Format, str, tuple[str, ...]]] = [
    (HOSTFILE, "openmpi_seq_hostfile.txt", TURNED),
    (HOSTFILE, "mpich_machinefile.txt", TURNED),
    (HOSTFILE, "slurm_hostfile.txt", tuple(host.replace("node", "n") for host in TURNED)),
    (HOSTFILE, "hosts.txt", tuple(f"node{i}" for i in (0, 0, 1, 1, 2, 2, 3, 3))),
    (OPENMPI_RANKFILE, "openmpi_rankfile.txt", TURNED),
    (OPENMPI_MAP, "openmpi_display_map.txt", FIVE),
    (OPENMPI_MAP, "openmpi_devel_map.txt", FIVE),
    (OPENMPI_MAP, "openmpi_report_bindings.txt", FIVE),
    (RANK_LIST, "openmpi_tag_output.txt", FIVE),
    (RANK_LIST, "mpich_prepend_rank.txt", FIVE),
]


@pytest.mark.parametrize(("parser", "name", "hosts"), READ)
def test_files_and_reports_of_launchers_give_the_hosts_of_a_job(
    parser: Format, name: str, hosts: tuple[str, ...]
) -> None:
    content = read(f"placements/{name}")
    assert parser.recognise(content.decode(), "x")
    assert hosts_of(parser, content) == hosts


def test_comments_blanks_and_slots_that_place_no_rank_are_read_over() -> None:
    text = "# made\na slots=2 max_slots=4 # x\n\nb  slots = 0\nc slots=1 max-slots=1\n"
    assert hosts_of(HOSTFILE, text) == ("a", "a", "c")
    text = "# made\n\n  rank 0 = a slot=1:0-2  # first\nrank 1=b-ib0.site  slot=0,3\n"
    text += "RANK 2=a slots=*\nrank 3=c\n"
    assert hosts_of(OPENMPI_RANKFILE, text) == ("a", "b-ib0.site", "a", "c")
    assert hosts_of(PLACEMENT_CSV, CSV) == ("b", "a", "b")
    assert hosts_of(PLACEMENT_CSV, '# made\nHost,Rank\r\n"a, b",1\r\nc,0\r\n\r\n') == ("c", "a, b")


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_lines_may_come_in_any_order(order: tuple[int, ...]) -> None:
    lines = [f"rank {rank}={host} slot=0" for rank, host in enumerate("abc")]
    assert hosts_of(OPENMPI_RANKFILE, "\n".join(lines[i] for i in order)) == ("a", "b", "c")


def test_intel_mpi_says_it_in_its_debugging_output() -> None:
    assert INTEL_MPI_MAP.recognise(INTEL, "x")
    assert hosts_of(INTEL_MPI_MAP, INTEL) == ("c2", "c3.local", "c1")
    assert hosts_of(INTEL_MPI_MAP, INTEL[: INTEL.index("(): 2 ")]) == ("c2", "c3.local")


def test_a_map_may_be_among_the_output_of_the_program() -> None:
    content = read("placements/openmpi_report_bindings.txt").decode().splitlines()
    noisy = "\n".join(["hello", *content[:2], "Process rank: 7", *content[2:], "bye"])
    assert hosts_of(OPENMPI_MAP, noisy) == FIVE
    free = "[a:11] MCW rank 1 is not bound (or bound to all available processors)\n"
    assert hosts_of(OPENMPI_MAP, f"{free}[b:1] MCW rank 0 bound to x\n") == ("b", "a")


LISTS = (
    "0 b\n1 a\n2 b\n", "2 b\n0 b\n# says the job\n\n1 a\n", "0: b\n1: a\n2: b\n", "[0] b\n[1] a\n[2] b\n",
    "0: 0 b 4711 x\n1: 1 a\n2: 2 b\n", "[1,0]<stdout>:b\n[1,1]<stdout>:a\n[1,2]<stdout>: b\n",
)  # fmt: skip


@pytest.mark.parametrize("text", LISTS)
def test_every_kind_of_list_is_read(text: str) -> None:
    assert RANK_LIST.recognise(text, "x")
    assert hosts_of(RANK_LIST, text) == ("b", "a", "b")


def test_a_rank_order_lists_the_rank_of_each_slot() -> None:
    # Slots b b c c a a hold ranks 1 4 0 2 3 5: rank 0 is on c, rank 1 on b, ...
    assert hosts_of(MPICH_RANK_ORDER, "1,4,0,2,3,5\n", ON_THREE) == ("c", "b", "c", "a", "b", "a")
    two = Options(hosts=("x", "y"), slots=(4,))
    assert hosts_of(MPICH_RANK_ORDER, GRID_ORDER, two) == tuple("xxyyxxyy")
    assert hosts_of(MPICH_RANK_ORDER, "4-7 # second half\n0-1,\n3, 2", two) == tuple("yyyyxxxx")


def test_the_hosts_are_those_of_a_comment_or_of_the_caller() -> None:
    text = "# hosts b*2 c*1\n1,2,0\n"
    assert hosts_of(MPICH_RANK_ORDER, text) == ("c", "b", "b")
    same = Options(hosts=("b", "c"), slots=(2, 1))
    assert hosts_of(MPICH_RANK_ORDER, text, same) == ("c", "b", "b")
    with pytest.raises(InputError, match="the hosts or slots in the file differ from those given"):
        parse(MPICH_RANK_ORDER, text, Options(hosts=("b", "c"), slots=(2,)))
    for parser, no_hosts in ((MPICH_RANK_ORDER, "1,0\n"), (FLUX_TASKMAP, "[[0,1,2,1]]")):
        with pytest.raises(InputError, match="--hosts"):
            parse(parser, no_hosts)


def node_of_task(raw: str) -> tuple[str, ...]:
    """``0,2;1``: tasks 0 and 2 on n0, task 1 on n1."""
    found: dict[int, str] = {}
    for node, tasks in enumerate(raw.split(";")):
        for part in tasks.split(","):
            first, _, last = part.partition("-")
            for task in range(int(first), int(last or first) + 1):
                found[task] = f"n{node}"
    return tuple(found[task] for task in range(len(found)))


@pytest.mark.parametrize("text", VECTORS)
def test_task_maps_mean_what_the_vectors_of_rfc_34_say(text: str) -> None:
    nodes = Options(hosts=tuple(f"n{node}" for node in range(8)))
    for written in (text, f'{{"version": 1, "map": {text}}}'):
        assert FLUX_TASKMAP.recognise(written, "x")
        assert hosts_of(FLUX_TASKMAP, written, nodes) == node_of_task(VECTORS[text])


def test_numbers_alone_and_other_tables_are_of_no_format_of_placements() -> None:
    for text in ("", "# x\n", "garbage\n", "hello world\n", "1\n2\n", "a\nb c\n", "{\n}\n"):
        assert not HOSTFILE.recognise(text, "x")
    for text in ("0 1\n1 2\n", "4 5\n1 2 3\n", "", "0 a\n1 b c\n", "node1 0\n", "x\n", "0 0 0 0\n0 0 0 1\n"):
        assert not RANK_LIST.recognise(text, "x")
    for text in ("0,5,1\n5,0,2\n1,2,0\n", "0 1\n", "4\n", "src,dst,bytes\n0,1,2\n", "", "a,b\n", "0,1.5\n"):
        assert not MPICH_RANK_ORDER.recognise(text, "x")
        assert EDGE_CSV.recognise(text, "x") == text.startswith("src")
    for text in ("2,0,1\n", GRID_ORDER, "0-3\n", "# hosts a*2\n1,0\n"):
        assert MPICH_RANK_ORDER.recognise(text, "x")
    for text in ("a slots=2\n", "a:2\n", "a\nb\n", "# x\na\na\n"):
        assert HOSTFILE.recognise(text, "x")
    assert OPENMPI_RANKFILE.recognise("# x\n\nrank 0=a slot=0\n", "x")
    assert not OPENMPI_RANKFILE.recognise("node0 slots=2\n", "x")
    assert PLACEMENT_CSV.recognise(CSV, "x")
    assert not PLACEMENT_CSV.recognise("src,dst,bytes\n", "x")


NOT_A_RANK = "rank is not a whole number of at most 8 digits"
WRONG_LINE = "expected `rank N=HOST slot=CPU`"


@pytest.mark.parametrize(
    ("parser", "text", "line", "reason"),
    [
        (OPENMPI_RANKFILE, "rank 0=a slot=0\nrank 2=b slot=0\n", 2, "1 of 3 ranks are missing, rank 1 first"),
        (OPENMPI_RANKFILE, "rank 1=a slot=0\n", 1, "1 of 2 ranks are missing, rank 0 first"),
        (OPENMPI_RANKFILE, "rank 0=a\nrank 99999999=a\n", 2,
         "99999998 of 100000000 ranks are missing, rank 1 first"),
        (OPENMPI_RANKFILE, "rank 0=a slot=0\nrank 0=b slot=0\n", 2,
         "rank 0 is repeated on b, first in line 1 on a"),
        *((OPENMPI_RANKFILE, text, 1, WRONG_LINE)
          for text in ("rank 0=a slo", "rank 0=a slot=\n", "rank 0=a b slot=0\n", "rank -1=a slot=0\n")),
        (OPENMPI_RANKFILE, "rank 0=a slot=0\nnode1 slots=2\n", 2, WRONG_LINE),
        (OPENMPI_RANKFILE, "# nothing\n", None, "no ranks found"),
        (PLACEMENT_CSV, "rank,host\n0,a\n#1,b\n", 3, "rank is not a whole number of at most 8 digits"),
        (PLACEMENT_CSV, "rank,host,host\n", 1, "expected one column host"),
        (PLACEMENT_CSV, "rank,slot\n0,1\n", 1, "expected one column host"),
        (PLACEMENT_CSV, "rank,host\n0,a,1\n", 2, "3 cells, but there are 2 columns"),
        (PLACEMENT_CSV, "rank,host\n\n-1,a\n", 3, NOT_A_RANK),
        (PLACEMENT_CSV, "rank,host\n1000000000,a\n", 2, NOT_A_RANK),
        (PLACEMENT_CSV, "rank,host\n٣,a\n", 2, NOT_A_RANK),
        (PLACEMENT_CSV, "rank,host\n0, \n", 2, "host has no name"),
        (PLACEMENT_CSV, "rank,host\n", None, "no ranks found"),
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_read_is_refused(
    parser: Format, text: str, line: int | None, reason: str
) -> None:
    error = refusal(parser, text)
    assert (error.line, error.reason) == (line, reason)


MIXED, NO_HOST = "not of the first line's kind", "expected a host with its number of ranks"
JOBS = (
    " Data for node: a\tNum slots: 2\n Process OMPI jobid: [4,1] App: 0 Process rank: 0 Bound: N/A\n"
    " Process OMPI jobid: [4,2] App: 0 Process rank: 1 Bound: N/A\n"
)


@pytest.mark.parametrize(
    ("parser", "text", "line", "reason"),
    [
        (HOSTFILE, "a slots=1\nb\n", 2, MIXED),
        (HOSTFILE, "a\nb:2\n", 2, MIXED),
        (HOSTFILE, "a:1\nb slots=1\n", 2, MIXED),
        (HOSTFILE, "a slo", 1, NO_HOST),
        (HOSTFILE, "a:x\n", 1, NO_HOST),
        (HOSTFILE, "a slots=1 user=ann\n", 1, NO_HOST),
        (HOSTFILE, "a:99999999\n", 1, "places more than 16777216 ranks"),
        (HOSTFILE, "a slots=0\n", None, "no ranks found"),
        (HOSTFILE, "# nothing\n", None, "no ranks found"),
        (RANK_LIST, "0 a\n0 b\n", 2, "rank 0 is repeated on b, first in line 1 on a"),
        (RANK_LIST, "0 a\n2 b\n", 2, "1 of 3 ranks are missing, rank 1 first"),
        (RANK_LIST, "0 a\n1: b\n", 2, MIXED),
        (RANK_LIST, "0 a b\n", 1, "expected a rank and its host"),
        (RANK_LIST, "0 12\n", 1, "expected a rank and its host"),
        (RANK_LIST, "0: 1 a\n", 1, "rank 1 is labelled 0"),
        (RANK_LIST, "# nothing\n", None, "no ranks found"),
        (OPENMPI_MAP, "[a:1] MCW rank 0 bound to x\n[b:2] MCW rank 0 bound to x\n", 2, "rank 0 is repeated"),
        (OPENMPI_MAP, "[a:1] Rank 0 bound to x\n[a:1] Rank 0 bound to x\n", 2, "rank 0 is repeated"),
        (OPENMPI_MAP, "[a] Rank 0 bound to x\n[a] Rank 0 bound to y\n", 2, "rank 0 is repeated"),
        (OPENMPI_MAP, JOBS.replace("4,2", "4,1").replace("rank: 1", "rank: 0"), 3, "rank 0 is repeated"),
        (OPENMPI_MAP, "[a:1] MCW rank 1 bound to x\n", 1, "1 of 2 ranks are missing"),
        (OPENMPI_MAP, "\tProcess OMPI jobid: [4,1] App: 0 Process rank: 0 Bound: N/A\n", 1, "a process"),
        (OPENMPI_MAP, "Data for JOB [4,1] offset 0\n", None, "no ranks found"),
        (OPENMPI_MAP, JOBS, 3, "maps of two jobs"),
        (INTEL_MPI_MAP, INTEL.replace("(): 2 ", "(): 1 "), 12, "rank 1 is repeated on c1, first in line 10"),
        (INTEL_MPI_MAP, INTEL.replace("c3.local", "c3 x"), 10, "expected a row of rank, process, host"),
        (MPICH_RANK_ORDER, "0,1,0\n", 1, "rank 0 is repeated on c, first in line 1 on b"),
        (MPICH_RANK_ORDER, "0,1\n3\n", 2, "1 of 4 ranks are missing, rank 2 first"),
        (MPICH_RANK_ORDER, "0-6\n", 1, "more ranks than slots of the hosts (6)"),
        (MPICH_RANK_ORDER, "3-1\n", 1, "invalid range of ranks"),
        (MPICH_RANK_ORDER, "0,99999999\n", 1, "invalid range of ranks"),
        (MPICH_RANK_ORDER, "0;1\n", 1, "expected a list of ranks separated by commas"),
        (MPICH_RANK_ORDER, "0,,1\n", 1, "expected a list of ranks separated by commas"),
        (MPICH_RANK_ORDER, "# hosts b*99999999 c*1\n0,1\n", 1, "more than 16777216 slots"),
        (MPICH_RANK_ORDER, "# only this\n", None, "no ranks found"),
    ],
)  # fmt: skip
def test_a_file_or_report_that_cannot_be_read_is_refused(
    parser: Format, text: str, line: int | None, reason: str
) -> None:
    error = refusal(parser, text, ON_THREE)
    assert error.line == line
    assert error.reason.startswith(reason)


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
    assert reason in refusal(FLUX_TASKMAP, json.dumps(value), ON_THREE).reason


def test_lines_that_repeat_an_earlier_host_are_read_in_order_and_the_rule_is_named() -> None:
    text = "a\na\nb\na\nb\n"
    assert hosts_of(HOSTFILE, text) == ("a", "a", "b", "a", "b")
    (warning,) = parse(HOSTFILE, text).warnings
    assert warning.startswith("2 lines repeat the hosts of an earlier line (a in line 4 first): ")
    assert "`--map-by seq`" in warning
    assert "Open MPI adds up the slots of such lines" in warning
    assert not parse(HOSTFILE, "a\na\nb\nb\n").warnings
    assert not parse(HOSTFILE, "a:2\nb:1\na:1\n").warnings


def test_a_host_repeated_with_slots_is_refused_with_the_rule() -> None:
    error = refusal(HOSTFILE, "a slots=2\nb slots=2\na slots=2\n")
    assert (error.line, error.reason) == (
        3,
        "host a is repeated with slots=: Open MPI adds up the slots of such lines, and the host takes "
        "its ranks where it is first named: write one line with the sum",
    )


@pytest.mark.parametrize("text", ["+e0\n+e1\n", "+n0 slots=2\nb slots=2\n", "# x\n+e\n", "+e:2\n"])
def test_relative_hosts_are_recognised_and_refused_with_the_rule(text: str) -> None:
    assert catalog.recognise(file(text).as_group()).name == "hostfile"
    assert "which only mpirun knows: use the names" in refusal(HOSTFILE, text).reason
    assert "relative" in refusal(HOSTFILE, "a\n" + text).reason


@pytest.mark.parametrize("host", ["+e0", "+n12", "+e", "+e:2"])
def test_relative_hosts_in_lists_and_rankfiles_are_refused_with_the_rule(host: str) -> None:
    with pytest.raises(InputError, match=r"is relative: .*which only mpirun knows"):
        expand(f"a,{host}")
    error = refusal(OPENMPI_RANKFILE, f"rank 0={host} slot=0\n")
    assert (error.line, "which only mpirun knows" in error.reason) == (1, True)


MAP = read("placements/openmpi5_display_map.txt").decode()
BIND = read("placements/openmpi5_display_bind.txt").decode()
NAMED = MAP.replace("[59672,1]", "prterun-login1-3333100@1")


@pytest.mark.parametrize("text", [MAP, NAMED, MAP + MAP, f"srun: note\n{MAP}output of a rank\n"])
def test_the_map_of_open_mpi_5_is_recognised_and_read(text: str) -> None:
    assert catalog.recognise(file(text).as_group()).name == "openmpi-map"
    assert hosts_of(OPENMPI_MAP, text) == ("n0001", "n0002", "n0001", "n0002")


@pytest.mark.parametrize(
    "text",
    [
        BIND,
        BIND.replace(":3333100]", "]").replace(":118]", "]"),
        BIND.replace("bound to package[0][core:2]", "is not bound (or bound to all available processors)"),
        BIND.replace("Rank", "MCW rank"),
        f"output\n{BIND}Rank 0 bound to win\n",
    ],
)
def test_the_bindings_of_open_mpi_5_are_recognised_and_read(text: str) -> None:
    assert catalog.recognise(file(text).as_group()).name == "openmpi-map"
    assert hosts_of(OPENMPI_MAP, text) == ("node701",) * 4 + ("node702",) * 4


def test_the_developers_map_of_prrte_is_read() -> None:
    text = read("placements/openmpi_devel_map.txt").decode()
    named = text.replace("[4227,1]", "prterun-node0001-77@1")
    assert named != text
    assert hosts_of(OPENMPI_MAP, named) == hosts_of(OPENMPI_MAP, text)


def test_the_map_of_old_versions_is_read() -> None:
    text = (
        " ========================   JOB MAP   ========================\n\n Data for node: a\tNum procs: 1\n"
        " \tProcess OMPI jobid: [87,1] Process rank: 0\n\n Data for node: b\tNum procs: 1\n"
        " \tProcess OMPI jobid: [87,1] Process rank: 1\n"
    )
    assert catalog.recognise(file(text).as_group()).name == "openmpi-map"
    assert hosts_of(OPENMPI_MAP, text) == ("a", "b")


def test_maps_of_two_jobs_are_refused() -> None:
    second = NAMED.replace("@1", "@2").replace("rank: ", "rank: 1")
    assert refusal(OPENMPI_MAP, NAMED + second).reason == "maps of two jobs"
