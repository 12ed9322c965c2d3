"""The order of a run: a stored placement for the same hosts, else a new one that the next run uses."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from almanac.job_environment import JobEnvironment
from almanac.running import order
from almanac.running.call import Unplaced
from almanac.running.launchers import LAUNCHERS, Launcher
from almanac.running.order import Order, Wanted
from mapping.placement.search.options import SearchOptions
from mapping.service.placing import place
from mapping.service.request import PlacementRequest
from registry.database.local.server import ServerAddress
from registry.errors import UnknownName
from registry.model import Profile
from registry.model.intake import Intake
from registry.model.measured_run import MeasuredRun
from registry.registry import Registry
from tests.support.fat_tree import at, fat_tree
from tests.support.full_cluster import measured_run
from tests.support.paths import ROOT


def find_order(
    registry: Registry, profile: str | None, cluster: str | None, job: JobEnvironment, **wanted: Any
) -> Order:
    wish = Wanted(profile=profile, cluster=cluster, **wanted)
    return order.find_order(registry, wish, job, LAUNCHERS[0], 0.2)


def job(registry: Registry, ranks: int = 4) -> JobEnvironment:
    fabric = registry.fabrics.read("toy").fabric
    hosts = tuple(fabric.names[vertex] for vertex in fabric.hosts[:2])
    return JobEnvironment(hosts=hosts, slots=(2, 2), ranks=ranks)


def measured(here: JobEnvironment) -> MeasuredRun:
    job: dict[str, Any] = {"hosts": here.hosts, "slots": here.slots, "ranks": 4, "started_at": at(0)}
    run = measured_run(application="wrf", program="x", launcher="l", wall_seconds=1.0, **job)
    return replace(run, step_seconds=None, steps=0)


@pytest.fixture
def filled(registry: Registry) -> Registry:
    pairs = Profile.from_edges([0, 1], [2, 3], [8e6, 8e6], ranks=4, name="pairs", application="wrf")
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), profiles=(pairs,)))
    return registry


def test_a_placement_is_searched_once_and_used_again(filled: Registry) -> None:
    first = find_order(filled, "pairs", None, job(filled))
    hosts = first.text.split()
    assert (hosts[0], hosts[1]) == (hosts[2], hosts[3]) != (hosts[1], hosts[0])
    assert first.ranks == 4
    assert "a new placement" in first.reasons[0]
    second = find_order(filled, "pairs", "toy", job(filled))
    assert (second.text, second.placement) == (first.text, first.placement)
    assert second.reasons == (f"placement {first.placement} of the same profile and hosts",)
    assert filled.placements.count() == 1


def test_other_hosts_and_another_fabric_need_another_placement(filled: Registry) -> None:
    find_order(filled, "pairs", None, job(filled))
    fabric = fat_tree()
    others = JobEnvironment(
        hosts=tuple(fabric.names[vertex] for vertex in fabric.hosts[2:4]), slots=(2, 2), ranks=4
    )
    assert "a new placement" in find_order(filled, "pairs", None, others).reasons[0]
    assert filled.placements.count() == 2


def test_what_does_not_fit_is_a_reason(filled: Registry) -> None:
    with pytest.raises(Unplaced, match="has 4 ranks, this run has 3"):
        find_order(filled, "pairs", None, job(filled, ranks=3))
    with pytest.raises(UnknownName, match="pair"):
        find_order(filled, "pair", None, job(filled))
    filled.save(Intake(cluster="other", observed_at=at(0), fabric=fat_tree()))
    with pytest.raises(Unplaced, match="the registry has 2 clusters"):
        find_order(filled, "pairs", None, job(filled))


def test_without_a_profile_the_newest_of_the_application_counts(filled: Registry) -> None:
    found = find_order(filled, None, None, job(filled), program="wrf")
    assert (found.application, found.profile) == ("wrf", filled.profiles.read("pairs").id)
    assert find_order(filled, None, None, job(filled), program="sh", name="wrf").placement == found.placement
    found = find_order(filled, None, None, job(filled, ranks=3), program="wrf")
    assert (found.text, found.profile, found.reasons) == (
        *("", None, ("no profile of wrf with 3 ranks is stored",)),
    )


def test_ranks_stay_in_order_if_that_is_asked_for(filled: Registry) -> None:
    found = find_order(filled, "pairs", None, job(filled), in_order=True, program="a")
    assert (found.text, found.placement, found.application) == ("", "", "wrf")
    assert filled.placements.count() == 0


def test_a_placement_that_measured_worse_is_not_used_again(filled: Registry) -> None:
    here = job(filled)
    first = find_order(filled, "pairs", None, here)
    run = measured(here)
    for time in (1.1, 1.2):
        filled.measured_runs.save(replace(run, placement=first.placement, wall_seconds=time))
        filled.measured_runs.save(replace(run, wall_seconds=time - 0.2))
    assert find_order(filled, "pairs", None, here).placement == first.placement
    filled.measured_runs.save(replace(run, placement=first.placement, wall_seconds=1.3))
    filled.measured_runs.save(replace(run, wall_seconds=0.95))
    found = find_order(filled, "pairs", None, here)
    assert (found.text, found.placement) == ("", "")
    assert "measured worse: a run took 1.2 s with it (3 runs) and 0.95 s in order" in found.reasons[0]
    request = PlacementRequest(
        profile="pairs", cluster="toy", hosts=here.hosts, slots=2, options=SearchOptions(steps=100)
    )
    report = place(filled, request)
    assert report.measured
    assert report.evaluation == report.in_order


_KNOWN = """
import sys
from pathlib import Path
from almanac.job_environment import JobEnvironment
from almanac.running.launchers import LAUNCHERS
from almanac.running.order import Wanted, find_order
from registry.registry import Registry
with Registry.open({uri!r}, user={user!r}, password={password!r}, name={name!r}) as registry:
    job = JobEnvironment(hosts={hosts!r}, slots=(2, 2), ranks=4)
    found = find_order(registry, Wanted(profile="pairs"), job, LAUNCHERS[0], 0.2, Path({folder!r}))
