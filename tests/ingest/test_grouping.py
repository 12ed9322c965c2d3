"""Which files are one source, and profiles that were recorded twice over."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.profiles.edge_csv import csv_text
from ingest.grouping import anchored, folder_of, gather
from ingest.options import Options
from ingest.pipeline import plan
from ingest.reading.source import SourceGroup, read_paths
from registry.errors import InputError, InvalidValue
from registry.model import Profile
from tests.support.inputs import DATA, archive, file


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("a.json", "."),
        ("x/a.json", "x"),
        ("r.tar!a.json", "r.tar"),
        ("r.tar!d/a.json", "r.tar!d"),
        ("/a", "/"),
    ],
)
def test_the_folder_of_a_file_may_be_an_archive(path: str, folder: str) -> None:
    assert folder_of(path) == folder


def test_files_of_a_rank_each_are_one_source_however_they_are_given(tmp_path: Path) -> None:
    ranks = archive("profiles/dumpi2ascii_lulesh_8.tar.xz")
    folder = tmp_path / "run"
    folder.mkdir()
    paths = [folder / Path(one.path.rpartition("!")[2]).name for one in ranks]
    for path, one in zip(paths, ranks, strict=True):
        path.write_bytes(one.data)
    by_folder, by_name = (gather(read_paths(given)) for given in ([folder], paths))
    packed = gather(read_paths([DATA / "profiles/dumpi2ascii_lulesh_8.tar.xz"]))
    for sources in (by_folder, by_name, packed):
        ((format, group),) = sources
        assert (format.name, len(group.files)) == ("dumpi2ascii", 8)


def test_files_of_two_folders_are_two_sources_and_other_formats_stay_apart(tmp_path: Path) -> None:
    ranks = archive("profiles/dumpi2ascii_lulesh_8.tar.xz")
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        for number, one in enumerate(ranks):
            (tmp_path / run / f"{number}.txt").write_bytes(one.data)
    (tmp_path / "one" / "edges.csv").write_text("src,dst,bytes\n0,1,2\n")
    (tmp_path / "one" / "more.csv").write_text("src,dst,bytes\n0,1,2\n")
    found = gather(read_paths([tmp_path]))
    assert [(format.name, len(group.files)) for format, group in found] == [
        ("dumpi2ascii", 8),
        ("edge-csv", 1),
        ("edge-csv", 1),
        ("dumpi2ascii", 8),
    ]


def test_the_first_file_of_a_folder_spares_the_others_the_other_formats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ingest import catalog

    asked: list[str] = []
    whole = catalog.recognise

    def counted(group: SourceGroup) -> catalog.Format:
        asked.append(group.path)
        return whole(group)

    monkeypatch.setattr(catalog, "recognise", counted)
    ranks = archive("profiles/dumpi2ascii_lulesh_8.tar.xz")
    files = [file(one.data, f"d/{number}.txt") for number, one in enumerate(ranks)]
    files.insert(4, file("src,dst,bytes\n0,1,2\n", "d/edges.csv"))
    found = gather(SourceGroup(path=one.path, files=(one,)) for one in files)
    assert [(format.name, len(group.files)) for format, group in found] == [
        ("dumpi2ascii", 8),
        ("edge-csv", 1),
    ]
    assert asked == ["d/0.txt", "d/edges.csv", "d/4.txt"]


def test_a_folder_of_two_archives_has_an_anchor_for_each() -> None:
    names = [
        "t/a.otf2",
        "t/a.def",
        "t/a/0.evt",
        "t/a/0.def",
        "t/b.otf2",
        "t/b.def",
        "t/b/0.evt",
        "t/c.def",
        "t/x/0.evt",
    ]
    groups = [SourceGroup(path=name, files=(file(b"x", name),)) for name in reversed(names)]
    found = {group.path: [one.path for one in group.files] for group in anchored(groups)}
    assert found["t/a.otf2"][0] == "t/a.otf2"
    assert sorted(found["t/a.otf2"]) == sorted(names[:4])
    assert sorted(found["t/b.otf2"]) == sorted(names[4:7])
    assert {"t/c.def", "t/x/0.evt"} <= found.keys()


def test_a_pattern_of_files_in_a_tar_is_read_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "r.tar"
    with tarfile.open(path, "w") as made:
        for name in ("b.csv", "a.csv"):
            (tmp_path / name).write_text("src,dst,bytes\n0,1,2\n")
            made.add(tmp_path / name, name)
    assert [profile.name for profile in plan([path]).profiles] == ["b", "a"]


# --- recorded twice over --------------------------------------------------------------------------------


def edges_of(profile: Profile) -> list[tuple[int, int, float, int]]:
    columns = (profile.sender, profile.partner, profile.bytes, profile.messages)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@st.composite
def recordings(draw: st.DrawFn) -> Profile:
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 99), st.integers(1, 9)),
            min_size=1,
            max_size=9,
        )
    )
    source, target, size, count = zip(*rows, strict=True)
    return Profile.from_edges(source, target, size, ranks=draw(st.integers(6, 8)), messages=count, name="p")


@given(recordings(), st.integers(2, 3))
def test_a_profile_recorded_several_times_over_is_divided_to_what_it_was(
    tmp_path_factory: pytest.TempPathFactory, once: Profile, times: int
) -> None:
    path = tmp_path_factory.mktemp("doubled") / "p.csv"
    repeated = Profile.from_edges(
        once.sender, once.partner, once.bytes * times, ranks=once.ranks, messages=once.messages * times
    )
    path.write_text(csv_text(repeated))
    (found,) = plan([path], Options(divide=times)).profiles
    assert edges_of(found) == edges_of(once)
    assert found.ranks == once.ranks
    if once.pairs:
        assert found.source == f"edge-csv, divided by {times}"


def test_what_is_no_multiple_was_not_recorded_so_often(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("src,dst,bytes,messages\n0,1,8,2\n1,0,8,3\n")
    with pytest.raises(InputError, match="cannot have been recorded 2 times: 1") as caught:
        plan([path], Options(divide=2))
    assert "1 to 0: 3 messages" in (caught.value.text or "")


@pytest.mark.parametrize(
    ("rows", "warned"),
    [
        ("0,1,8,2\n1,0,8,4\n", "even number of messages"),
        ("0,1,8,2\n1,0,8,3\n", ""),
        ("0,1,7,2\n1,0,8,2\n", ""),
        ("0,1,7,1\n1,0,9,3\n0,1,7,1\n1,0,9,3\n", "every row is repeated"),
        ("0,1,7,1\n0,1,7,1\n1,0,9,3\n1,0,9,3\n", "every row is repeated"),
    ],
)
def test_what_may_be_doubled_is_said(tmp_path: Path, rows: str, warned: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"src,dst,bytes,messages\n{rows}")
    warnings = " ".join(plan([path]).warnings)
    assert warned in warnings if warned else not warnings


def test_open_mpis_monitoring_is_never_said_to_be_doubled() -> None:
    """NAS CG sends every message an even number of times."""
    report = plan([DATA / "openmpi/npb_cg_S_16.tar.gz"], Options(kinds=("E",)))
    assert bool((report.profiles[0].messages % 2 == 0).all())
    assert not any("even number" in warning for warning in report.warnings)


@given(recordings())
def test_what_is_written_as_edges_is_read_back_with_its_silent_ranks(
    tmp_path_factory: pytest.TempPathFactory, profile: Profile
) -> None:
    path = tmp_path_factory.mktemp("edges") / "p.csv"
    path.write_text(csv_text(profile))
    (found,) = plan([path]).profiles
    assert edges_of(found) == edges_of(profile)
    assert found.ranks == profile.ranks


@pytest.mark.parametrize("told", ["x", "0", "99999999999", "-1", ""])
def test_a_number_of_ranks_that_is_none_is_refused(tmp_path: Path, told: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"# ranks: {told}\nsrc,dst,bytes\n0,1,2\n")
    with pytest.raises(InputError, match="invalid number of ranks") as caught:
        plan([path])
    assert caught.value.line == 1
    path.write_text("# ranks: 1\nsrc,dst,bytes\n0,1,2\n")
    with pytest.raises(InputError, match="contains rank 1, but declares 1 ranks"):
        plan([path])


@pytest.mark.parametrize("values", [{"divide": 0}, {"parts": 0}, {"domain": -1}, {"collectives": "star"}])
def test_options_out_of_range_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        Options(**values)  # type: ignore[arg-type]


def test_bytes_that_are_fractions_survive_the_way_through_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(csv_text(Profile.from_edges([0, 1], [1, 0], [0.1, 1e300], messages=[1, 1])))
    assert np.array_equal(plan([path]).profiles[0].bytes, [0.1, 1e300])
