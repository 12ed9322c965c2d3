"""The generated machine and month that the dashboard is measured on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from bench.dashboard.jobs import DAYS, month, profiles
from bench.dashboard.machine import Machine, damaged, machine, story
from mapping.routing.catalog import build_routes
from mapping.routing.forwarding_tables import complete

PODS, LEAVES = 6, 6
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
HOSTS = [f"n{index:05d}" for index in range(4_000)]


@pytest.fixture(scope="module")
def whole() -> Machine:
    return machine(PODS, LEAVES, LEAVES)


def test_every_device_has_an_identity_and_every_port_one_cable(whole: Machine) -> None:
    fabric = whole.fabric
    links = fabric.links
    own = np.append(fabric.adapters.guid, np.uint64(0))
    guid = np.where(links.source_adapter >= 0, own[links.source_adapter], fabric.guid[links.source])
    assert (guid > 0).all()
    assert len(set(zip(guid.tolist(), links.source_port.tolist(), strict=True))) == len(links)


def test_the_two_rows_of_a_cable_name_each_others_ports(whole: Machine) -> None:
    links = whole.fabric.links
    there = zip(*(getattr(links, name).tolist() for name in ("source", "source_port")), strict=True)
    back = zip(*(getattr(links, name).tolist() for name in ("target", "target_port")), strict=True)
    assert set(there) == set(back)


def test_the_tables_follow_shortest_paths_and_spread_all_to_all_evenly(whole: Machine) -> None:
    fabric = whole.fabric
    hosts = fabric.hosts
    source, target = np.nonzero(~np.eye(len(hosts), dtype=bool))
    (loads, hops), (even, least) = (
        build_routes(name, fabric, hosts).load(source, target, np.ones(len(source)))
        for name in ("tables", "shortest-paths")
    )
    assert np.array_equal(hops, least)
    assert loads.max() <= 1.25 * even.max()


def test_damage_takes_and_slows_cables_and_the_tables_still_join_all_hosts(
    whole: Machine,
) -> None:
    for damage in story(PODS, LEAVES):
        fabric = damaged(whole, damage)
        assert complete(fabric)
        assert len(whole.fabric.links) - len(fabric.links) == 2 * len(damage.lost)
        assert (fabric.links.capacity < whole.fabric.links.capacity[0]).sum() == 2 * len(damage.slow)


def test_a_cable_that_there_is_not_cannot_be_lost(whole: Machine) -> None:
    wrong = story(PODS, LEAVES)[1]
    with pytest.raises(ValueError, match="no such cables"):
        damaged(whole, type(wrong)(before_now=timedelta(0), lost=(("p00-leaf00", "p01-up00"),)))


def test_no_host_runs_two_jobs_at_once_and_a_quarter_runs_now() -> None:
    planned = month(NOW, HOSTS, 400, seed=0)
    assert len(planned) == 400
    assert sum(one.job.ended_at is None for one in planned) == 100
    busy: dict[str, datetime] = {}
    for one in planned:
        job = one.job
        assert job.started_at is not None
        assert NOW - timedelta(days=DAYS) <= job.started_at <= NOW
        for host in job.hosts:
            assert busy.get(host, job.started_at) <= job.started_at
            busy[host] = job.ended_at or NOW


def test_a_job_has_a_slot_for_each_rank_of_its_profile() -> None:
    for one in month(NOW, HOSTS, 200, seed=1):
        if one.profile is not None:
            assert sum(one.job.slots) == one.job.ranks == profiles()[one.profile].ranks


def test_the_same_seed_gives_the_same_month() -> None:
    assert month(NOW, HOSTS, 100, seed=3) == month(NOW, HOSTS, 100, seed=3)