large = ("numba", "scipy", "pandas", "pyarrow", "numpy.ma", *{more!r})
print(found.placement, *found.text.split(), *(name for name in large if name in sys.modules))
"""


@pytest.mark.parametrize("written", [False, True])
def test_a_known_placement_is_read_without_large_imports(
    filled: Registry, server: ServerAddress, tmp_path: Path, written: bool, processes: None
) -> None:
    """They take longer than all else that such a run does; with its file, numpy is not needed either."""
    here = job(filled)
    first = find_order(filled, "pairs", None, here)
    filled.measured_runs.save(measured(here))
    if written:
        order.order_path(tmp_path, first.placement, LAUNCHERS[0]).write_text("as\nit\nis\nwritten\n")
    names = {name: getattr(server, name) for name in ("uri", "user", "password", "name")}
    more = ("numpy",) if written else ()
    code = _KNOWN.format(hosts=job(filled).hosts, folder=str(tmp_path), more=more, **names)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    expected = ["as", "it", "is", "written"] if written else first.text.split()
    assert done.stdout.split() == [first.placement, *expected]


def test_a_written_file_has_the_hosts_that_a_launcher_needs(filled: Registry, tmp_path: Path) -> None:
    """The master of torchrun is its first host; where each rank runs is verified by the placement."""
    wanted, here = Wanted(profile="pairs"), job(filled)
    torchrun = replace(LAUNCHERS[0], format="torchrun-rank-order", consecutive=True)

    def known(wanted: Wanted, launcher: Launcher) -> Order:
        return order.find_order(filled, wanted, here, launcher, 0.2, tmp_path)

    for launcher in (torchrun, LAUNCHERS[0]):
        first = known(wanted, launcher)
        path = order.order_path(tmp_path, first.placement, launcher)
        path.write_text(first.text)
        again = known(wanted, launcher)
        assert (again.text, again.hosts) == (first.text, first.hosts if launcher is torchrun else ())
        assert known(replace(wanted, verify=True), launcher).hosts == first.hosts
        path.write_bytes(b"\xff")
        assert known(wanted, launcher).text == first.text
