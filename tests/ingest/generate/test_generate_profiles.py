"""Profiles by formula: stencils, the NAS benchmarks against recordings of real runs, matrices."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ingest.formats.profiles import openmpi_monitoring
from ingest.generate import nas
from ingest.generate.matrices import SparseMatrix, crankshaft, kkt, partition, product_traffic
from ingest.generate.stencils import renumbered, shuffled, stencil
from ingest.generate.wave_fronts import snap, sweep3d
from ingest.options import Options
from registry.errors import InvalidValue
from registry.model import Profile
from tests.support.inputs import archive


def edges(profile: Profile) -> dict[tuple[int, int], float]:
    pairs = zip(profile.sender.tolist(), profile.partner.tolist(), strict=True)
    return dict(zip(pairs, profile.bytes.tolist(), strict=True))


def symmetric(profile: Profile) -> bool:
    found = edges(profile)
    return all(found.get((b, a)) == size for (a, b), size in found.items())


def measured(run: str) -> Profile:
    """Point-to-point messages of a real run."""
    parsed = openmpi_monitoring.parse(archive(f"openmpi/{run}.tar.gz"), Options(kinds=("E",)))
    assert parsed.profiles
    return parsed.profiles[0]


RUNS: dict[str, Callable[[], Profile]] = {
    "npb_bt_A_it5_64": lambda: nas.bt(64, points=64, steps=5),
    "npb_sp_A_it5_64": lambda: nas.sp(64, points=64, steps=5),
    "npb_sp_A_it5_256": lambda: nas.sp(256, points=64, steps=5),
    "npb_sp_S_16": lambda: nas.sp(16, points=12, steps=100),
    "npb_cg_S_16": lambda: nas.cg(16, rows=1400, iterations=15),
    "npb_cg_S_64": lambda: nas.cg(64, rows=1400, iterations=15),
}


@pytest.mark.parametrize("run", RUNS)
def test_bytes_and_messages_equal_those_of_a_real_run(run: str) -> None:
    real, made = measured(run), RUNS[run]()
    assert edges(made) == edges(real)
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
    if program is nas.bt:
        solves = 3 * 8 * 4096 * 35 * 7 * 7 * 63 * 2
    else:
        solves = 3 * 8 * 32 * 406 * 406 * 63 * 2
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
    found = edges(profile)
    inner = 36 * 10 + 10
    assert found[inner, inner + 1] / found[inner, inner + 36] == pytest.approx(36 / 48)


@pytest.mark.parametrize(("ranks", "wide"), [(2, 2), (256, 16), (512, 32), (4096, 64)])
def test_lu_chooses_its_grid_as_the_program_does(ranks: int, wide: int) -> None:
    assert edges(nas.lu(ranks)).keys() == edges(nas.lu(ranks, grid=(wide, ranks // wide))).keys()


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
    assert edges(stencil(sides, points, periodic=periodic, bytes=weight)) == expected


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
    every = points - 1
    assert stencil(sides, points, periodic=True).pairs == np.prod(sides) * every


def test_shuffling_keeps_the_traffic_and_follows_the_seed() -> None:
    plain = stencil((4, 4, 4), 7)
    one, again, other = (stencil((4, 4, 4), 7, seed=seed) for seed in (1, 1, 2))
    assert edges(one) == edges(again) != edges(other)
    order = np.random.default_rng(1).permutation(64)
    assert edges(renumbered(plain, order)) == edges(shuffled(plain, 1))
    back = np.argsort(order)
    assert edges(renumbered(one, back)) == edges(plain)


@pytest.mark.parametrize("side", [1, 2, 5, 12])
def test_the_control_problems_matrix_has_the_counts_of_its_formula(side: int) -> None:
    matrix = kkt(side)
    assert matrix.rows == 2 * side**3 + 6 * side**2
    line = 3 * side - 2
    assert matrix.nonzeros == 2 * line**3 + 12 * line**2 + side**3 + 6 * side**2


def test_the_formula_gives_the_papers_counts_for_nlpkkt240() -> None:
    """Hoefler and Snir 2011, Table 2: 27,993,600 rows, 401,232,976 entries (a triangle)."""
    side, line = 240, 718
    rows = 2 * side**3 + 6 * side**2
    entries = 2 * line**3 + 12 * line**2 + side**3 + 6 * side**2
    assert rows == 27_993_600
    assert (entries + side**3 + rows) // 2 == 401_232_976


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
    assert edges(product_traffic(matrix, 7, seed=3)) == expected


def test_a_product_on_one_rank_sends_nothing() -> None:
    assert product_traffic(kkt(3), 1).pairs == 0


WRONG: dict[str, Callable[[], object]] = {
    "bt.ranks": lambda: nas.bt(60),
    "sp.points": lambda: nas.sp(64, points=7),
    "sp.steps": lambda: nas.sp(64, steps=0),
    "cg.ranks": lambda: nas.cg(48),
    "lu.grid": lambda: nas.lu(48),
    "snap.grid": lambda: snap((0, 4)),
    "snap.chunk": lambda: snap((2, 2), points=(10, 1, 1), chunk=4),
    "sweep3d.mesh": lambda: sweep3d((2, 3), mesh=(2, 2, 1)),
    "sweep3d.block": lambda: sweep3d((2, 2), angles=6, block=4),
    "stencil.points": lambda: stencil((4, 4), 7),
    "stencil.bytes": lambda: stencil((4, 4), 9, bytes=(1.0,)),
    "renumbered.order": lambda: renumbered(stencil((2, 2), 5), np.zeros(4, int)),
    "kkt.side": lambda: kkt(301),
    "crankshaft.nodes": lambda: crankshaft(7),
    "product_traffic.ranks": lambda: product_traffic(kkt(1), 9),
}


@pytest.mark.parametrize("field", WRONG)
def test_a_parameter_out_of_range_is_named(field: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        WRONG[field]()
    assert caught.value.field == field
