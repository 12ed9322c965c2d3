"""Counters in the registry: sweeps in their place in time, rates as of then, roll-ups that lose no byte."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from registry.errors import InvalidValue, UnknownName
from registry.model import CounterSweep
from registry.model.intake import Intake, Receipt
from registry.registry import Registry
from registry.store.counters import Retention
from tests.support.fat_tree import LEAF_GUID, SPINE_GUID, at, fat_tree
from tests.support.full_cluster import same

PORTS = [(LEAF_GUID, 1), (LEAF_GUID, 3), (SPINE_GUID, 1)]
STEP = 10
"""Minutes between two sweeps."""


def sweep(minute: float, sent: int | None = None, *, names: str = "xmit_bytes") -> CounterSweep:
    """Port k has sent ``(k + 1) * sent`` bytes; by default 1000 a minute."""
    shown = round(minute * 1000) if sent is None else sent
    cells = {(guid, 0, port): {names: (shown * (k + 1), False)} for k, (guid, port) in enumerate(PORTS)}
    return CounterSweep.of(at(minute), cells)


def save(registry: Registry, *sweeps: CounterSweep) -> Receipt:
    return registry.save(Intake(cluster="toy", counters=sweeps, source="ibqueryerrors", files=("f",)))


def moments(registry: Registry) -> list[datetime]:
    return [one.at for one in registry.counters.list("toy")]


def test_a_sweep_comes_back_as_it_was_and_the_same_again_adds_nothing(toy: Registry) -> None:
    receipt = save(toy, sweep(5))
    assert (receipt.new("counters"), len(receipt.ids("counters"))) == (1, 1)
    assert same(toy.counters.read("toy"), sweep(5))
    again = save(toy, sweep(5))
    assert (again.new("counters"), again.ids("counters")) == (0, receipt.ids("counters"))
    (info,) = toy.counters.list("toy")
    assert (info.id, info.ports, info.source) == (receipt.ids("counters")[0], 3, "ibqueryerrors")


def test_a_late_sweep_takes_its_place_in_time(registry: Registry) -> None:
    registry.save(Intake(cluster="toy", observed_at=at(100), fabric=fat_tree()))
    save(registry, sweep(15, names="symbol_errors"))  # without traffic it cuts no rates
    for minute in (10, 30, 20):
        save(registry, sweep(minute))
    assert moments(registry) == [at(10), at(15), at(20), at(30)]
    assert registry.counters.read("toy", at(25)).at == at(20)
    assert registry.counters.rates("toy", at(25)).start == at(10)
    rates = registry.counters.rates("toy")
    assert (rates.start, len(rates.bytes_per_second)) == (at(20), len(fat_tree().links))  # of the first scan


def test_rates_as_of_a_time_are_those_between_the_last_two_sweeps(toy: Registry) -> None:
    save(toy, sweep(10), sweep(20), sweep(30, 100_000))
    fabric = toy.fabrics.read("toy").fabric
    source = [fabric.names[v] for v in fabric.links.source.tolist()]
    ends = zip(source, fabric.links.source_port.tolist(), strict=True)
    rows = [k for k, end in enumerate(ends) if end == ("leaf0", 1)]
    assert toy.counters.rates("toy", at(29)).bytes_per_second[rows].tolist() == [1000 / 60]
    assert toy.counters.rates("toy").bytes_per_second[rows].tolist() == [80_000 / 600]
    over = toy.counters.rates("toy", over=timedelta(minutes=15))
    assert (over.start, over.end) == (at(10), at(30))
    assert over.bytes_per_second[rows].tolist() == [90_000 / 1200]
    assert over.peak_bytes_per_second[rows].tolist() == [80_000 / 600]


def test_what_was_counted_between_two_times(toy: Registry) -> None:
    save(toy, *map(sweep, range(10, 70, 10)))
    found = toy.counters.between("toy", at(25), at(55))
    assert (found.start, found.end, found.pieces) == (at(20), at(50), 3)
    assert found.column("xmit_bytes").tolist() == [30_000, 60_000, 90_000]
    assert toy.counters.between("toy", at(0)).end == at(60)
    with pytest.raises(UnknownName, match="no two sweeps"):
        toy.counters.between("toy", at(60))


def test_a_fabric_is_needed_and_the_closest_names_are_in_the_error(toy: Registry) -> None:
    with pytest.raises(UnknownName, match="toi"):
        toy.save(Intake(cluster="toi", counters=(sweep(1),)))
    with pytest.raises(UnknownName, match="no port counters of cluster 'toy'"):
        toy.counters.list("toy")
    save(toy, sweep(10))
    with pytest.raises(UnknownName, match="closest: toy"):
        toy.counters.read("toi")
    with pytest.raises(UnknownName, match="two sweeps"):
        toy.counters.rates("toy")
    with pytest.raises(UnknownName, match="at or before"):
        toy.counters.read("toy", at(5))


def test_devices_named_by_lid_are_found_in_the_fabric(toy: Registry) -> None:
    by_lid = CounterSweep.of(at(5), {(0, 1, 1): {"xmit_bytes": (7, False)}})
    save(toy, by_lid)
    assert toy.counters.read("toy").guid.tolist() == [SPINE_GUID]
    with pytest.raises(UnknownName, match="LID '4000'"):
        save(toy, CounterSweep.of(at(6), {(0, 4000, 1): {"xmit_bytes": (7, False)}}))
    assert moments(toy) == [at(5)]


RULE = Retention(full=timedelta(hours=2), hourly=timedelta(days=2), daily=timedelta(days=30))


def totals(registry: Registry, start: datetime, name: str = "xmit_bytes") -> list[int]:
    return [int(total) for total in registry.counters.between("toy", start).column(name)]


def test_rolling_up_loses_no_byte_and_keeps_the_last_sweep_of_the_old(toy: Registry) -> None:
    save(toy, *map(sweep, range(STEP, 721, STEP)))
    before, exact = totals(toy, at(0)), toy.counters.rates("toy", at(185)).bytes_per_second
    gone = toy.counters.roll_up("toy", RULE, now=at(0.5 * 1440))
    left = moments(toy)
    assert left[0] == at(10 * 60 - STEP)
    assert gone + len(left) == 72
    assert totals(toy, at(0)) == before
    assert not toy.counters.between("toy", at(0)).at_least.any()
    assert toy.counters.between("toy", at(0)).covered.max() == 710 * 60
    assert toy.counters.roll_up("toy", RULE, now=at(0.5 * 1440)) == 0
    rates = toy.counters.rates("toy", at(185))  # those of the hour
    assert (rates.start, rates.end) == (at(170), at(230))
    assert np.allclose(rates.bytes_per_second, exact, equal_nan=True)
    receipt = save(toy, sweep(35))
    assert (receipt.ids("counters"), receipt.new("counters")) == ((), 0)
    assert "already summarised" in receipt.warnings[-1]
    assert save(toy, sweep(10 * 60 - 5)).new("counters") == 1
    before = totals(toy, at(0))
    toy.counters.roll_up("toy", RULE, now=at(900))
    assert totals(toy, at(0)) == before


def test_traffic_and_errors_in_separate_sweeps_lose_nothing_when_rolled_up(toy: Registry) -> None:
    for minutes in (range(STEP, 360, STEP), range(360, 720, STEP)):
        errors = (sweep(minute + 5, minute, names="symbol_errors") for minute in minutes)
        save(toy, *map(sweep, minutes), *errors)
    whole = toy.counters.between("toy", at(0))
    assert whole.column("xmit_bytes").tolist() == [700_000, 1_400_000, 2_100_000]
    assert whole.column("symbol_errors").tolist() == [700, 1400, 2100]
    toy.counters.roll_up("toy", RULE, now=at(720))
    left = moments(toy)
    assert left[:2] == [at(530), at(535)]  # the last of each before nine o'clock, two hours ago
    again = toy.counters.between("toy", at(0))
    assert np.array_equal(again.amount, whole.amount)
    assert np.array_equal(again.covered, whole.covered)
    shorter = replace(RULE, full=timedelta(hours=1))
    assert toy.counters.roll_up("toy", shorter, now=at(720)) > 0
    assert np.array_equal(toy.counters.between("toy", at(0)).amount, whole.amount)


def test_lists_of_errors_without_errors_are_kept_and_later_ones_count_from_them(toy: Registry) -> None:
    def listed(minute: float, errors: int) -> CounterSweep:
        ports = {(LEAF_GUID, 0, 1): {"rcv_errors": (errors, False)}} if errors else {}
        return replace(CounterSweep.of(at(minute), ports), errors_only=True)

    save(toy, *(listed(minute, 0) for minute in range(STEP, 720, STEP)))
    assert toy.counters.read("toy").errors_only
    assert toy.counters.recent("toy", timedelta(hours=1)) is not None
    toy.counters.roll_up("toy", RULE, now=at(720))
    save(toy, listed(720, 50))
    found = toy.counters.recent("toy", timedelta(minutes=5))
    assert found is not None
    assert (found.start, found.column("rcv_errors").tolist()) == (at(710), [50])
    assert totals(toy, at(0), "rcv_errors") == [50]
    toy.counters.roll_up("toy", RULE, now=at(10_000))
    assert totals(toy, at(0), "rcv_errors") == [50]


def test_hours_become_days_and_days_end(toy: Registry) -> None:
    save(toy, *(sweep(minute) for minute in range(60, 5 * 1440 + 1, 60)))
    before = totals(toy, at(0))
    toy.counters.roll_up("toy", RULE, now=at(5 * 1440))
    _, rows = toy.database.query("MATCH (r:CounterRollup) RETURN r.period, count(r)")
    assert dict(rows) == {"day": 3, "hour": 46}
    assert totals(toy, at(0)) == before
    save(toy, sweep(40 * 1440))
    toy.counters.roll_up("toy", RULE, now=at(40 * 1440))
    _, rows = toy.database.query("MATCH (r:CounterRollup) RETURN r.period, count(r)")
    assert "hour" not in dict(rows)
    assert moments(toy) == [at(5 * 1440), at(40 * 1440)]


def test_saving_rolls_up_what_is_older_than_a_week(toy: Registry) -> None:
    save(toy, sweep(0), sweep(10), sweep(60), sweep(70))
    receipt = save(toy, sweep(7 * 1440 + 61))
    assert receipt.new("counters") == 1
    assert moments(toy) == [at(10), at(60), at(70), at(7 * 1440 + 61)]
    _, rows = toy.database.query("MATCH (r:CounterRollup) RETURN r.period, r.start, r.until")
    assert rows == [("hour", at(0), at(10))]


UNREPEATED = """
MATCH (n)-[o:OF]->(:Cluster)
WHERE (n:CounterSweep AND (o.at IS NULL OR o.at <> n.at OR o.seq <> n.seq OR o.traffic <> n.traffic))
   OR (n:CounterRollup AND (o.start IS NULL OR o.start <> n.start OR o.until <> n.until
                            OR o.period <> n.period OR o.bucket <> n.bucket))
