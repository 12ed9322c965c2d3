"""Open MPI's monitoring files: what is traffic, whose file it is, and which ranks are missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ingest.formats.profiles import edge_csv, openmpi_monitoring
from ingest.options import Options
from ingest.reading.source import SourceFile, read_paths
from registry.errors import InputError, InvalidValue
from registry.model import Profile
from tests.support.inputs import DATA, archive, bytes_of, file, profile_of, read, recorded

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
    parsed = openmpi_monitoring.parse(files, options or Options())
    assert parsed.profiles
    return parsed.profiles[0]


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
    listed = profile_of(edge_csv, read(f"edges/{run}.csv.gz"), path=f"{run}.csv.gz")
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
    assert caught.value.path == "run"
    assert caught.value.reason == (
        f"what 1 of 3 ranks sent is missing ({lost}): "
        "--allow-missing-ranks ingests the recording without them"
    )
    partial = openmpi_monitoring.parse(files, Options(allow_missing_ranks=True))
    assert partial.profiles
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
    twin = SourceFile(
        path="run/app.7.prof", data=recording(1, "").data, modified_at=recording(1, "").modified_at
    )
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


@pytest.mark.parametrize(
    "line",
    [
        "E\t0\t1\t1171712 bytes\t12",
        "E\t0\t1\t11717",
        "E\t0\t1\t-5 bytes\t1 msgs sent",
        "E\t0\tx\t5 bytes\t1 msgs sent",
        "D\tMPI_COMM_WORLD\tpro",
        "D\tMPI_COMM_WORLD\tprocs: 0,,1",
        "O2A\t0\t0 by",
        "Hello from rank 0",
    ],
)
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
    assert openmpi_monitoring.recognise(tar.files[0].head(), "x")
    assert profile(tar.files).name == "npb_cg_S_16"
    assert profile(tar.files, Options(name="mine")).name == "mine"
    assert profile([recording(rank, "") for rank in range(3)]).name == "run"
