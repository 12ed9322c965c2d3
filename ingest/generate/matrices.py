"""Sparse symmetric matrices by formula, and the traffic of matrix-vector products with them.

They replace the real and large matrices of Hoefler and Snir 2011 (section 5.2, Table 2): `kkt` has the
structure of nlpkkt240 exactly, at any size; `crankshaft` is a body like F1 and audikw_1, of any size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pymetis

from ingest.generate.checks import whole
from registry.errors import InvalidValue
from registry.model import Floats, Ints, Longs, Profile

DOUBLE = 8
F1_NODES = 114_597
"""A third of F1's 343,791 rows."""
AUDIKW_NODES = 314_565
"""A third of audikw_1's 943,695 rows."""
VOLUME = 8.2
"""Volume of a throw of the crankshaft, in its own unit of length cubed."""
LARGEST = 300
"""Largest `kkt` that fits the memory of a large machine."""


class SparseMatrix(NamedTuple):
    """The pattern of a symmetric matrix in blocks of `unknowns` x `unknowns`, in CSR."""

    indptr: Longs
    indices: Ints
    """int64[blocks + 1] and int32[entries]: Blocks that are not zero, except those on the diagonal."""
    unknowns: int
    """Number of rows of a block."""
    diagonal: int
    """Number of diagonal blocks that are not zero."""

    @property
    def rows(self) -> int:
        """Number of rows of the whole matrix."""
        return (len(self.indptr) - 1) * self.unknowns

    @property
    def nonzeros(self) -> int:
        """Number of entries of the whole matrix, both triangles."""
        return (len(self.indices) + self.diagonal) * self.unknowns**2


def kkt(side: int) -> SparseMatrix:
    """Return the matrix of an optimality system with boundary control of a cube, like nlpkkt80 to nlpkkt240.

    The rows are ``side ** 3`` states, 6 side^2 controls (one for each point of each face) and ``side ** 3``
    multipliers. A multiplier is coupled to the 27 states around its point and, on a face, to the 9 controls
    around it. These are ``2 side^3 + 6 side^2`` rows and
    ``2 (3 side - 2)^3 + 12 (3 side - 2)^2 + side^3 + 6 side^2`` entries, as for nlpkkt240 and nlpkkt80.
    (The 401,232,976 of the paper's Table 2 are one triangle with the multipliers' zero diagonal.)
    """
    whole("kkt.side", side, 1, LARGEST)
    cube, face = side**3, side**2
    states = np.arange(cube).reshape((side,) * 3)
    controls = cube + np.arange(6 * face).reshape(6, side, side)
    multipliers = states + cube + 6 * face
    pairs = [_shifted(multipliers, states)]
    for axis in range(3):
        for end in range(2):
            border = np.take(multipliers, -end, axis=axis)
            pairs.append(_shifted(border, controls[2 * axis + end]))
    one, other = np.concatenate(pairs, axis=1)
    return _matrix(one, other, 2 * cube + 6 * face, 1, cube + 6 * face)


def crankshaft(nodes: int, *, throws: int = 4, unknowns: int = 3) -> SparseMatrix:
    """Return the stiffness matrix of a crankshaft in elements of eight nodes, with `unknowns` per node.

    The body is a shaft along x with `throws` crank pins beside it, a quarter of a turn apart, each between
    two webs. The nodes are the `nodes` points of a cubic lattice that are deepest in the body. Nodes that
    differ by at most one in every coordinate share an element: at most 27, including the node itself. F1 and
    audikw_1 are unstructured meshes of such bodies: `F1_NODES` and `AUDIKW_NODES` give their numbers of rows,
    and 25.6 and 71.9 million entries instead of the real matrices' 26.8 and 77.7. (The paper's Table 2 has
    all entries of F1 but one triangle of audikw_1.)
    """
    whole("crankshaft.nodes", nodes, 8, 1 << 23)
    whole("crankshaft.throws", throws, 1, 64)
    whole("crankshaft.unknowns", unknowns, 1, 16)
    scale = (nodes / (VOLUME * throws)) ** (1 / 3)  # lattice points per unit of length
    length, half = int(np.ceil(3.2 * throws * scale)), int(np.ceil(2.0 * scale))
    x = (np.arange(length) / scale)[:, None, None]
    y = (np.arange(-half, half + 1) / scale)[None, :, None]
    z = y.reshape(1, 1, -1)
    depth = _depth(x, y, z, throws)
    inside = np.sort(np.argsort(-depth, axis=None, kind="stable")[:nodes])
    if len(inside) < nodes:
        raise InvalidValue("crankshaft.nodes", f"{nodes} points do not lie about the body")
    number = np.full(depth.shape, -1)
    number.ravel()[inside] = np.arange(nodes)
    one, other = _shifted(number, number)
    keep = (one >= 0) & (other > one)
    return _matrix(one[keep], other[keep], nodes, unknowns, nodes)


