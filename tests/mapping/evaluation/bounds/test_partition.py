"""Least bytes between groups of ranks, against every grouping of few ranks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.patterns import all_to_all, ring
from ingest.generate.stencils import stencil
from mapping.evaluation.bounds import partition, small_groups
from mapping.evaluation.bounds.cables import Cables
from mapping.evaluation.bounds.guest_graph import Partners, guest_arrays
from mapping.evaluation.bounds.partition import Crossings, eigenvalues, flows, heaviest_partners, spectrum
from mapping.evaluation.bounds.small_groups import SmallGroups
from registry.model import Floats, Profile
from tests.support.small_fabrics import profiles
from tests.support.sure import sure


def groupings(profile: Profile, slots: list[int]) -> list[np.ndarray]:
    """Every way to put ranks into groups of limited size: the group of each rank."""
    every = (np.array(one) for one in itertools.product(range(len(slots)), repeat=profile.ranks))
    return [one for one in every if (np.bincount(one, minlength=len(slots)) <= slots).all()]


@given(profile=profiles(min_ranks=2, max_ranks=6), data=st.data())
def test_no_grouping_sends_less_than_any_argument_proves(profile: Profile, data: st.DataObject) -> None:
    """Nor do the groups of single ranks send less than small groups prove."""
    slots = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    while sum(slots) < profile.ranks:
        slots[0] += 1
    every, guest = groupings(profile, slots), guest_arrays(profile)
    least = min(float(profile.bytes[one[profile.sender] != one[profile.partner]].sum()) for one in every)
    least = least * (1 + 1e-9) + 1e-9
    filled = np.diff(np.minimum(np.cumsum(np.sort(slots)[::-1]), profile.ranks), prepend=0)
    size = int(filled.max())
    assert heaviest_partners(Partners.of(profile, guest), size) <= least
    assert eigenvalues(spectrum(guest), filled[filled > 0]) <= least
    assert flows(guest, size) <= least
    found, argument = Crossings(profile).least(np.array(slots))
    assert found <= least, argument
    assert of(profile).crossing(np.array(slots)) <= least
    leaving = of(profile).leaving(np.array(slots), sent(profile))
    if leaving is not None:
        of_rank = np.min([sent_by_groups(profile, one) for one in every], axis=0)
        assert (leaving <= of_rank * (1 + 1e-9) + 1e-9).all()


def test_eigenvalues_are_exact_where_all_talk_to_all_and_flows_nearly() -> None:
    """Two groups of three: nine pairs cross, both ways."""
    guest = guest_arrays(all_to_all(6))
    assert eigenvalues(spectrum(guest), np.array([3, 3])) == pytest.approx(18.0)
    assert 15.0 < flows(guest, 3) <= 18.0
    assert Crossings(all_to_all(6)).least(np.array([3, 3]))[0] == pytest.approx(18.0)


def test_heaviest_partners_are_exact_for_pairs_on_a_path() -> None:
    profile = Profile.from_edges([0, 1, 2], [1, 2, 3], [5.0, 1.0, 5.0])
    assert heaviest_partners(Partners.of(profile, guest_arrays(profile)), 2) == pytest.approx(1.0)


def test_flows_prove_what_eigenvalues_cannot_on_a_long_ring() -> None:
    """A ring of 64 in four arcs of 16 is cut four times; eigenvalues see 0.9 of that four-fold less."""
    guest = guest_arrays(ring(64))
    by_flows, by_eigenvalues = flows(guest, 16), eigenvalues(spectrum(guest), np.full(4, 16))
    assert by_eigenvalues < 0.5 * by_flows
    assert 2.0 < by_flows <= 4.0


def test_one_group_for_all_and_a_silent_guest_cross_nothing_and_groups_of_one_send_everything() -> None:
    assert Crossings(all_to_all(4)).least(np.array([4, 4]))[0] == 0.0
    assert Crossings(Profile.from_edges([], [], [], ranks=4)).least(np.array([2, 2]))[0] == 0.0
    assert Crossings(all_to_all(4)).least(np.ones(5, np.int64)) == (12.0, "all bytes")


def test_flows_are_not_sought_where_a_good_grouping_rules_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> float:
        raise AssertionError

    monkeypatch.setattr(partition, "flows", fail)
    monkeypatch.setattr(partition, "MAX_EIGEN_RANKS", 0)
    monkeypatch.setattr(partition, "SMALL", 2)
    assert Crossings(ring(64)).least(np.full(4, 16), above=1000.0)[0] == 0.0


@given(
    capacity=st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=1, max_size=5),
    load=st.integers(0, 50),
    data=st.data(),
)
def test_no_spreading_beats_the_least_time(capacity: list[float], load: int, data: st.DataObject) -> None:
    n = len(capacity)
    there = np.array(data.draw(st.lists(st.integers(0, 20), min_size=n, max_size=n)), np.float64)
    share = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), np.float64)
    cables = Cables(usable=np.ones(n, bool), capacity=np.array(capacity), background=there)
    least = cables.least_seconds(np.ones(n, bool), load)
    if share.sum() > 0 and load > 0:
        ours = load * share / share.sum()
        assert least <= ((ours + there) / capacity)[ours > 0].max() * (1 + 1e-12)
    room = np.maximum(least * np.array(capacity) - there, 0.0).sum()
    assert room == pytest.approx(load, abs=1e-9)


@given(ranks=st.integers(3, 12), data=st.data())
def test_proved_eigenvalues_are_below_the_exact_ones(ranks: int, data: st.DataObject) -> None:
    """All eigenvalues, and the second alone by a Cholesky factorisation, against numpy's."""
    weight = st.one_of(st.just(0.0), st.floats(0.5, 9.0))
    upper = data.draw(st.lists(weight, min_size=ranks * ranks, max_size=ranks * ranks))
    matrix = np.triu(np.reshape(upper, (ranks, ranks)), 1)
    low, high = np.nonzero(matrix)
    guest = guest_arrays(Profile.from_edges(low, high, matrix[low, high], ranks=ranks))
    exact = np.linalg.eigvalsh(np.diag((matrix + matrix.T).sum(axis=0)) - matrix - matrix.T)
    if not matrix.any():
        assert len(spectrum(guest)) == 0
        return
    room = 1e-9 * exact[-1]
    assert (spectrum(guest) <= exact + room).all()
    second = partition._second_eigenvalue(guest)
    assert (second <= exact[: len(second)] + room).all()


