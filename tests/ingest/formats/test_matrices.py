"""Matrices and graphs as profiles: orientation, traps of formats, bombs, damaged files."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.profiles import npz
from ingest.formats.profiles.matrices import DENSE_CSV, MATRIX_MARKET, METIS_GRAPH
from ingest.formats.profiles.npz import NPZ
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import MAX_UNPACKED
from tests.support.inputs import bytes_of, file, parse, profile_of, read, recorded, refusal, survives

PARSERS = (DENSE_CSV, MATRIX_MARKET, METIS_GRAPH, NPZ)


def as_npz(**arrays: object) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


# --- dense ---------------------------------------------------------------------------------------------


def test_a_recorded_dense_matrix_is_the_recording_and_a_rank_order_is_none() -> None:
    found = profile_of(DENSE_CSV, read("profiles/snap_16_dense_bytes.csv"))
    assert bytes_of(found) == bytes_of(recorded("snap_16", "E"))
    assert not DENSE_CSV.recognise("0,2\n1,3\n", "MPICH_RANK_ORDER")
    assert DENSE_CSV.recognise("0,2\n1,0\n", "m.csv")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " , "])
def test_a_row_is_a_sender_by_default(delimiter: str) -> None:
    text = "\n".join(delimiter.join(row) for row in (["0", "5", "0"], ["0", "9", "7"], ["0", "0", "0"]))
    plain = profile_of(DENSE_CSV, text)
    assert bytes_of(plain) == {(0, 1): 5, (1, 2): 7}
    assert (plain.self_edges, plain.self_bytes) == (1, 9)
    assert bytes_of(profile_of(DENSE_CSV, text, Options(transposed=True))) == {(1, 0): 5, (2, 1): 7}


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("0,1\n2,0,3\n", 2, "3 numbers instead of 2"),
        ("0,1\n2,x\n", 2, "not a finite number"),
        ("0,1\n2,inf\n", 2, "not a finite number"),
        ("0,1\n2,0\n3,0\n", None, "3 rows and 2 columns"),
        ("0,-1\n2,0\n", None, "negative"),
        ("0,1\n\0,0\n", 2, "binary"),
        ("0,1\n\n2,x\n", 3, "not a finite number"),
    ],
)
def test_faults_of_a_dense_matrix_are_named_with_their_lines(
    text: str, line: int | None, reason: str
) -> None:
    error = refusal(DENSE_CSV, text)
    assert reason in error.reason
    assert error.line == line


# --- Matrix Market --------------------------------------------------------------------------------------


def test_bytes_of_a_matrix_market_file_are_those_that_scipy_reads() -> None:
    data = read("profiles/openfoam_64.mtx")
    matrix = scipy.io.mmread(io.BytesIO(data)).tocoo()
    found = profile_of(MATRIX_MARKET, data)
    assert (found.ranks, found.pairs) == (64, 612)
    entries = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)
    assert bytes_of(found) == {(row, column): size for row, column, size in entries}


@given(st.data())
def test_what_scipy_writes_is_read_back_symmetric_or_not(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 6))
    cells = st.lists(st.integers(0, 4), min_size=size * size, max_size=size * size)
    dense = np.array(data.draw(cells)).reshape(size, size)
    if data.draw(st.booleans()):
        dense = dense + dense.T
    matrix = scipy.sparse.coo_array(dense) if data.draw(st.booleans()) else dense
    if scipy.sparse.issparse(matrix) and not dense.any():
        return
    out = io.BytesIO()
    scipy.io.mmwrite(out, matrix)
    found = profile_of(MATRIX_MARKET, out.getvalue())
    off = {(i, j): float(dense[i, j]) for i, j in np.ndindex(size, size) if i != j and dense[i, j]}
    assert bytes_of(found) == off
    assert found.ranks == size


SYMMETRIC = "%%MatrixMarket matrix coordinate real symmetric\n% c\n\n3 3 3\n1 1 9\n2 1 5\n3 2 7\n"


def test_the_lower_triangle_of_a_symmetric_file_is_expanded() -> None:
    assert bytes_of(profile_of(MATRIX_MARKET, SYMMETRIC)) == {(0, 1): 5, (1, 0): 5, (1, 2): 7, (2, 1): 7}


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("symmetric", "diagonal", 1, "banner"), ("real", "pattern", 1, "--parts P"),
        ("real", "complex", 1, "--parts P"), ("symmetric", "skew-symmetric", 1, "cannot be bytes"),
        ("3 3 3", "3 3", 4, "expected the line of sizes"), ("3 3 3", "3 4 3", 4, "not square"),
        ("3 3 3", "3 3 4", None, "truncated"), ("2 1 5", "1 2 5", 6, "above the diagonal"),
        ("2 1 5", "4 1 5", 6, "outside the matrix"), ("2 1 5", "0 1 5", 6, "outside the matrix"),
        ("2 1 5", "2 1.5 5", 6, "outside the matrix"), ("2 1 5", "2 1", 6, "2 numbers instead of 3"),
        ("2 1 5", "2 1 -5", None, "--parts P"), ("2 1 5", "2 1 five", 6, "not a finite number"),
    ],
)  # fmt: skip
def test_faults_of_a_matrix_market_file_are_named(old: str, new: str, line: int | None, reason: str) -> None:
    error = refusal(MATRIX_MARKET, SYMMETRIC.replace(old, new))
    assert reason in error.reason
    assert error.line == line


def test_the_array_of_a_skew_symmetric_matrix_has_no_diagonal() -> None:
    head, options = "%%MatrixMarket matrix array real skew-symmetric\n12 12\n", Options(parts=3)
    found = profile_of(MATRIX_MARKET, head + "1\n" * 66, options)
    assert (found.ranks, found.pairs) == (3, 6)
    assert "truncated" in refusal(MATRIX_MARKET, head + "1\n" * 78, options).reason


def test_a_file_of_comments_and_sizes_that_no_memory_holds_are_refused_before_any_is_taken() -> None:
    assert "sizes" in refusal(MATRIX_MARKET, "%%MatrixMarket matrix coordinate real general\n% only").reason
    huge = "%%MatrixMarket matrix array real general\n900000000000000 900000000000000\n"
    assert "more than" in refusal(MATRIX_MARKET, huge).reason
    assert "entries" in refusal(MATRIX_MARKET, SYMMETRIC.replace("3 3 3", "3 3 999999999999999")).reason


# --- METIS ----------------------------------------------------------------------------------------------


def test_the_graph_and_the_matrix_of_one_run_agree_in_their_sums_over_both_directions() -> None:
    graph = profile_of(METIS_GRAPH, read("profiles/openfoam_64.graph"))
    matrix = profile_of(MATRIX_MARKET, read("profiles/openfoam_64.mtx"))
    one, other = bytes_of(graph), bytes_of(matrix)
    assert one.keys() == other.keys()
    assert all(one[a, b] + one[b, a] == other[a, b] + other[b, a] for a, b in one)


def test_sizes_and_weights_of_vertices_are_skipped_and_an_empty_line_is_a_lonely_vertex() -> None:
    text = "% c\n4 2 111 2\n7 1 1 2 10\n7 1 1 1 10 3 4\n% c\n7 1 1 2 4\n7 1 1\n"
    found = profile_of(METIS_GRAPH, text)
    assert bytes_of(found) == {(0, 1): 5, (1, 0): 5, (1, 2): 2, (2, 1): 2}
    assert found.ranks == 4
    assert bytes_of(profile_of(METIS_GRAPH, "3 1\n2\n1\n\n")) == {(0, 1): 1, (1, 0): 1}
    assert not METIS_GRAPH.recognise("2 1\nx\n1\n", "f")
    assert not METIS_GRAPH.recognise(
        "2 1\n" + "2\n1\n" * 20000, "f"
    )  # more rows than vertices in a head cut off


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("2 1 001\n2 5\n1\n", 3, "weight is missing"), ("2 1\n2\n3\n", 3, "does not exist"),
        ("2 1\n2\n0\n", 3, "does not exist"), ("2 1\n1\n2\n", 2, "next to itself"),
        ("2 1\n2\n", 2, "truncated"), ("2 1\n2\n1\n2\n", 4, "more lines"),
        ("3 1\n2\n3\n\n", None, "one end only"), ("2 1 001\n2 5\n1 6\n", None, "two weights"),
        ("2 2\n2\n1\n", 1, "2 ends"), ("2 1\n2\nx\n", 3, "whole numbers"),
        ("2 1 7\n2\n1\n", 1, "expected the header"),
        ("2 1 001\n2 99999999999999999999\n1 99999999999999999999\n", 2, "too large"),
    ],
)  # fmt: skip
def test_faults_of_a_graph_are_named(text: str, line: int | None, reason: str) -> None:
    error = refusal(METIS_GRAPH, text)
    assert reason in error.reason
    assert error.line == line


# --- NumPy ----------------------------------------------------------------------------------------------


def test_edges_of_an_archive_keep_messages_and_one_square_array_is_a_dense_matrix() -> None:
    made = as_npz(src=[0, 0, 2], dst=[1, 1, 2], bytes=[1.5, 2, 3], messages=[1, 2, 3], ranks=5)
    found = profile_of(NPZ, made)
    assert bytes_of(found) == {(0, 1): 3.5}
    assert found.messages.tolist() == [3]
    assert (found.ranks, found.self_edges) == (5, 1)
    matrix = np.array([[0, 2], [3, 0]])
    out = io.BytesIO()
    np.save(out, matrix)
    for content in (as_npz(m=matrix), out.getvalue()):
        assert bytes_of(profile_of(NPZ, content)) == {(0, 1): 2, (1, 0): 3}


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr"])
@given(seed=st.integers(0, 99))
def test_sparse_matrices_of_scipy_are_read_in_each_of_its_formats(format: str, seed: int) -> None:
    dense = np.random.default_rng(seed).integers(0, 3, (6, 6))
    out = io.BytesIO()
    scipy.sparse.save_npz(out, scipy.sparse.coo_array(dense).asformat(format))
    expected = {(i, j): float(dense[i, j]) for i, j in np.ndindex(6, 6) if i != j and dense[i, j]}
    assert bytes_of(profile_of(NPZ, out.getvalue())) == expected
    flipped = {(j, i): size for (i, j), size in expected.items()}
    assert bytes_of(profile_of(NPZ, out.getvalue(), Options(transposed=True))) == flipped


def npy(header: str, content: bytes = np.zeros(4).tobytes()) -> bytes:
    """An array with a header as it is written here."""
    text = f"{header}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


def test_a_header_of_python_2_is_read_without_a_warning_and_one_of_no_python_is_refused() -> None:
    data = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 2L), }", np.ones(4).tobytes())
    profile = profile_of(NPZ, data, path="a.npy")
    assert (profile.ranks, profile.bytes.tolist()) == (2, [1, 1])
    negative = "{'descr': '<f8', 'fortran_order': False, 'shape': (-2, -2)}"
    for header in ("{'descr': '<f8', 'shape': (2, 2", "{'shape': 'x", "", "[" * 9000, negative):
        assert "array" in refusal(NPZ, npy(header), path="a.npy").reason, header[:40]


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_arrays_packed_as_numpy_does_are_read_and_damaged_ones_refused(packing: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as packed:
        packed.writestr("matrix.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}"))
    data = out.getvalue()
    assert parse(NPZ, data, path="a.npz").profiles
    start = data.index(b"matrix.npy") + len("matrix.npy")
    for at in range(start, data.index(b"PK\x01")):
        survives(NPZ, [file(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :], "a.npz")])


def promises() -> bytes:
    """A header that promises 2^80 numbers."""
    out = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 1 << 40)}
    np.lib.format.write_array_header_1_0(out, shape)
    return out.getvalue()


NPZ_FAULTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "objects": (lambda: as_npz(src=np.array([{}], object), dst=[1], bytes=[1]), "arrays of object are not"),
    "promises": (promises, "an array is truncated, or longer than its header"),
    "cut": (lambda: as_npz(src=[0], dst=[1], bytes=[1])[:-30], "damaged"),
    "lengths": (lambda: as_npz(src=[0], dst=[1, 2], bytes=[1]), "differ in length"),
    "negative": (lambda: as_npz(src=[0], dst=[-1], bytes=[1]), "dst is not a column of whole numbers"),
    "fraction": (lambda: as_npz(src=[0.5], dst=[1], bytes=[1]), "src is not a column of whole numbers"),
    "nan": (lambda: as_npz(src=[0], dst=[1], bytes=[np.nan]), "not finite"),
    "ranks": (lambda: as_npz(src=[0], dst=[7], bytes=[1], ranks=7), "does not fit the highest rank"),
    "unknown": (lambda: as_npz(src=[0], dst=[1], bytes=[1], tags=[1]), "unknown array"),
    "two": (lambda: as_npz(a=np.eye(2), b=np.eye(2)), "neither"),
    "oblong": (lambda: as_npz(a=np.ones((2, 3))), "not square"),
    "text": (lambda: as_npz(src=["a"], dst=[1], bytes=[1]), "not a column of numbers"),
    "dia": (lambda: as_npz(format=np.array(b"dia"), shape=[2, 2], data=[[1]], offsets=[0]), "csr, csc, coo"),
    "indices": (
        lambda: as_npz(format=np.array(b"csr"), shape=[2, 2], data=[1.0], indices=[2], indptr=[0, 1, 1]),
        "not a sparse matrix",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", NPZ_FAULTS)
def test_archives_that_are_damaged_hostile_or_of_other_things_are_refused(fault: str) -> None:
    make, reason = NPZ_FAULTS[fault]
    assert reason in refusal(NPZ, make()).reason


def test_an_archive_that_unpacks_to_too_much_or_unknown_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "MAX_UNPACKED", 1 << 20)
    made = as_npz(m=np.zeros((400, 400)))
    assert len(made) < 1 << 12
    assert "unpacks to more than" in refusal(NPZ, made).reason
    out = io.BytesIO()
    np.savez(out, matrix=np.ones((2, 2)))
    data = bytearray(out.getvalue())
    data[8] = data[data.index(b"PK\x01") + 10] = 97  # the number of WavPack
    assert "unsupported compression of the archive" in refusal(NPZ, bytes(data), path="a.npz").reason


# --- all ------------------------------------------------------------------------------------------------


def test_the_product_of_a_matrix_cut_into_parts_is_the_same_from_every_format() -> None:
    """Hoefler and Snir 2011, section 5.2, by a plain loop over the entries."""
    from ingest.generate.matrices import _matrix, partition

    generator = np.random.default_rng(5)
    dense = np.triu(generator.random((40, 40)) < 0.1, 1)
    dense = dense | dense.T
    np.fill_diagonal(dense, True)
    low, high = np.nonzero(np.triu(dense, 1))
    owner = partition(_matrix(low, high, 40, 1, 40), 5)
    needs = {(owner[i], j) for i, j in zip(*np.nonzero(dense), strict=True) if owner[i] != owner[j]}
    expected: dict[tuple[int, int], float] = {}
    for part, element in needs:
        pair = int(owner[element]), int(part)
        expected[pair] = expected.get(pair, 0) + 8
    market, sparse = io.BytesIO(), io.BytesIO()
    scipy.io.mmwrite(market, scipy.sparse.coo_array(dense.astype(float)), field="pattern")
    scipy.sparse.save_npz(sparse, scipy.sparse.csr_array(dense.astype(float)))
    rows = [" ".join(str(j + 1) for j in np.flatnonzero(row) if j != i) for i, row in enumerate(dense)]
    graph = "\n".join([f"40 {len(low)}", *rows]) + "\n"
    files = ((MATRIX_MARKET, market.getvalue()), (NPZ, sparse.getvalue()), (METIS_GRAPH, graph))
    for parser, content in files:
        parsed: Parsed = parse(parser, content, Options(parts=5))
        assert bytes_of(parsed.profiles[0]) == expected
        assert "cut the 40 rows into 5 parts" in parsed.warnings[-1]


@pytest.mark.parametrize(("parser", "content"), [(DENSE_CSV, "0,1\n1,0\n"), (MATRIX_MARKET, SYMMETRIC)])
def test_more_parts_than_rows_are_refused(parser: Format, content: str) -> None:
    assert "cannot be cut into 9 parts" in refusal(parser, content, Options(parts=9)).reason


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_files_of_nothing_but_comments_are_read_or_refused(parser: Format) -> None:
    for text in ("%\n%\n", "#\n# 1,2\n", "%%MatrixMarket matrix coordinate real general\n2 2 0\n% end\n"):
        survives(parser, [file(text)])


def refused(data: bytes) -> tuple[str, int]:
    """Return why an archive is refused, and the largest memory that this took, in bytes."""
    tracemalloc.start()
    try:
        return refusal(NPZ, data, path="a.npz").reason, tracemalloc.get_traced_memory()[1]
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
