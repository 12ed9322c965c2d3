"""Numbering of links: both directions side by side, links with proportional loads as one."""

from __future__ import annotations

import numpy as np
import pytest

from ingest.generate.fat_trees import three_level
from ingest.generate.tori import mesh, torus
from mapping.placement.problem.problem import Problem
from mapping.placement.refine.link_grid import build_link_grid
from registry.model import Fabric
from tests.support.search_problems import everything_on


@pytest.mark.parametrize("fabric", [torus((4, 3)), mesh((3, 4)), three_level(4)])
def test_opposite_directions_are_adjacent_cells(fabric: Fabric) -> None:
    cell, links = build_link_grid(everything_on(fabric), merge=False).of_link, fabric.links
    of_ends = {ends: int(cell[row]) for row, ends in enumerate(zip(links.source, links.target, strict=True))}
    assert len(set(cell.tolist())) == len(links)
    assert all(of_ends[b, a] == other ^ 1 for (a, b), other in of_ends.items())


def test_background_keeps_links_apart() -> None:
    problem = everything_on(three_level(4))
    busy = np.zeros(len(problem.routes.fabric.links))
    busy[np.flatnonzero(problem.routes.fabric.network_link)[3]] = 5.0
    loaded = Problem(
        profile=problem.profile, allocation=problem.allocation, routes=problem.routes, link_background=busy
    )
    assert (build_link_grid(loaded).of_link >= 0).all()
    assert build_link_grid(loaded).background.sum() == 5.0
