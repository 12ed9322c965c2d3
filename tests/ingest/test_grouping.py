"""Which files are one source."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.grouping import anchored, folder_of, gather
from ingest.reading.source import SourceGroup, read_paths
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

    recognised: list[str] = []
    whole = catalog.recognise

    def counted(group: SourceGroup) -> catalog.Format:
        recognised.append(group.path)
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
    assert recognised == ["d/0.txt", "d/edges.csv", "d/4.txt"]


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
