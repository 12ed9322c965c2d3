"""Decompression and archives within limits."""

from __future__ import annotations

import gzip
import lzma
import tarfile
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.reading import compression
from ingest.reading.compression import decompress, members
from registry.errors import InputError
from tests.support.inputs import tar, tar_of


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
