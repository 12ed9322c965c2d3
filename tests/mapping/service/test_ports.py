"""Ports with counters and running jobs from the registry."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from mapping.checks.error_limits import ErrorLimits
from mapping.service.live import traffic
from mapping.service.ports import read_ports
from mapping.traffic.port_table import PortTable
from registry.errors import UnknownName
from registry.model import CounterSweep
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.busy_cluster import fill, job
from tests.support.fat_tree import LEAF_GUID, at, fat_tree

CAPACITY = 50e9


def save(registry: Registry, minutes: float, sent: int, errors: int) -> None:
    counters = {"xmit_bytes": (sent, False), "rcv_errors": (errors, False)}
    sweep = CounterSweep.of(at(minutes), {(LEAF_GUID, 0, 3): counters})
    registry.save(Intake(cluster="toy", counters=(sweep,)))


def ports(registry: Registry, since: datetime | None = None, until: float = 5000) -> PortTable:
    return read_ports(registry, traffic(registry, "toy", at(until)), ErrorLimits(), since)


def test_errors_are_those_of_a_day_and_use_that_between_the_last_two_sweeps(registry: Registry) -> None:
    fill(registry, job("7", 2))
    hour = 60
    for hours, errors in ((0, 0), (30, 100), (53, 120), (54, 121)):
        save(registry, 10 + hours * hour, int(CAPACITY) * hours, errors)
    table = ports(registry)
    assert table.errors is not None
    assert table.rates is not None
    assert (table.errors.grown.start, table.errors.grown.end) == (at(10 + 30 * hour), at(10 + 54 * hour))
    assert (table.rates.start, table.rates.end) == (at(10 + 53 * hour), at(10 + 54 * hour))
    (port, *_) = table.top(9)
    assert (port.name, port.errors[0].growth) == ("leaf0:3", 21)
    assert port.sent_share == pytest.approx(1 / 3600)
    assert port.jobs == ()
    earlier = ports(registry, until=10 + 53 * hour)
    assert earlier.top(1)[0].errors[0].growth == 120  # since the sweep before the day
    chosen = ports(registry, at(10 + 20 * hour))
    assert chosen.top(1)[0].errors[0].growth == 121
    assert chosen.rates is not None
    assert (chosen.rates.start, chosen.rates.end) == (at(10), at(10 + 54 * hour))


def test_jobs_without_a_known_load_are_on_the_ports_of_their_hosts(registry: Registry) -> None:
    fill(registry, job("7", 2), job("8", 2, hosts=("node03",)))
    registry.save(Intake(cluster="toy", observed_at=at(3), fabric=fat_tree()))
    sent = {"xmit_bytes": (5, False)}
    for minutes in (10, 20):
        ends = {(LEAF_GUID, 0, 1): sent, (LEAF_GUID + 1, 0, 2): {"rcv_errors": (int(minutes), False)}}
        registry.save(Intake(cluster="toy", counters=(CounterSweep.of(at(minutes), ends),)))
    (port,) = ports(registry).top(9)
    assert (port.name, port.to) == ("leaf1:2", "node03:1")
    assert set(port.jobs) == {"7", "8"}


def test_without_two_sweeps_there_are_no_counters_and_a_chosen_period_is_an_error(registry: Registry) -> None:
    fill(registry, job("7", 2))
    assert ports(registry).errors is None
    save(registry, 10, 0, 0)
    table = ports(registry)
    assert (table.errors, table.rates, table.top(5)) == (None, None, ())
    with pytest.raises(UnknownName, match="no two sweeps in that period"):
        ports(registry, at(0) - timedelta(days=1))
