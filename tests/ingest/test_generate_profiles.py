"""Profiles by formula against recordings of real runs, plain loops, closed forms and published sums."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ingest.generate import nas
from ingest.generate.collectives import (
    Algorithm,
    all_to_all,
    collective,
    crankshaft_product,
    kkt_product,
    random,
    ring,
)
from ingest.generate.matrices import SparseMatrix, crankshaft, kkt, partition, product_traffic
from ingest.generate.nas import ep, ft, integer_sort, lu, mg
from ingest.generate.stencils import hpcg, lulesh, renumbered, shuffled, snap, stencil, sweep3d
from registry.errors import InvalidValue
from registry.model import Profile
from tests.support.inputs import bytes_of, recorded, traffic_of

Edges = dict[tuple[int, int], tuple[float, int]]


def symmetric(profile: Profile) -> bool:
    found = bytes_of(profile)
    return all(found.get((b, a)) == size for (a, b), size in found.items())


SNAP: dict[str, Any] = {"angles": 8, "chunk": 4, "groups": 4, "iterations": 5}
"""An input that fits the recordings: 16 x 16 x 16 cells in messages of 4 cells along x."""
RUNS: dict[str, Callable[[], Profile]] = {
    "npb_bt_A_it5_64": lambda: nas.bt(64, points=64, steps=5),
    "npb_sp_A_it5_64": lambda: nas.sp(64, points=64, steps=5),
    "npb_sp_A_it5_256": lambda: nas.sp(256, points=64, steps=5),
    "npb_sp_S_16": lambda: nas.sp(16, points=12, steps=100),
    "npb_cg_S_16": lambda: nas.cg(16, rows=1400, iterations=15),
    "npb_cg_S_64": lambda: nas.cg(64, rows=1400, iterations=15),
    "npb_mg_S_16": lambda: mg(16, points=32, cycles=4),
    "npb_mg_S_64": lambda: mg(64, points=32, cycles=4),  # on the coarsest levels only some ranks work
    "lulesh_s5_i10_27": lambda: lulesh(3, size=5, iterations=10),
    "lulesh_s5_i10_64": lambda: lulesh(4, size=5, iterations=10),
    # Its 1,857 exchanges are 166 V-cycles and 197 products: three equations, two unknowns.
    "hpcg_16_64": lambda: hpcg((4, 4, 4), points=(16, 16, 16), cycles=166, products=197),
    "snap_16": lambda: snap((4, 4), points=(16, 4, 4), reductions=False, **SNAP),
    "snap_64": lambda: snap((8, 8), points=(16, 2, 2), reductions=False, **SNAP),
}


@pytest.mark.parametrize("run", RUNS)
def test_bytes_and_messages_equal_those_of_a_real_run(run: str) -> None:
    real, made = recorded(run, "E"), RUNS[run]()
    assert bytes_of(made) == bytes_of(real)
    assert np.array_equal(made.messages, real.messages)
    assert made.self_edges == real.self_edges
    assert made.self_bytes == real.self_bytes


@pytest.mark.parametrize("program", [nas.bt, nas.sp])
def test_bt_and_sp_stay_exact_at_4096_ranks(program: Callable[..., Profile]) -> None:
    """Six others each; what goes through a line of cells is the faces of all of them but one."""
    profile = program(4096, points=408, steps=1)
    assert (profile.ranks, profile.pairs) == (4096, 6 * 4096)
    assert bool((np.bincount(profile.partner) == 6).all())
    borders = 3 * 2 * 8 * 10 * 408 * 408 * 63 * 3
    bt, sp = 3 * 8 * 4096 * 35 * 7 * 7 * 63 * 2, 3 * 8 * 32 * 406 * 406 * 63 * 2
    solves = bt if program is nas.bt else sp
    assert profile.bytes.sum() == borders + solves


@pytest.mark.parametrize("bits", range(2, 13))
def test_cg_has_its_published_pattern_at_any_power_of_two(bits: int) -> None:
    """Columns that differ in a bit within the row, and a partner that points back."""
    ranks, across = 1 << bits, 1 << bits - bits // 2
    profile = nas.cg(ranks)
    assert symmetric(Profile.from_edges(profile.sender, profile.partner, np.ones(profile.pairs), ranks=ranks))
    sender, partner = profile.sender.astype(int), profile.partner.astype(int)
    step = (sender ^ partner) * (sender // across == partner // across)
    in_row = (step > 0) & (step & (step - 1) == 0)
    assert bool((np.bincount(sender[in_row], minlength=ranks) >= bits - bits // 2).all())
    assert profile.pairs + profile.self_edges == ranks * (bits - bits // 2 + 1)


def test_lu_is_a_grid_whose_borders_set_the_bytes() -> None:
    profile = nas.lu(1728, points=1728, steps=100, grid=(36, 48))
    assert profile.pairs == 2 * (35 * 48 + 36 * 47)
    assert symmetric(profile)
    found = bytes_of(profile)
    inner = 36 * 10 + 10
    assert found[inner, inner + 1] / found[inner, inner + 36] == pytest.approx(36 / 48)


@pytest.mark.parametrize(("ranks", "wide"), [(2, 2), (256, 16), (512, 32), (4096, 64)])
def test_lu_chooses_its_grid_as_the_program_does(ranks: int, wide: int) -> None:
    assert bytes_of(nas.lu(ranks)).keys() == bytes_of(nas.lu(ranks, grid=(wide, ranks // wide))).keys()


@given(st.data())
def test_a_stencil_joins_the_ranks_within_its_reach(data: st.DataObject) -> None:
    dimensions = data.draw(st.sampled_from((2, 3)))
    sides = data.draw(st.lists(st.integers(1, 4), min_size=dimensions, max_size=dimensions))
    points = data.draw(st.sampled_from((5, 9) if dimensions == 2 else (7, 19, 27)))
    periodic = data.draw(st.booleans())
    reach = {5: 1, 9: 2, 7: 1, 19: 2, 27: 3}[points]
    weight = (1.0, 0.5, 0.25)[:reach]
    places = list(product(*map(range, sides)))
    expected: dict[tuple[int, int], float] = {}
    for a, place in enumerate(places):
        for step in product((-1, 0, 1), repeat=dimensions):
            differs = sum(map(abs, step))
            moved = tuple(p + s for p, s in zip(place, step, strict=True))
            if periodic:
                moved = tuple(m % n for m, n in zip(moved, sides, strict=True))
            if 0 < differs <= reach and moved in places and moved != place:
                b = places.index(moved)
                expected[a, b] = expected.get((a, b), 0.0) + weight[differs - 1]
    assert bytes_of(stencil(sides, points, periodic=periodic, bytes=weight)) == expected


@pytest.mark.parametrize(
    ("sides", "points", "pairs"),
    [
        ((5, 7), 5, 2 * (4 * 7 + 5 * 6)),
        ((5, 7), 9, 13 * 19 - 35),
        ((5, 7, 4), 7, 2 * (4 * 28 + 6 * 20 + 3 * 35)),
        ((5, 7, 4), 27, 13 * 19 * 10 - 140),
    ],
)
def test_the_pairs_of_a_stencil_follow_the_closed_form(
    sides: tuple[int, ...], points: int, pairs: int
) -> None:
    assert stencil(sides, points).pairs == pairs
    assert stencil(sides, points, periodic=True).pairs == np.prod(sides) * (points - 1)


def test_shuffling_keeps_the_traffic_and_follows_the_seed() -> None:
    plain = stencil((4, 4, 4), 7)
    one, again, other = (stencil((4, 4, 4), 7, seed=seed) for seed in (1, 1, 2))
    assert bytes_of(one) == bytes_of(again) != bytes_of(other)
    order = np.random.default_rng(1).permutation(64)
    assert bytes_of(renumbered(plain, order)) == bytes_of(shuffled(plain, 1))
    back = np.argsort(order)
    assert bytes_of(renumbered(one, back)) == bytes_of(plain)


def counts(side: int) -> tuple[int, int]:
    """Rows and entries of the control problem's matrix."""
    line = 3 * side - 2
    return 2 * side**3 + 6 * side**2, 2 * line**3 + 12 * line**2 + side**3 + 6 * side**2


