"""Files, folders and archives: which groups they make, and which are refused."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import tarfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.reading import source
from ingest.reading.source import SourceFile, read_paths
from registry.errors import InputError
from tests.support import inputs
from tests.support.inputs import tar, tar_of


def file(data: bytes) -> SourceFile:
    return inputs.file(data, "f")


@pytest.mark.parametrize("squeeze", [bytes, gzip.compress, lzma.compress])
def test_compression_is_recognised_by_content_not_by_name(tmp_path: Path, squeeze: type[bytes]) -> None:
    path = tmp_path / "scan.txt"
    path.write_bytes(squeeze(b"hello\n"))
    os.utime(path, (1_600_000_000, 1_600_000_000))
    (group,) = read_paths([path])
    assert group.path == str(path)
    assert [read.data for read in group.files] == [b"hello\n"]
    assert group.files[0].modified_at == datetime.fromtimestamp(1_600_000_000, UTC)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_members_of_an_archive_are_sources_of_their_own(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(tar({"x/one.txt": b"1", "two.txt.gz": gzip.compress(b"2")}, mode=mode))
    groups = read_paths([path])
    assert [group.path for group in groups] == [f"{path}!x/one.txt", f"{path}!two.txt.gz"]
    assert [group.files[0].data for group in groups] == [b"1", b"2"]
    assert groups[0].files[0].modified_at == datetime.fromtimestamp(1_700_000_000, UTC)


def test_prof_files_of_a_folder_or_archive_are_one_source_also_named_one_by_one(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a/x.0.prof", "a/x.1.prof", "b/y.0.prof")]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(path.name.encode())
    for named in (paths, [tmp_path / "a", tmp_path / "b"]):
        groups = read_paths(named)
        assert [group.path for group in groups] == [str(tmp_path / "a"), str(tmp_path / "b")]
        assert [[read.data for read in group.files] for group in groups] == [
            [b"x.0.prof", b"x.1.prof"],
            [b"y.0.prof"],
        ]
    path = tmp_path / "profile.tgz"
    path.write_bytes(tar({"d/app.0.prof": b"0", "d/app.1.prof": b"1"}, mode="w:gz"))
    (group,) = read_paths([path])
    assert [read.path for read in group.files] == [f"{path}!d/app.0.prof", f"{path}!d/app.1.prof"]


def test_a_mixed_folder_gives_every_file_and_walks_folders_in_name_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "a.prof", "sub/c.txt"):
        (tmp_path / name).write_bytes(name.encode())
    groups = read_paths([tmp_path])
    assert [Path(group.path).name for group in groups] == ["a.prof", "b.txt", "c.txt"]
    assert all(len(group.files) == 1 for group in groups)


def test_standard_input_is_read_by_the_name_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"piped"))))
    (group,) = read_paths(["-"])
    assert group.files[0].data == b"piped"


def test_missing_files_and_empty_or_large_folders_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="No such file") as caught:
        read_paths([tmp_path / "nowhere"])
    assert caught.value.path == str(tmp_path / "nowhere")
    with pytest.raises(InputError, match="folder is empty"):
        read_paths([tmp_path])
    (tmp_path / "a.tar").write_bytes(tar_of(directory("d")))
    with pytest.raises(InputError, match="the archive contains no files"):
        read_paths([tmp_path / "a.tar"])
    monkeypatch.setattr(source, "MAX_MEMBERS", 1)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match="more than 1 files"):
        read_paths([tmp_path])


def directory(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE
    return info


def test_a_link_to_a_folder_and_a_pipe_in_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "loop").symlink_to(tmp_path)
    with pytest.raises(InputError, match="links to folders are not followed"):
        read_paths([tmp_path / "d"])
    (tmp_path / "e").mkdir()
    os.mkfifo(tmp_path / "e" / "pipe")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        read_paths([tmp_path / "e"])


@pytest.mark.parametrize(
    ("data", "reason", "line", "text"),
    [
        (b"", "empty", None, None),
        (b" \n\t\r\n", "empty", None, None),
        (b"one\ntwo\n\0\n", "binary", 3, None),
        (b"one\ncaf\xe9 here\nthree", "0xe9 is not UTF-8", 2, "caf\\xe9 here"),
    ],
)
def test_text_that_is_none_is_an_error_with_its_line(
    data: bytes, reason: str, line: int | None, text: str | None
) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        file(data).text()
    assert (caught.value.line, text in (None, caught.value.text)) == (line, True)


def test_only_line_feeds_end_lines_so_that_line_numbers_agree_with_editors() -> None:
    assert file(b"\xef\xbb\xbfa\r\nb\n\nc").lines() == ["a", "b", "", "c"]
    assert file("a\x0bb\x85c\u2028d\ne\n".encode()).lines() == ["a\x0bb\x85c\u2028d", "e"]


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_text_or_an_input_error(data: bytes) -> None:
    read = file(data)
    assert isinstance(read.head(), str)
    with suppress(InputError):
        assert len(read.lines()) <= data.count(b"\n") + 1
