"""Growth of counters for the fabric page, compared with what `Counters` returns in more statements."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from registry.counters.sweeps import Retention
from registry.database.driver import Database
from registry.model import total
from registry.model.intake import Intake
from registry.pages.counters import read_growth
from registry.registry import Registry
from tests.registry.counters.test_counters import save, sweep
from tests.support.fat_tree import at, fat_tree

HOUR = timedelta(hours=1)


@pytest.fixture
def toy(registry: Registry) -> Registry:
    """Traffic every ten minutes for six hours, symbol errors five minutes after it."""
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree()))
    for minute in range(10, 370, 10):
        save(registry, sweep(minute), sweep(minute + 5, minute, names="symbol_errors"))
    return registry


def same(registry: Registry, over: timedelta, minute: float | None = None) -> None:
    """Check that the parts add up to the growth that `Counters.recent` returns."""
    time = None if minute is None else at(minute)
    parts = read_growth(registry.database, "toy", over, time, most=1000)
    whole = registry.counters.recent("toy", over, time)
    assert whole is not None
    found = total(parts)
    assert (found.start, found.end, found.names) == (whole.start, whole.end, whole.names)
    for name in ("guid", "port", "amount", "at_least", "covered", "peak"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name


def test_the_parts_add_up_to_the_growth_of_the_period(toy: Registry) -> None:
    same(toy, HOUR)
    same(toy, 3 * HOUR)
    same(toy, HOUR, 121)
    same(toy, 100 * HOUR)


def test_the_parts_end_at_each_sweep_of_the_period(toy: Registry) -> None:
    parts = read_growth(toy.database, "toy", HOUR, at(204))
    ends = [at(minute) for minute in (145, 150, 155, 160, 165, 170, 175, 180, 185, 190, 195, 200)]
    assert [part.end for part in parts] == ends
    traffic = next(part for part in parts if part.end == at(160))
    # port k sends (k + 1) * 1000 bytes a minute
    assert traffic.column("xmit_bytes").tolist() == [10_000, 20_000, 30_000]


def test_of_many_sweeps_some_are_read_and_no_byte_is_lost(toy: Registry) -> None:
    parts = read_growth(toy.database, "toy", 5 * HOUR, most=4)
    traffic = [part for part in parts if "xmit_bytes" in part.names]
    assert len(traffic) == 4
    assert traffic[-1].end == at(360)
    whole = toy.counters.recent("toy", 5 * HOUR)
    assert whole is not None
    assert np.array_equal(total(parts).amount, whole.amount)


def test_rolled_up_growth_counts_too(toy: Registry) -> None:
    rule = Retention(full=timedelta(hours=2), hourly=timedelta(days=2))
    assert toy.counters.roll_up("toy", rule, now=at(360)) > 0
    same(toy, HOUR)
    same(toy, 4 * HOUR)


def test_a_single_sweep_an_unknown_cluster_and_a_time_before_all_give_nothing(database: Database) -> None:
    registry = Registry(database)
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree()))
    assert read_growth(database, "toy", HOUR) == ()
    save(registry, sweep(10))
    assert read_growth(database, "toy", HOUR) == ()
    save(registry, replace(sweep(20)))
    assert len(read_growth(database, "toy", HOUR)) == 1
    assert read_growth(database, "toy", HOUR, at(5)) == ()
    assert read_growth(database, "nobody", HOUR) == ()
