"""Generated profiles of whole programs against recordings of real runs, plain loops and published sums."""

from __future__ import annotations

from collections.abc import Callable
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.profiles import openmpi_monitoring
from ingest.generate.collectives import Algorithm
from ingest.generate.nas import ep, ft, integer_sort, lu
from ingest.generate.nas_multigrid import mg
from ingest.generate.patterns import (
    all_to_all,
    collective,
    crankshaft_product,
    kkt_product,
    random,
    ring,
)
from ingest.generate.stencils import hpcg, lulesh
from ingest.options import Options
from registry.errors import InvalidValue
from registry.model import Profile
from tests.support.inputs import archive

Edges = dict[tuple[int, int], tuple[float, int]]


def edges(of: Profile) -> Edges:
    values = zip(of.bytes.tolist(), of.messages.tolist(), strict=True)
    return dict(zip(zip(of.sender.tolist(), of.partner.tolist(), strict=True), values, strict=True))


def measured(run: str, kinds: tuple[str, ...] = ("E",)) -> Profile:
    parsed = openmpi_monitoring.parse(archive(f"openmpi/{run}.tar.gz"), Options(kinds=kinds))
    assert parsed.profiles
    return parsed.profiles[0]


@pytest.mark.parametrize("side", [3, 4])
def test_lulesh_equals_recordings_of_real_runs(side: int) -> None:
    made = lulesh(side, size=5, iterations=10)
    assert edges(made) == edges(measured(f"lulesh_s5_i10_{side**3}"))


def test_hpcg_equals_a_recording_of_a_real_run() -> None:
    """Its 1,857 exchanges are 166 V-cycles and 197 products: three equations, two unknowns."""
    made = hpcg((4, 4, 4), points=(16, 16, 16), cycles=166, products=197)
    assert edges(made) == edges(measured("hpcg_16_64"))


def test_ft_equals_a_recording_but_for_what_starts_and_ends_it() -> None:
    """All-to-alls in columns are point to point in the recording, those in rows are not: both are taken."""
    made, real = edges(ft(64, points=(128, 128, 32), steps=6)), edges(measured("npb_ft_W_64", ("E", "I")))
    exchanged = edges(measured("npb_ft_W_64"))
    assert exchanged.items() <= made.items()
    assert made.keys() <= real.keys()
    assert all(0 <= real[pair][0] - size < 700 for pair, (size, _) in made.items())
    assert sum(size for pair, (size, _) in real.items() if pair not in made) < 0.0001 * made_sum(made)


def test_ep_equals_a_recording_but_for_what_starts_and_ends_it() -> None:
    made, real = edges(ep(64)), edges(measured("npb_ep_S_64", ("E", "I")))
    assert made.keys() == {pair for pair, (size, _) in real.items() if size >= 100}
    assert all(real[pair][0] - size in (0, 4) for pair, (size, _) in made.items())
    assert all(count == 4 for _, count in made.values())


def made_sum(of: Edges) -> float:
    return sum(size for size, _ in of.values())


def test_is_has_the_pairs_and_the_sum_of_a_recording() -> None:
    """Which keys go where is drawn at random: pairs differ, by less than half."""
    made, real = integer_sort(64, keys=1 << 20), measured("npb_is_W_64", ("E", "I"))
    one, other = edges(made), edges(real)
    assert one.keys() == other.keys()
    assert made.bytes.sum() == pytest.approx(real.bytes.sum(), rel=0.01)
    assert all(size == pytest.approx(other[pair][0], rel=0.5) for pair, (size, _) in one.items())


@pytest.mark.parametrize("ranks", [16, 64])
def test_mg_equals_recordings_of_real_runs(ranks: int) -> None:
    """64 ranks on 32 points: on the coarsest levels only some of them work."""
    assert edges(mg(ranks, points=32, cycles=4)) == edges(measured(f"npb_mg_S_{ranks}"))


def test_lu_equals_a_recording_but_for_what_ends_it() -> None:
    made = edges(lu(16, points=12, steps=50, with_start=True))
    real = edges(measured("npb_lu_S_16"))
    assert made.keys() == real.keys()
    for (source, target), (size, count) in made.items():
        more_bytes, more = real[source, target][0] - size, real[source, target][1] - count
        assert 0 <= more_bytes <= 176
        assert 0 <= more <= 2
        assert (more == 0) == (more_bytes == 0)
        assert target < source or more == 0


@pytest.mark.parametrize("ranks", [2, 64, 512])
def test_ft_sends_all_points_in_every_transform_but_what_stays(ranks: int) -> None:
    made = ft(ranks, points=(512, 512, 512), steps=20)
    assert made.bytes.sum() == pytest.approx(22 * 16 * 512**3 * (ranks - 1) / ranks)
    assert made.pairs == ranks * (ranks - 1)


