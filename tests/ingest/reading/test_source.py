"""Files as they are read: compressed, in archives, of limited size."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import tarfile
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.reading import compression, source
from ingest.reading.compression import decompress, members
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


@pytest.mark.parametrize("name", ["/etc/passwd", "../up.txt", "a/../../up.txt"])
def test_archive_members_that_leave_the_archive_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="leads out of the archive"):
        list(members(tar({name: b"x"}), "a.tar"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_archive_members_that_are_links_or_devices_are_refused(kind: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(InputError, match="a link or a device"):
        list(members(tar_of(info), "a.tar"))


@pytest.mark.parametrize("squeeze", [gzip.compress, lzma.compress])
def test_a_bomb_is_stopped_at_the_limit_with_little_more_memory_than_that(
    squeeze: type[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "_CHUNK", 1 << 16)
    bomb = squeeze(bytes(20_000_000))
    assert len(bomb) < 40_000
    tracemalloc.start()
    with pytest.raises(InputError, match=r"unpacks to more than 1 MB.*unpack it first"):
        decompress(bomb, "bomb", 1_000_000)
    assert tracemalloc.get_traced_memory()[1] < 13_000_000  # an xz stream has a dictionary of 8 MiB
    tracemalloc.stop()
    assert len(decompress(bomb, "bomb", 20_000_000)) == 20_000_000


def test_content_does_not_depend_on_the_size_of_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    content = np.random.default_rng(0).integers(0, 99, 1000).astype(np.uint8).tobytes()
    packed = gzip.compress(content) + gzip.compress(b"b"), lzma.compress(content) + lzma.compress(b"b")
    for size in (1, 7, 500, 1001):
        monkeypatch.setattr(compression, "_CHUNK", size)
        assert [decompress(one, "f") for one in packed] == [content + b"b"] * 2


def test_an_archive_is_limited_in_the_sum_and_number_of_members(monkeypatch: pytest.MonkeyPatch) -> None:
    data = tar({"a": bytes(600), "b": gzip.compress(bytes(600))})
    with pytest.raises(InputError, match="unpacks to more than"):
        list(members(data, "a.tar", 1000))
    monkeypatch.setattr(compression, "MAX_MEMBERS", 2)
    with pytest.raises(InputError, match="more than 2 members"):
        list(members(tar({"a": b"", "b": b"", "c": b""}), "a.tar"))


@pytest.mark.parametrize("squeeze", [gzip.compress, lzma.compress])
def test_cut_off_compressed_data_are_an_error(squeeze: type[bytes]) -> None:
    whole = squeeze(b"some text that is long enough to cut" * 3)
    with pytest.raises(InputError, match=r"too early|damaged"):
        decompress(whole[:-9], "f")


def test_a_cut_archive_and_an_xz_stream_of_much_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="damaged"):
        list(members(tar({"a": bytes(5000)})[:2000], "a.tar"))
    monkeypatch.setattr(compression, "XZ_MEMORY", 1 << 16)
    with pytest.raises(InputError, match="damaged"):
        decompress(lzma.compress(b"x"), "f.xz")


@given(st.binary(max_size=2000), st.sampled_from([b"", b"\x1f\x8b\x08", b"\xfd7zXZ\x00"]))
def test_arbitrary_bytes_decompress_or_are_an_input_error(data: bytes, magic: bytes) -> None:
    with suppress(InputError):
        assert len(decompress(magic + data, "f", 100_000)) <= 100_000


@given(st.data())
def test_damaged_archives_are_read_or_are_an_input_error(data: st.DataObject) -> None:
    whole = bytearray(tar({"a.txt": b"hello" * 50, "b/c.txt": b"x"}))
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InputError):
        assert sum(len(member.data) for member in members(bytes(whole), "a.tar", 100_000)) <= 100_000
