"""NumPy's archives that would take much memory."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from datetime import UTC, datetime

import pytest

from ingest.formats.profiles import npz
from ingest.options import Options
from ingest.reading.compression import MAX_UNPACKED
from ingest.reading.source import SourceFile
from registry.errors import InputError


def refused(data: bytes) -> tuple[str, int]:
    """Return why an archive is refused, and the largest memory that this took, in bytes."""
    file = SourceFile(path="a.npz", data=data, modified_at=datetime(2026, 1, 1, tzinfo=UTC))
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            npz.parse([file], Options())
        return caught.value.reason, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_members_are_limited_as_in_other_archives() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in ("a.npy", "b.npy"):
            archive.writestr(name, b"")
    data = bytearray(out.getvalue())
    at = data.index(b"PK\x01\x02") + 24  # the unpacked size in the list of members
    data[at : at + 4] = struct.pack("<I", MAX_UNPACKED + 1)
    reason, memory = refused(bytes(data))
    assert memory < 10_000_000

    assert reason.startswith("unpacks to more than 300 MB, the limit of compressed files and archives")


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
def test_a_member_that_unpacks_to_more_than_it_states_takes_little_memory(packing: int) -> None:
    """A member of 1 KB, as it states, of which a thousand times the memory that is allowed comes."""
    pieces, most = 1 << 18, 400_000_000
    with io.BytesIO() as out:
        with zipfile.ZipFile(out, "w", packing) as archive, archive.open("m.npy", "w") as member:
            for _ in range(most // pieces):
                member.write(bytes(pieces))
        data = bytearray(out.getvalue())
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = struct.pack("<I", 1024)
    reason, memory = refused(bytes(data))
    assert memory < 10_000_000

    assert "unsupported compression" in reason or packing == zipfile.ZIP_DEFLATED