@pytest.mark.parametrize("side", [1, 2, 5, 12])
def test_the_control_problems_matrix_has_the_counts_of_its_formula(side: int) -> None:
    """Hoefler and Snir 2011, Table 2, nlpkkt240: 27,993,600 rows, 401,232,976 entries (a triangle)."""
    assert (kkt(side).rows, kkt(side).nonzeros) == counts(side)
    rows, entries = counts(240)
    assert (rows, (entries + 240**3 + rows) // 2) == (27_993_600, 401_232_976)


def pattern(matrix: SparseMatrix) -> csr_array:
    return csr_array((np.ones(len(matrix.indices)), matrix.indices, matrix.indptr))


@pytest.mark.parametrize("matrix", [kkt(6), crankshaft(3000)], ids=["kkt", "crankshaft"])
def test_matrices_are_symmetric_without_repeats(matrix: SparseMatrix) -> None:
    found = pattern(matrix)
    assert (found != found.T).nnz == 0
    assert found.data.max() == 1
    assert found.diagonal().sum() == 0
    found.sum_duplicates()
    assert found.nnz == len(matrix.indices)


def test_a_crankshaft_has_the_given_number_of_nodes_in_one_piece() -> None:
    matrix = crankshaft(20_000)
    assert matrix.rows == 60_000
    assert connected_components(pattern(matrix))[0] == 1
    assert np.diff(matrix.indptr).max() == 26


def test_a_product_sends_each_element_once_to_each_part_that_needs_it() -> None:
    """Hoefler and Snir 2011, section 5.2."""
    matrix = crankshaft(600)
    owner = partition(matrix, 7, seed=3)
    rows = pattern(matrix).tocoo()
    needs = {(owner[i], j) for i, j in zip(rows.row, rows.col, strict=True) if owner[i] != owner[j]}
    expected: dict[tuple[int, int], float] = {}
    for part, element in needs:
        pair = int(owner[element]), int(part)
        expected[pair] = expected.get(pair, 0.0) + 8 * 3
    assert bytes_of(product_traffic(matrix, 7, seed=3)) == expected


def test_ft_equals_a_recording_but_for_what_starts_and_ends_it() -> None:
    """All-to-alls in columns are point to point in the recording, those in rows are not: both are taken."""
    made = traffic_of(ft(64, points=(128, 128, 32), steps=6))
    real = traffic_of(recorded("npb_ft_W_64", "E", "I"))
    assert traffic_of(recorded("npb_ft_W_64", "E")).items() <= made.items()
    assert made.keys() <= real.keys()
    assert all(0 <= real[pair][0] - size < 700 for pair, (size, _) in made.items())
    others = sum(size for pair, (size, _) in real.items() if pair not in made)
    assert others < 0.0001 * sum(size for size, _ in made.values())


def test_ep_equals_a_recording_but_for_what_starts_and_ends_it() -> None:
    made, real = traffic_of(ep(64)), traffic_of(recorded("npb_ep_S_64", "E", "I"))
    assert made.keys() == {pair for pair, (size, _) in real.items() if size >= 100}
    assert all(real[pair][0] - size in (0, 4) for pair, (size, _) in made.items())
    assert all(count == 4 for _, count in made.values())


def test_is_has_the_pairs_and_the_sum_of_a_recording() -> None:
    """Which keys go where is drawn at random: pairs differ, by less than half."""
    made, real = integer_sort(64, keys=1 << 20), recorded("npb_is_W_64", "E", "I")
    one, other = traffic_of(made), traffic_of(real)
    assert one.keys() == other.keys()
    assert made.bytes.sum() == pytest.approx(real.bytes.sum(), rel=0.01)
    assert all(size == pytest.approx(other[pair][0], rel=0.5) for pair, (size, _) in one.items())


def test_lu_equals_a_recording_but_for_what_ends_it() -> None:
    made = traffic_of(lu(16, points=12, steps=50, with_start=True))
    real = traffic_of(recorded("npb_lu_S_16", "E"))
    assert made.keys() == real.keys()
    for (source, target), (size, count) in made.items():
        more_bytes, more = real[source, target][0] - size, real[source, target][1] - count
        assert 0 <= more_bytes <= 176
        assert 0 <= more <= (2 if target < source else 0)
        assert (more == 0) == (more_bytes == 0)


@pytest.mark.parametrize("ranks", [2, 64, 512])
def test_ft_sends_all_points_in_every_transform_but_what_stays(ranks: int) -> None:
    made = ft(ranks, points=(512, 512, 512), steps=20)
    assert made.bytes.sum() == pytest.approx(22 * 16 * 512**3 * (ranks - 1) / ranks)
    assert made.pairs == ranks * (ranks - 1)


def test_ft_on_more_ranks_than_planes_exchanges_in_rows_and_columns() -> None:
    made = ft(512, points=(256, 128, 128), steps=1)
    assert made.pairs == 512 * (3 + 127)
    whole = 3 * 16 * 256 * 128 * 128
    assert made.bytes.sum() == pytest.approx(whole * (3 / 4 + 127 / 128))


def slow_mg(ranks: int, points: int, cycles: int) -> Edges:
    """NAS MG rank by rank and level by level, as the program counts."""
    bits = int(log2(ranks))
    p = [1 << bits // 3, 1 << (bits - bits // 3) // 2, 0]
    p[2] = ranks // (p[0] * p[1])
    found: Edges = {}

    def add(source: int, target: int, doubles: int, times: int) -> None:
        if source != target:
            size, count = found.get((source, target), (0.0, 0))
            found[source, target] = size + 8 * doubles * times, count + times

    for me in range(ranks):
        place = [me % p[0], me // p[0] % p[1], me // (p[0] * p[1])]
        step = [1, 1, 1]
        levels: list[tuple[list[int], list[int]]] = []
        gives: list[list[bool]] = [[False] * 3]
        size = points
        while size >= 2:
            m = [0, 0, 0]
            for axis in range(3):

                def cut(i: int, axis: int = axis, size: int = size) -> int:
                    return (i + 1) * size // p[axis] - i * size // p[axis]

                m[axis], after = cut(place[axis]), cut(place[axis] + step[axis])
                if after == 0 or m[axis] == 0:
                    step[axis] *= 2
                if levels:
                    gives[len(levels) - 1][axis] = after == 0 and m[axis] == 1
            levels.append((m, list(step)))
            gives.append([False] * 3)
            size //= 2
        for depth, (m, step) in enumerate(levels):
            finest, coarsest = depth == 0, depth == len(levels) - 1
            times = (2 if coarsest else 3) * (cycles + 1) + (4 if finest else 0)
            for axis in range(3):
                for way in (1, -1):
                    other = list(place)
                    other[axis] = (place[axis] + way * step[axis]) % p[axis]
                    target = other[0] + p[0] * (other[1] + p[1] * other[2])
                    x, y, z = m
                    planes = (y * z, (x + 2) * z, (x + 2) * (y + 2))[axis]
                    if min(m) > 0:
                        add(me, target, planes, times)
                    x, y, z = x + 2, y + 2, z + 2
                    whole = (y * z, x * z, x * y)[axis]
                    if not coarsest and gives[depth][axis]:
                        add(me, target, whole * (2 if way == 1 else 1), cycles + 1)
    return found


@pytest.mark.parametrize(
    ("ranks", "points"), [(1, 8), (2, 8), (8, 8), (16, 16), (32, 8), (64, 16), (128, 32)]
)
def test_mg_follows_the_programs_own_counting(ranks: int, points: int) -> None:
    assert traffic_of(mg(ranks, points=points, cycles=3)) == slow_mg(ranks, points, 3)


def test_mg_on_4096_ranks_sends_the_borders_of_its_cubes() -> None:
    """Class D: cubes of 64 points; the finest level, 157 exchanges, is nearly three quarters of the bytes."""
    made = mg(4096)
    finest = 8 * 157 * 2 * (64 * 64 + 66 * 64 + 66 * 66) * 4096
    assert finest / made.bytes.sum() == pytest.approx(0.745, abs=0.01)
    assert np.bincount(made.sender, minlength=4096).min() >= 6


@pytest.mark.parametrize("side", [2, 5, 16])
def test_lulesh_stays_exact_at_any_size(side: int) -> None:
    """Every pair of neighbours shares nodes; pairs as in a stencil of 27 points (closed form)."""
    made = lulesh(side, size=10, iterations=7)
    assert made.pairs == (3 * side - 2) ** 3 - side**3
    faces, lines, corners = 3 * side**2 * (side - 1), 6 * side * (side - 1) ** 2, 4 * (side - 1) ** 3
    assert made.pairs == 2 * (faces + lines + corners)
    nodes = faces * 121 + lines * 11 + corners
    assert made.bytes.sum() == 8 * (nodes * (2 * (1 + 3 * 7) + 6 * 7) + 2 * faces * 3 * 100 * 7)


def test_hpcg_with_unequal_sides_sends_each_border_of_every_level() -> None:
    made = traffic_of(hpcg((2, 2, 2), points=(32, 16, 8), cycles=1, products=0))
    weighted = [3, 3, 3, 1]
    face = sum((16 >> level) * (8 >> level) * w for level, w in enumerate(weighted))
    assert made[0, 1] == (8 * face, 10)  # along x: a plane of y and z
    line = sum((32 >> level) * w for level, w in enumerate(weighted))
    assert made[0, 6] == (8 * line, 10)  # along y and z: a line of x
    assert made[0, 7] == (8 * 10, 10)


@given(ranks=st.integers(2, 30), partners=st.integers(1, 29), seed=st.integers(0, 9))
def test_random_partners_are_others_without_repeats_and_follow_the_seed(
    ranks: int, partners: int, seed: int
) -> None:
    partners = min(partners, ranks - 1)
    made = random(ranks, partners=partners, skew=1.0, seed=seed)
    assert np.diff(made.indptr).tolist() == [partners] * ranks
    again = random(ranks, partners=partners, skew=1.0, seed=seed)
    assert traffic_of(made) == traffic_of(again)
    assert made.self_edges == 0


def test_the_mean_of_skewed_bytes_is_the_given_one() -> None:
    made = random(2000, partners=20, bytes=100.0, skew=1.0)
    assert made.bytes.mean() == pytest.approx(100, rel=0.05)
    assert made.bytes.std() > 100


def test_plain_patterns_have_the_pairs_of_their_names() -> None:
    assert traffic_of(ring(4, bytes=2)) == {(a, (a + 1) % 4): (2, 1) for a in range(4)}
    assert ring(4, both_ways=True).pairs == 8
    assert ring(2, both_ways=True).pairs == 2
    others = [(a, b) for a in range(3) for b in range(3) if a != b]
    assert traffic_of(all_to_all(3, bytes=5)) == dict.fromkeys(others, (5, 1))
    assert collective("all-gather", 6, bytes=3, groups=2).bytes.tolist() == [2.0] * 6
    assert product_traffic(kkt(3), 1).pairs == 0
    assert kkt_product(8, side=6).ranks == 8
    assert crankshaft_product(8, nodes=2000).pairs > 8


@pytest.mark.parametrize("algorithm", ["tree", "hierarchical"])
def test_a_collective_uses_the_given_algorithm(algorithm: Algorithm) -> None:
    made = collective("all-reduce", 8, bytes=8, algorithm=algorithm, domain=4)
    assert made.application == f"all-reduce, {algorithm}"
    assert made.bytes.sum() == pytest.approx(2 * 8 * 7)


# Sweep3D and SNAP


@pytest.mark.parametrize(
    ("grid", "mesh", "planes", "block", "printed"),
    [((2, 3), (150, 150, 150), 30, 2, 840), ((2, 3), (50, 50, 50), 10, 3, 560)],
)
def test_sweep3d_sends_as_many_messages_as_it_prints(
    grid: tuple[int, int], mesh: tuple[int, int, int], planes: int, block: int, printed: int
) -> None:
    """``output.150.mpi_2x3`` and ``output.50.mpi_2x3``: "global messages per iteration"."""
    made = sweep3d(grid, mesh=mesh, planes=planes, block=block, reductions=False)
    assert made.messages.sum() == printed


def test_sweep3d_and_snap_by_hand() -> None:
    """7 x 4 x 5 points on 3 x 2 ranks: 3, 2 and 2 points along x, 2 and 2 along y.

    Four octants of 6 / 3 blocks of angles times three blocks of two planes: 24 messages a pair, each of
    2 planes x 3 angles x 8 bytes = 48 for every point along the border, the last one too.
    """
    made = traffic_of(sweep3d((3, 2), mesh=(7, 4, 5), planes=2, angles=6, block=3, reductions=False))
    assert made[0, 1] == made[1, 0] == made[1, 2] == made[4, 5] == (24 * 48 * 2, 24)
    assert made[0, 3] == made[3, 0] == (24 * 48 * 3, 24)
    assert made[1, 4] == made[2, 5] == (24 * 48 * 2, 24)
    assert len(made) == 2 * (2 * 2 + 3)
    # 12 x 2 x 3 points a rank on 2 x 3 ranks along y and z, 5 angles, 4 groups, two iterations.
    # 4 octants x 3 chunks x 4 groups x 2 = 96 messages, each of 5 angles x 4 points x 8 bytes = 160 for every
    # point along the border: 3 along z between neighbours in y, 2 along y between neighbours in z.
    box: dict[str, Any] = {"points": (12, 2, 3), "chunk": 4, "angles": 5, "groups": 4, "iterations": 2}
    made = traffic_of(snap((2, 3), reductions=False, **box))
    assert made[0, 1] == made[1, 0] == made[4, 5] == (96 * 160 * 3, 96)
    assert made[0, 2] == made[3, 1] == made[5, 3] == (96 * 160 * 2, 96)
    assert len(made) == 2 * (3 + 2 * 2)


def test_reductions_go_to_the_ranks_that_differ_in_a_bit() -> None:
    """Four ranks: Sweep3D sums 4 and 8 bytes in each iteration, SNAP 8 for each of three groups."""
    sweeps = sweep3d((4, 1), mesh=(4, 1, 1), planes=1, angles=1, block=1, iterations=5)
    assert traffic_of(sweeps) == {
        (0, 1): (4 * 8 * 5 + 60, 20 + 10), (1, 0): (160 + 60, 30), (2, 3): (220, 30), (3, 2): (220, 30),
        (1, 2): (160, 20), (2, 1): (160, 20),
        (0, 2): (60, 10), (2, 0): (60, 10), (1, 3): (60, 10), (3, 1): (60, 10),
    }  # fmt: skip
    made = traffic_of(snap((4, 1), points=(1, 1, 1), chunk=1, angles=1, groups=3, iterations=5))
    assert made[0, 2] == made[3, 1] == (8 * 3 * 5, 5)
    assert made[1, 2] == (4 * 3 * 5 * 8, 60)
    assert made[0, 1] == (4 * 3 * 5 * 8 + 8 * 3 * 5, 65)


@pytest.mark.parametrize(("run", "side"), [("snap_16", 4), ("snap_64", 8)])
def test_reductions_of_snap_are_among_the_collectives_of_a_real_run(run: str, side: int) -> None:
    points = (16, 16 // side, 16 // side)
    sent = traffic_of(snap((side, side), points=points, reductions=False, **SNAP))
    both, real = traffic_of(snap((side, side), points=points, **SNAP)), traffic_of(recorded(run, "I"))
    for pair, (size, messages) in both.items():
        alone = sent.get(pair, (0.0, 0))
        if size > alone[0]:
            assert (size - alone[0], messages - alone[1]) <= real[pair]


def test_the_two_programs_are_not_the_same_traffic_in_proportion() -> None:
    """The same grid of ranks, but uneven parts in Sweep3D, and other sums."""
    sweeps, made = sweep3d((16, 16)), snap((16, 16))
    assert traffic_of(sweeps).keys() == traffic_of(made).keys()
    ratio = sweeps.bytes / made.bytes
    assert ratio.max() / ratio.min() > 1.1
    assert len(np.unique(np.round(sweep3d((16, 16), reductions=False).bytes / made.bytes.max(), 6))) == 2


WRONG: dict[str, Callable[[], object]] = {
    "mg.ranks": lambda: mg(48), "mg.points": lambda: mg(64, points=100), "ft.ranks": lambda: ft(48),
    "is.ranks": lambda: integer_sort(48), "is.keys": lambda: integer_sort(64, keys=3),
    "ep.ranks": lambda: ep(0), "lulesh.side": lambda: lulesh(0),
    "hpcg.points": lambda: hpcg((2, 2, 2), points=(12, 16, 16)),
    "random.partners": lambda: random(4, partners=4), "random.skew": lambda: random(4, partners=1, skew=-1),
    "ring.bytes": lambda: ring(4, bytes=0), "all_to_all.ranks": lambda: all_to_all(10_000),
    "collective.groups": lambda: collective("all-reduce", 6, groups=4), "bt.ranks": lambda: nas.bt(60),
    "sp.points": lambda: nas.sp(64, points=7), "sp.steps": lambda: nas.sp(64, steps=0),
    "cg.ranks": lambda: nas.cg(48), "lu.grid": lambda: nas.lu(48), "snap.grid": lambda: snap((0, 4)),
    "snap.chunk": lambda: snap((2, 2), points=(10, 1, 1), chunk=4),
    "sweep3d.mesh": lambda: sweep3d((2, 3), mesh=(2, 2, 1)),
    "sweep3d.block": lambda: sweep3d((2, 2), angles=6, block=4), "stencil.points": lambda: stencil((4, 4), 7),
    "stencil.bytes": lambda: stencil((4, 4), 9, bytes=(1.0,)),
    "renumbered.order": lambda: renumbered(stencil((2, 2), 5), np.zeros(4, int)),
    "kkt.side": lambda: kkt(301), "crankshaft.nodes": lambda: crankshaft(7),
    "product_traffic.ranks": lambda: product_traffic(kkt(1), 9),
}  # fmt: skip


@pytest.mark.parametrize("field", WRONG)
def test_a_parameter_out_of_range_is_named(field: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        WRONG[field]()
    assert caught.value.field == field