def test_ft_on_more_ranks_than_planes_exchanges_in_rows_and_columns() -> None:
    made = ft(4096, points=(2048, 1024, 1024), steps=1)
    assert made.pairs == 4096 * (3 + 1023)
    whole = 3 * 16 * 2048 * 1024 * 1024
    assert made.bytes.sum() == pytest.approx(whole * (3 / 4 + 1023 / 1024))


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
    assert edges(mg(ranks, points=points, cycles=3)) == slow_mg(ranks, points, 3)


def test_mg_on_4096_ranks_sends_the_borders_of_its_cubes() -> None:
    """Class D: cubes of 64 points; the finest level, 157 exchanges, is nearly three quarters of the bytes."""
    made = mg(4096)
    finest = 8 * 157 * 2 * (64 * 64 + 66 * 64 + 66 * 66) * 4096
    assert finest / made.bytes.sum() == pytest.approx(0.745, abs=0.01)
    near = np.bincount(made.sender, minlength=4096)
    assert int(near.min()) >= 6


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
    made = edges(hpcg((2, 2, 2), points=(32, 16, 8), cycles=1, products=0))
    x, y, z = (sum(n >> level for level in range(4)) for n in (32, 16, 8))
    weighted = [3, 3, 3, 1]
    face = sum((16 >> level) * (8 >> level) * w for level, w in enumerate(weighted))
    assert made[0, 1] == (8 * face, 10)  # along x: a plane of y and z
    line = sum((32 >> level) * w for level, w in enumerate(weighted))
    assert made[0, 6] == (8 * line, 10)  # along y and z: a line of x
    assert made[0, 7] == (8 * 10, 10)
    assert (x, y, z) == (60, 30, 15)


@given(ranks=st.integers(2, 30), partners=st.integers(1, 29), seed=st.integers(0, 9))
def test_random_partners_are_others_without_repeats_and_follow_the_seed(
    ranks: int, partners: int, seed: int
) -> None:
    partners = min(partners, ranks - 1)
    made = random(ranks, partners=partners, skew=1.0, seed=seed)
    assert np.diff(made.indptr).tolist() == [partners] * ranks
    again = random(ranks, partners=partners, skew=1.0, seed=seed)
    assert edges(made) == edges(again)
    assert made.self_edges == 0


def test_the_mean_of_skewed_bytes_is_the_given_one() -> None:
    made = random(2000, partners=20, bytes=100.0, skew=1.0)
    assert made.bytes.mean() == pytest.approx(100, rel=0.05)
    assert made.bytes.std() > 100


def test_plain_patterns_have_the_pairs_of_their_names() -> None:
    assert edges(ring(4, bytes=2)) == {(a, (a + 1) % 4): (2, 1) for a in range(4)}
    assert ring(4, both_ways=True).pairs == 8
    assert ring(2, both_ways=True).pairs == 2
    assert edges(all_to_all(3, bytes=5)) == {(a, b): (5, 1) for a in range(3) for b in range(3) if a != b}
    assert collective("all-gather", 6, bytes=3, groups=2).bytes.tolist() == [2.0] * 6


@pytest.mark.parametrize("algorithm", ["tree", "hierarchical"])
def test_a_collective_uses_the_given_algorithm(algorithm: Algorithm) -> None:
    made = collective("all-reduce", 8, bytes=8, algorithm=algorithm, domain=4)
    assert made.application == f"all-reduce, {algorithm}"
    assert made.bytes.sum() == pytest.approx(2 * 8 * 7)


def test_products_with_generated_matrices_are_profiles() -> None:
    assert kkt_product(8, side=6).ranks == 8
    assert crankshaft_product(8, nodes=2000).pairs > 8


WRONG: dict[str, Callable[[], object]] = {
    "mg.ranks": lambda: mg(48),
    "mg.points": lambda: mg(64, points=100),
    "ft.ranks": lambda: ft(48),
    "is.ranks": lambda: integer_sort(48),
    "is.keys": lambda: integer_sort(64, keys=3),
    "ep.ranks": lambda: ep(0),
    "lulesh.side": lambda: lulesh(0),
    "hpcg.points": lambda: hpcg((2, 2, 2), points=(12, 16, 16)),
    "random.partners": lambda: random(4, partners=4),
    "random.skew": lambda: random(4, partners=1, skew=-1),
    "ring.bytes": lambda: ring(4, bytes=0),
    "all_to_all.ranks": lambda: all_to_all(10_000),
    "collective.groups": lambda: collective("all-reduce", 6, groups=4),
}


@pytest.mark.parametrize("field", WRONG)
def test_a_parameter_out_of_range_is_named(field: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        WRONG[field]()
    assert caught.value.field == field