def test_the_second_eigenvalue_alone_is_nearly_exact_for_many_ranks_that_all_talk() -> None:
    """All of n that all exchange w have the eigenvalue n * w but for one."""
    second = partition._second_eigenvalue(guest_arrays(all_to_all(40)))
    assert second[1] == pytest.approx(80.0, rel=0.003)
    assert eigenvalues(second, np.array([20, 20])) == pytest.approx(2 * 400.0, rel=0.003)


GRID = stencil((4, 4), 5)
"""Ranks on a square, each of which sends 1 byte to each of its neighbours."""


def sent_by_groups(profile: Profile, group: np.ndarray) -> Floats:
    """Bytes that the group of each rank sends to other groups."""
    apart = group[profile.sender] != group[profile.partner]
    leaving = np.bincount(group[profile.sender][apart], profile.bytes[apart], int(group.max()) + 1)
    return np.asarray(leaving[group], np.float64)


def of(profile: Profile) -> SmallGroups:
    return SmallGroups(guest_arrays(profile))


def sent(profile: Profile) -> Floats:
    return np.bincount(profile.sender, profile.bytes, profile.ranks).astype(np.float64)


@given(profile=profiles(min_ranks=2, max_ranks=7), size=st.integers(2, 4))
def test_the_best_group_of_each_rank_is_the_best_of_all_subsets(profile: Profile, size: int) -> None:
    """The least bytes out of any group with a rank, if the other ranks may be anywhere."""
    slots = np.full(profile.ranks, size)
    found = of(profile).leaving(slots, sent(profile))
    expected = np.full(profile.ranks, np.inf)
    for count in range(1, size + 1):
        for chosen in itertools.combinations(range(profile.ranks), count):
            inside = np.isin(np.arange(profile.ranks), chosen)
            out = profile.bytes[inside[profile.sender] & ~inside[profile.partner]].sum()
            expected[list(chosen)] = np.minimum(expected[list(chosen)], out)
    if found is not None:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_four_in_a_square_keep_the_most_of_a_grid() -> None:
    """Of the 24 edges of a 4 x 4 grid four squares keep 16, both ways; three each of a rank's partners 24."""
    assert of(GRID).crossing(np.full(4, 4)) == pytest.approx(16.0)
    assert of(GRID).crossing(np.full(8, 2)) == pytest.approx(48.0 - 16.0)


def test_groups_without_free_slots_have_further_ranks() -> None:
    """A corner's square sends 4. With free slots a corner alone sends 2, each of the middle still 4."""
    full, free = (sure(of(GRID).leaving(np.full(groups, 4), sent(GRID))) for groups in (4, 16))
    assert full.min() == full[5] == 4.0
    assert (free[0], free[5]) == (2.0, 4.0)


def test_a_slot_more_is_used_by_the_ranks_that_gain_most() -> None:
    """A triangle and five ranks without partners: a group of three keeps all, groups of two one edge."""
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [9.0, 9.0, 9.0], ranks=8)
    assert of(profile).crossing(np.array([3, 2, 2, 1])) == pytest.approx(0.0)
    assert of(profile).crossing(np.array([2, 2, 2, 2])) >= 9.0
    assert of(profile).crossing(np.array([2, 1, 1, 1, 1, 1, 1])) == pytest.approx(18.0)


def test_nothing_is_proved_if_there_are_too_many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of(GRID).crossing(np.full(2, 9)) == 0.0
    monkeypatch.setattr(small_groups, "MAX_ENUMERATED", 50)
    few = of(GRID)
    assert few.crossing(np.full(4, 4)) == 0.0
    assert few.leaving(np.full(4, 4), np.zeros(16)) is None
