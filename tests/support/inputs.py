"""Helpers of the parser tests: files in memory, damaged files, and what a parser may do with them."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import strategies as st

from ingest.formats.profiles.openmpi_monitoring import OPENMPI_MONITORING
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Fabric, Profile
from tests.support import paths

DATA = paths.DATA
JUNK = [b"-1", b"nan", b"99999999999999999999", b"\t", b"]", b"[0-", b"=", b"None", b"{}", b"[]", b'"']
WHEN = datetime(2026, 1, 1, tzinfo=UTC)
Content = str | bytes


def file(content: Content, path: str = "input") -> SourceFile:
    data = content.encode() if isinstance(content, str) else content
    return SourceFile(path=path, data=data, modified_at=WHEN)


def read(name: str) -> bytes:
    """Return a file of tests/data, decompressed."""
    data = (DATA / name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


def archive(name: str) -> list[SourceFile]:
    path = str(DATA / name)
    with tarfile.open(path) as opened:
        files = [(info.name, opened.extractfile(info)) for info in opened if info.isreg()]
        return [file(handle.read(), f"{path}!{member}") for member, handle in files if handle is not None]


def tar(entries: dict[str, bytes], *, mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in entries.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 1_700_000_000
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def tar_of(info: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(info)
    return buffer.getvalue()


def parse(parser: Format, content: Content, options: Options | None = None, *, path: str = "input") -> Parsed:
    return parser.parse([file(content, path)], options or Options())


def fabric_of(parser: Format, content: Content, options: Options | None = None, **path: str) -> Fabric:
    return fabric_in(parse(parser, content, options, **path))


def fabric_in(parsed: Parsed) -> Fabric:
    assert parsed.fabric is not None
    return parsed.fabric


def profile_of(parser: Format, content: Content, options: Options | None = None, **path: str) -> Profile:
    (profile,) = parse(parser, content, options, **path).profiles
    return profile


def hosts_of(parser: Format, content: Content, options: Options | None = None) -> tuple[str, ...]:
    (placement,) = parse(parser, content, options).placements
    return placement.hosts


def refusal(
    parser: Format, content: Content, options: Options | None = None, path: str = "input"
) -> InputError:
    with pytest.raises(InputError) as caught:
        parse(parser, content, options, path=path)
    assert caught.value.path is not None
    assert caught.value.path.partition("!")[0] == path  # or a member of the archive
    return caught.value


def survives(parser: Format, files: Sequence[SourceFile], options: Options | None = None) -> None:
    """Check that a parser reads or raises `InputError`, and that recognising a file never raises."""
    for given in files:
        parser.recognise(given.head(), given.path)
    refused = None
    try:
        parser.parse(files, options or Options())
    except InputError as error:
        refused = error
    assert refused is None or (refused.reason and "\n" not in str(refused))


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Return the bytes of a real file after a cut, a loss, a repetition, an overwrite or a swap of lines."""
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, min(len(data), start + 200)))
    how = draw(st.sampled_from(["cut", "lost", "doubled", "overwritten", "swapped"]))
    if how == "cut":
        return data[:start]
    if how == "lost":
        return data[:start] + data[end:]
    if how == "doubled":
        return data[:end] + data[start:]
    if how == "overwritten":
        junk = draw(st.binary(max_size=8) | st.sampled_from(JUNK))
        return data[:start] + junk + data[end:]
    lines = data.split(b"\n")
    i, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def recorded(run: str, *kinds: str) -> Profile:
    """Return what Open MPI's monitoring recorded of a run in tests/data."""
    files = archive(f"openmpi/{run}.tar.gz")
    return OPENMPI_MONITORING.parse(files, Options(kinds=kinds) if kinds else Options()).profiles[0]


def traffic_of(profile: Profile) -> dict[tuple[int, int], tuple[float, int]]:
    return {(source, target): (size, count) for source, target, size, count in edges_of(profile)}


def bytes_of(profile: Profile) -> dict[tuple[int, int], float]:
    return {(source, target): size for source, target, size, _ in edges_of(profile)}


def edges_of(profile: Profile) -> list[tuple[int, int, float, int]]:
    columns = (profile.sender, profile.partner, profile.bytes, profile.messages)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@st.composite
def recordings(draw: st.DrawFn) -> Profile:
    """Return a small profile with messages, some ranks of which are silent."""
    row = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 99), st.integers(1, 9))
    source, target, size, count = zip(*draw(st.lists(row, min_size=1, max_size=9)), strict=True)
    return Profile.from_edges(source, target, size, ranks=draw(st.integers(6, 8)), messages=count, name="p")