RETURN count(n)
"""
FORGET_TIMES = """
MATCH ()-[o:OF]->(:Cluster)
REMOVE o.at, o.seq, o.traffic, o.start, o.until, o.period, o.bucket
"""


def test_times_are_read_without_counters_and_those_of_earlier_versions_from_the_nodes(toy: Registry) -> None:
    """Earlier versions did not repeat the times of counters in their relationships to the cluster."""
    save(toy, *(sweep(minute) for minute in range(30, 3601, 30)))
    toy.counters.roll_up("toy", RULE, now=at(2.5 * 1440))
    assert toy.database.query(UNREPEATED)[1] == [(0,)]
    known, moment = moments(toy), at(2.5 * 1440 - 15)
    rates, old_rates = (toy.counters.rates("toy", time).bytes_per_second for time in (moment, at(185)))
    whole = totals(toy, at(0))
    toy.database.write(lambda transaction: transaction.run(FORGET_TIMES))
    assert toy.database.query(UNREPEATED)[1] != [(0,)]
    assert moments(toy) == known
    assert np.array_equal(toy.counters.rates("toy", moment).bytes_per_second, rates, equal_nan=True)
    assert np.array_equal(toy.counters.rates("toy", at(185)).bytes_per_second, old_rates, equal_nan=True)
    assert totals(toy, at(0)) == whole
    toy.counters.roll_up("toy", replace(RULE, full=timedelta(hours=1)), now=at(2.5 * 1440))
    assert totals(toy, at(0)) == whole


def test_a_clock_that_is_ahead_ages_nothing_and_is_reported(toy: Registry) -> None:
    save(toy, sweep(0), sweep(10), sweep(60))
    ahead = datetime.now(UTC) + timedelta(days=400)
    minutes = (ahead - at(0)).total_seconds() / 60
    fresh = (datetime.now(UTC) - at(0)).total_seconds() / 60
    save(toy, sweep(fresh - 10), sweep(fresh - 5))
    receipt = save(toy, sweep(minutes))
    assert "check the clocks" in receipt.warnings[-1]
    assert len(moments(toy)) == 4
    assert toy.counters.rates("toy", datetime.now(UTC)).end < datetime.now(UTC)


def test_a_rule_must_keep_more_of_less() -> None:
    for days in ((0, 1, 2), (2, 1, 3), (1, 2, 1)):
        full, hourly, daily = map(timedelta, days)
        with pytest.raises(InvalidValue, match="Retention"):
            Retention(full=full, hourly=hourly, daily=daily)