def product_traffic(matrix: SparseMatrix, ranks: int, *, seed: int = 0, name: str = "") -> Profile:
    """Return the profile of a product of the matrix with a vector, after METIS has cut the matrix into parts.

    Part p needs every element of the vector for which one of its rows has an entry. Elements of other parts
    are sent once, 8 bytes each (Hoefler and Snir 2011, section 5.2). METIS cuts the graph of the matrix's
    blocks k-way; its objective is the number of entries cut, with 3% imbalance. There are at most as many
    ranks as blocks.
    """
    blocks = len(matrix.indptr) - 1
    whole("product_traffic.ranks", ranks, 1, blocks)
    owner = partition(matrix, ranks, seed=seed)
    row = np.repeat(np.arange(blocks), np.diff(matrix.indptr))
    return _needed(owner, row, matrix.indices, ranks, DOUBLE * matrix.unknowns, name)


def pattern_traffic(
    row: Longs, column: Longs, rows: int, ranks: int, *, seed: int = 0, name: str = ""
) -> Profile:
    """Return the same for a square matrix given as entries, symmetric or not.

    METIS cuts the graph of the matrix and its transpose together; only the entries determine the messages.

    Args:
        row, column (int[e]): Rows and columns of the entries, from 0; entries may be repeated.
        rows: Number of rows of the matrix, at least as many as ranks.
    """
    whole("pattern_traffic.rows", rows, 1)
    whole("pattern_traffic.ranks", ranks, 1, rows)
    one, other = np.asarray(row, np.int64), np.asarray(column, np.int64)
    low, high = np.minimum(one, other), np.maximum(one, other)
    key = np.unique(low[low < high] * rows + high[low < high])
    owner = partition(_matrix(key // rows, key % rows, rows, 1, rows), ranks, seed=seed)
    return _needed(owner, one, other, ranks, DOUBLE, name)


def _needed(owner: Longs, row: Longs, column: Longs | Ints, ranks: int, size: int, name: str) -> Profile:
    """Return the vector elements that parts need from each other, each once with `size` bytes."""
    crosses = owner[row] != owner[column]
    count = np.int64(len(owner))
    needed = np.unique(owner[row[crosses]] * count + column[crosses])
    target, element = needed // count, needed % count
    sent = np.full(len(needed), float(size))
    return Profile.from_edges(
        owner[element], target, sent, ranks=ranks, name=name, application="sparse matrix-vector product"
    )


def partition(matrix: SparseMatrix, ranks: int, *, seed: int = 0) -> Longs:
    """Return the part of each block, by METIS (int64[blocks])."""
    if ranks == 1:
        return np.zeros(len(matrix.indptr) - 1, np.int64)
    options = pymetis.Options(seed=seed)
    graph = pymetis.CSRAdjacency(matrix.indptr.astype(np.int32), matrix.indices)
    _, part = pymetis.part_graph(ranks, adjacency=graph, recursive=False, options=options)
    return np.asarray(part, np.int64)


def _shifted(first: Longs, second: Longs) -> Longs:
    """Return pairs of entries whose coordinates differ by at most one (int64[2, pairs])."""
    pairs = []
    for step in np.ndindex((3,) * first.ndim):
        here = tuple(slice(max(0, 1 - s), n - max(0, s - 1)) for s, n in zip(step, first.shape, strict=True))
        there = tuple(slice(max(0, s - 1), n - max(0, 1 - s)) for s, n in zip(step, first.shape, strict=True))
        pairs.append(np.stack((first[here].ravel(), second[there].ravel())))
    return np.concatenate(pairs, axis=1)


def _matrix(one: Longs, other: Longs, blocks: int, unknowns: int, diagonal: int) -> SparseMatrix:
    """Return both triangles from pairs of different blocks, each given once."""
    key = np.sort(np.r_[one * np.int64(blocks) + other, other * np.int64(blocks) + one])
    indptr = np.searchsorted(key, np.arange(blocks + 1) * np.int64(blocks)).astype(np.int64)
    return SparseMatrix(indptr, (key % blocks).astype(np.int32), unknowns, diagonal)


def _depth(x: Floats, y: Floats, z: Floats, throws: int) -> Floats:
    """Return the largest depth of a point in a journal, a web or a pin; negative outside the body."""
    whole_length = 3.2 * throws
    turned = np.floor(x / 3.2)
    along = x - 3.2 * turned
    angle = np.pi / 2 * turned
    cy, cz = 1.0 * np.cos(angle), 1.0 * np.sin(angle)
    from_axis = np.hypot(y, z)
    journal = np.minimum(0.75 - from_axis, np.minimum(along + 0.1, 0.9 - along))
    journal = np.maximum(journal, np.minimum(0.75 - from_axis, np.minimum(along - 2.3, 3.3 - along)))
    pin = np.minimum(0.6 - np.hypot(y - cy, z - cz), np.minimum(along - 1.0, 2.2 - along))
    foot = np.clip(y * cy + z * cz, -0.4, 1.0)
    web = 0.85 - np.hypot(y - foot * cy, z - foot * cz)
    cheek = np.maximum(np.minimum(along - 0.7, 1.2 - along), np.minimum(along - 2.0, 2.5 - along))
    inside = np.maximum(np.maximum(journal, pin), np.minimum(web, cheek))
    return np.asarray(np.minimum(inside, np.minimum(x + 0.1, whole_length + 0.1 - x)))
