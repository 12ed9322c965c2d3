"""Where launchers and jobs say that ranks sit: Open MPI, Intel MPI, MPICH, Slurm, a plain list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.catalog import Parser
from ingest.formats.placements import intel_mpi_map, openmpi_map, rank_list
from registry.errors import InputError
from tests.support.inputs import damaged, file, parse, read, survives

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
SAMPLES: list[tuple[Parser, bytes]] = [
    (openmpi_map, read("placements/openmpi_display_map.txt")),
    (openmpi_map, read("placements/openmpi_devel_map.txt")),
    (openmpi_map, read("placements/openmpi_report_bindings.txt")),
    (intel_mpi_map, INTEL.encode()),
    (rank_list, read("placements/openmpi_tag_output.txt")),
    (rank_list, read("placements/mpich_prepend_rank.txt")),
    (rank_list, read("slurm/srun_block.txt")),
]


def hosts(parser: Parser, content: str | bytes) -> tuple[str, ...]:
    placement = parse(parser, content).placements[0]
    assert placement is not None
    return placement.hosts


@pytest.mark.parametrize(
    ("parser", "name"),
    [
        (openmpi_map, "openmpi_display_map.txt"),
        (openmpi_map, "openmpi_devel_map.txt"),
        (openmpi_map, "openmpi_report_bindings.txt"),
        (rank_list, "openmpi_tag_output.txt"),
        (rank_list, "mpich_prepend_rank.txt"),
    ],
)
def test_reports_of_launchers_give_the_hosts_of_a_job(parser: Parser, name: str) -> None:
    content = read(f"placements/{name}")
    assert parser.recognise(content.decode(), "x")
    assert hosts(parser, content) == FIVE


def test_intel_mpi_says_it_in_its_debugging_output() -> None:
    assert intel_mpi_map.recognise(INTEL, "x")
    assert hosts(intel_mpi_map, INTEL) == ("c2", "c3.local", "c1")


def test_a_map_may_be_among_the_output_of_the_program() -> None:
    content = read("placements/openmpi_report_bindings.txt").decode().splitlines()
    noisy = "\n".join(["hello", *content[:2], "Process rank: 7", *content[2:], "bye"])
    assert hosts(openmpi_map, noisy) == FIVE


def test_ranks_that_are_not_bound_are_reported_too() -> None:
    text = (
        "[a:11] MCW rank 1 is not bound (or bound to all available processors)\n[b:1] MCW rank 0 bound to x\n"
    )
    assert hosts(openmpi_map, text) == ("b", "a")


@pytest.mark.parametrize(
    "text",
    [
        "0 b\n1 a\n2 b\n",
        "2 b\n0 b\n# says the job\n\n1 a\n",
        "0: b\n1: a\n2: b\n",
        "0: 0 b 4711 x\n1: 1 a\n2: 2 b\n",
        "[0] b\n[1] a\n[2] b\n",
        "[1,0]<stdout>:b\n[1,1]<stdout>:a\n[1,2]<stdout>: b\n",
    ],
)
def test_every_kind_of_list_is_read(text: str) -> None:
    assert rank_list.recognise(text, "x")
    assert hosts(rank_list, text) == ("b", "a", "b")


@pytest.mark.parametrize(
    ("parser", "text", "line", "reason"),
    [
        (rank_list, "0 a\n0 b\n", 2, "rank 0 is repeated on b, first in line 1 on a"),
        (rank_list, "0 a\n2 b\n", 2, "1 of 3 ranks are missing, rank 1 first"),
        (rank_list, "0 a\n1: b\n", 2, "not of the first line's kind"),
        (rank_list, "0 a b\n", 1, "expected a rank and its host"),
        (rank_list, "0 12\n", 1, "expected a rank and its host"),
        (rank_list, "0: 1 a\n", 1, "rank 1 is labelled 0"),
        (rank_list, "# nothing\n", None, "no ranks found"),
        (openmpi_map, "[a:1] MCW rank 0 bound to x\n[b:2] MCW rank 0 bound to x\n", 2, "rank 0 is repeated"),
        (openmpi_map, "[a:1] MCW rank 1 bound to x\n", 1, "1 of 2 ranks are missing"),
        (openmpi_map, "\tProcess OMPI jobid: [4,1] App: 0 Process rank: 0 Bound: N/A\n", 1, "a process"),
        (openmpi_map, "Data for JOB [4,1] offset 0\n", None, "no ranks found"),
        (
            openmpi_map,
            " Data for node: a\tNum slots: 2\n Process OMPI jobid: [4,1] App: 0 Process rank: 0 Bound: N/A\n"
            " Process OMPI jobid: [4,2] App: 0 Process rank: 1 Bound: N/A\n",
            3,
            "maps of two jobs",
        ),
        (intel_mpi_map, INTEL.replace("(): 2 ", "(): 1 "), 12, "rank 1 is repeated on c1, first in line 10"),
        (intel_mpi_map, INTEL.replace("c3.local", "c3 x"), 10, "expected a row of rank, process, host"),
        (intel_mpi_map, INTEL[: INTEL.index("(): 2 ")], 10, "places"),
    ],
)  # fmt: skip
def test_a_report_that_cannot_be_read_is_refused(
    parser: Parser, text: str, line: int | None, reason: str
) -> None:
    if reason == "places":
        assert hosts(parser, text) == ("c2", "c3.local")
        return
    with pytest.raises(InputError) as caught:
        hosts(parser, text)
    assert (caught.value.path, caught.value.line) == ("input", line)
    assert caught.value.reason.startswith(reason)


def test_numbers_alone_are_no_list_of_hosts() -> None:
    for text in ("0 1\n1 2\n", "4 5\n1 2 3\n", "", "0 a\n1 b c\n", "node1 0\n", "x\n", "0 0 0 0\n0 0 0 1\n"):
        assert not rank_list.recognise(text, "x")


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for parser in (openmpi_map, intel_mpi_map, rank_list):
        survives(parser, [file(body)])


@pytest.mark.parametrize(("parser", "content"), SAMPLES)
@given(data=st.data())
def test_a_damaged_report_is_read_or_refused(parser: Parser, content: bytes, data: st.DataObject) -> None:
    survives(parser, [file(data.draw(damaged(content)))])
