"""A job that names its hosts in short on a fabric that names them in full."""

from __future__ import annotations

from dataclasses import replace

from almanac.job_environment import JobEnvironment
from almanac.running.launchers import LAUNCHERS
from almanac.running.order import Wanted, find_order
from registry.model import Profile
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.fat_tree import at, fat_tree


def test_a_placement_is_found_again_and_its_file_has_the_jobs_names(registry: Registry) -> None:
    short = fat_tree()
    hosts = tuple(short.names[vertex] for vertex in short.hosts[:2])
    full = replace(short, names=tuple(f"{name}.cluster.example" for name in short.names))
    pairs = Profile.from_edges([0, 1], [2, 3], [8e6, 8e6], ranks=4, name="pairs", application="wrf")
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=full, profiles=(pairs,)))
    job = JobEnvironment(hosts=hosts, slots=(2, 2), ranks=4)
    first = find_order(registry, Wanted(profile="pairs"), job, LAUNCHERS[0], 0.2)
    assert set(first.text.split()) == set(first.hosts) == set(hosts)
    again = find_order(registry, Wanted(profile="pairs"), job, LAUNCHERS[0], 0.2)
    assert (again.placement, again.text) == (first.placement, first.text)
    assert registry.placements.count() == 1
