"""Which members run unless told: decided by what is measured of a problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ingest.generate import nas
from ingest.generate.fat_trees import extended_generalised_fat_tree
from ingest.generate.percs import percs
from ingest.generate.stencils import stencil
from ingest.generate.tori import hypercube
from mapping.placement.problem.objective import parse_objective
from mapping.placement.problem.problem import Problem
from mapping.placement.search.members import (
    FEW_GROUPS,
    MOST_SPECTRAL,
    QUICK,
    SMALL,
    STARTS,
    WIDE,
    Features,
    default_members,
)
from registry.model import Allocation, Fabric, Profile
from tests.support.search_problems import problem_on

LONG = "layout+digit-search:on=congestion+pair-exchange+congestion-descent"
SCATTERED = "random+congestion-descent"


def on_the_first(fabric: Fabric, profile: Profile, hosts: int | None = None) -> Problem:
    allocation = Allocation.of(fabric, fabric.hosts[:hosts].tolist(), 1)
    return problem_on(fabric, profile, allocation, "shortest-paths")


def chains(problem: Problem) -> list[str]:
    members = default_members(parse_objective("congestion"), Features.of(problem))
    return [str(member.chain) for member in members]


def test_ranks_are_scattered_first_where_a_wide_direct_network_has_many_free_hosts() -> None:
    measured = Features.of(on_the_first(percs(12), stencil((8, 4, 4), 7)))
    assert measured.scattered < 1.0
    for objective, hosts, ranks, expected in (
        ("congestion", WIDE + 1, 700, [SCATTERED]),
        ("congestion", WIDE, 700, [LONG, SCATTERED]),
        ("hop-bytes", WIDE + 1, 700, ["layout+digit-search+pair-exchange"]),
    ):
        members = default_members(parse_objective(objective), replace(measured, hosts=hosts, ranks=ranks))
        assert [str(member.chain) for member in members] == expected


@pytest.mark.parametrize(
    "problem",
    [
        on_the_first(percs(12), stencil((8, 4, 4), 7), 200),
        on_the_first(extended_generalised_fat_tree((8, 8), (1, 8)), nas.cg(32)),
        on_the_first(hypercube(7), nas.cg(32)),
        on_the_first(percs(4), Profile.from_edges([], [], [], ranks=2)),
    ],
    ids=["few free hosts", "hosts on switches", "in order is better", "nothing is sent"],
)
def test_ranks_are_not_scattered_elsewhere(problem: Problem) -> None:
    measured = replace(Features.of(problem), ranks=SMALL + 1)
    assert not measured.scattered < 1.0
    members = default_members(parse_objective("congestion"), measured)
    assert {str(member.chain) for member in members} <= {*STARTS, QUICK}


def test_a_tree_of_few_switches_gets_several_searches_from_different_starts() -> None:
    tree = on_the_first(extended_generalised_fat_tree((16, 32), (1, 8)), nas.lu(512))
    direct = on_the_first(percs(16), stencil((32, 16), 5))
    assert chains(tree) == list(STARTS)
    assert chains(direct) == [LONG, QUICK]
    measured = Features.of(tree)
    wide = default_members(parse_objective("congestion"), replace(measured, ranks=MOST_SPECTRAL + 1))
    assert len(wide) == len(STARTS) - 1
    many = replace(measured, groups=FEW_GROUPS + 1)
    assert len(default_members(parse_objective("congestion"), many)) == 2


def test_scattered_is_the_ratio_of_worst_links() -> None:
    problem = on_the_first(percs(2), Profile.from_edges([0], [1], [1.0], ranks=2), 4)
    assert Features.of(problem).scattered == pytest.approx(1.0)
    assert np.isinf(Features.of(on_the_first(percs(2), stencil((2, 2), 5), 7)).scattered)
