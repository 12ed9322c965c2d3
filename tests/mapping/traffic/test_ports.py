"""Shared links and ports: loads, users, slowdowns, errors and measured rates; by hand and by slow loops."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.checks.finding import ErrorLimits, port_errors
from mapping.distances.cost_model import CostModel
from mapping.selfcheck import oracles
from mapping.traffic.job_loads import JobTraffic, Loader
from mapping.traffic.names import link_text
from mapping.traffic.ports import CounterGrowth, CounterHistory, PortTable
from mapping.traffic.shared_load import JobLoad, SharedLoad, against_counters, interference
from registry.errors import DisconnectedAllocation, InvalidPlacement, InvalidValue, UnknownName
from registry.model import CounterDeltas, Fabric, deltas, growth, link_rates
from registry.model.placement import LoadedLinks
from tests.mapping.checks.test_checks import Counted, sweep
from tests.support.fat_tree import ADAPTER_GUID, LEAF_GUID, SPINE_GUID, at, fat_tree
from tests.support.small_fabrics import adapter_fabrics
from tests.support.sure import sure
from tests.support.traffic_jobs import SHORTEST, job_between, running_jobs, shared_load, two_leaves

CAPACITY = 50e9
MINUTES = 10


def link_of(fabric: Fabric, device: str, port: int) -> int:
    links, vertex = fabric.links, fabric.names.index(device)
    (row,) = np.flatnonzero((links.source == vertex) & (links.source_port == port)).tolist()
    return int(row)


def shared(fabric: Fabric, **jobs: dict[tuple[str, int], float]) -> SharedLoad:
    loads = []
    for job, sent in jobs.items():
        dense = np.zeros(len(fabric.links))
        for (device, port), size in sent.items():
            dense[link_of(fabric, device, port)] = size
        loads.append(JobLoad(job=job, loads=LoadedLinks.of(dense)))
    return SharedLoad.of(fabric, loads)


def table(grown: CounterDeltas | None, load: SharedLoad, hosts: dict[str, tuple[str, ...]]) -> PortTable:
    return PortTable(
        shared=load,
        jobs_of_host=hosts,
        errors=None if grown is None else port_errors(load.fabric, grown, ErrorLimits()),
        rates=None if grown is None else link_rates(load.fabric, grown),
    )


def counted(*rates: tuple[int, int, float, float], **errors: int) -> CounterDeltas:
    """Growth in ten minutes: (GUID, port, sent and received share of the capacity); errors of the first."""
    before: Counted = {}
    after: Counted = {}
    for number, (guid, port, sent, received) in enumerate(rates):
        shares = {"xmit_bytes": sent, "rcv_bytes": received}
        grew = {name: round(share * CAPACITY * 60 * MINUTES) for name, share in shares.items()}
        grew |= errors if number == 0 else {}
        before[guid, port], after[guid, port] = dict.fromkeys(grew, 5), {k: 5 + v for k, v in grew.items()}
    return deltas(sweep(0, before), sweep(MINUTES, after))


def test_a_port_has_its_errors_its_use_in_both_directions_and_its_jobs() -> None:
    fabric = fat_tree()
    grown = counted((LEAF_GUID, 1, 0.5, 0.25), symbol_errors=60, link_downed=1, rcv_errors=0)
    load = shared(fabric, a={("leaf0", 1): 10.0}, b={("node00", 1): 4.0, ("leaf0", 1): 30.0})
    first, *_ = table(grown, load, {"node00": ("c", "b"), "node01": ("d",)}).top(10)
    assert (first.name, first.to, first.device, first.port) == ("leaf0:1", "node00:1", "leaf0", 1)
    assert [(one.counter, one.growth, one.per_hour, one.limit) for one in first.errors] == [
        ("symbol_errors", 60, 360.0, 10.0),
        ("link_downed", 1, 6.0, 2.0),
    ]
    assert first.excess == 1.0  # symbol errors within the bit error rate are no fault
    assert (first.sent_share, first.received_share) == pytest.approx((0.5, 0.25))
    assert (first.estimated_sent_seconds, first.estimated_received_seconds) == (40 / CAPACITY, 4 / CAPACITY)
    assert first.jobs == ("b", "a", "c")


def test_the_estimate_is_scaled_to_the_measured_network_links() -> None:
    # the network links carry 8 bytes per period and 0.4 of a capacity: one byte is a twentieth of it
    fabric = fat_tree()
    grown = counted((LEAF_GUID, 3, 0.3, 0.0), (SPINE_GUID, 1, 0.1, 0.3))
    load = shared(fabric, a={("leaf0", 3): 4.0, ("spine0", 1): 4.0, ("node00", 1): 10.0})
    ports = {port.name: port for port in table(grown, load, {}).top(10)}
    assert ports["spine0:1"].estimated_received_share == pytest.approx(0.2)
    assert ports["spine0:1"].received_share == pytest.approx(0.3)
    assert ports["spine0:1"].sent_share == pytest.approx(0.1)
    assert ports["leaf0:1"].estimated_received_share == pytest.approx(0.5)
    assert math.isnan(ports["leaf0:1"].received_share)


def test_ports_with_errors_are_first_then_the_busiest() -> None:
    grown = counted(
        (LEAF_GUID, 4, 0.0, 0.0),
        (LEAF_GUID, 1, 0.0, 0.9),
        (LEAF_GUID, 3, 0.7, 0.0),
        (ADAPTER_GUID + 48, 1, 0.2, 0.0),
        rcv_errors=1,
    )
    ports = table(grown, shared(fat_tree()), {})
    assert [port.name for port in ports.top(100)] == ["leaf0:4", "leaf0:1", "spine0:1", "leaf1:2"]
    assert [port.name for port in ports.top(2)] == ["leaf0:4", "leaf0:1"]
    ends = (LEAF_GUID, 1), (ADAPTER_GUID, 1)  # of a cable: both are listed if both have errors
    sweeps = [dict(zip(ends, ({"rcv_errors": k}, {"rcv_errors": 2 * k}), strict=True)) for k in (0, 1)]
    both = table(deltas(sweep(0, sweeps[0]), sweep(MINUTES, sweeps[1])), shared(fat_tree()), {})
    assert [port.name for port in both.top(9)] == ["node00:1", "leaf0:1"]
    one = table(counted((LEAF_GUID, 1, 0.5, 0.1), rcv_errors=12), shared(fat_tree()), {})
    assert [port.name for port in one.top(9)] == ["leaf0:1"]


def test_ports_that_the_fabric_lacks_are_listed_and_two_adapters_of_a_host_have_names_of_their_own() -> None:
    (first,) = table(counted((0xDD, 7, 0.0, 0.0), rcv_errors=11), shared(fat_tree()), {}).top(5)
    assert (first.name, first.to, first.excess, first.jobs) == ("0x00000000000000dd:7", "", 1.1, ())
    assert math.isnan(first.estimated_sent_seconds)
    grown = counted((ADAPTER_GUID + 16, 1, 0.5, 0.0), rcv_errors=3)
    first, *_ = table(grown, shared(fat_tree(rails=2)), {"node00": ("j",)}).top(1)
    assert (first.name, first.to, first.jobs) == ("node00 mlx5_1:1", "leaf0:2", ("j",))


def test_without_counters_the_estimate_has_no_scale_and_orders_the_ports() -> None:
    fabric = fat_tree()
    load = shared(fabric, a={("leaf0", 1): 10.0, ("leaf1", 1): 20.0})
    ports = table(None, load, {}).top(10)
    assert [port.name for port in ports] == ["leaf1:1", "leaf0:1"]
    assert math.isnan(ports[0].estimated_sent_share)
    assert math.isnan(ports[0].sent_share)
    assert ports[0].estimated_sent_seconds == 20 / CAPACITY
    assert table(None, shared(fabric), {}).top(10) == ()


def test_reset_and_full_counters_are_lower_bounds() -> None:
    fabric = fat_tree()
    before: Counted = {(LEAF_GUID, 1): {"xmit_bytes": 10**12, "rcv_errors": 100, "symbol_errors": 65_535}}
    after: Counted = {(LEAF_GUID, 1): {"xmit_bytes": 3 * 10**12, "rcv_errors": 40, "symbol_errors": 65_535}}
    grown = deltas(sweep(0, before), sweep(MINUTES, after, frozenset({"symbol_errors"})))
    first, *_ = table(grown, shared(fabric), {}).top(1)
    assert [(one.counter, one.growth, one.at_least, one.saturated) for one in first.errors] == [
        ("rcv_errors", 40, True, False),
        ("symbol_errors", 0, True, True),
    ]
    assert not first.at_least  # only errors were reset
    less = deltas(sweep(0, after), sweep(MINUTES, {(LEAF_GUID, 1): {"xmit_bytes": 10**9}}))
    (port,) = table(less, shared(fabric), {}).top(2)
    assert port.at_least


def test_after_one_sweep_only_counted_ports_have_sent_something() -> None:
    first = CounterDeltas.since_reset(sweep(0, {(LEAF_GUID, 1): {"xmit_bytes": 5, "rcv_bytes": 7}}))
    found = table(first, shared(fat_tree()), {}).bytes_since_reset
    assert found[:, (row := link_of(fat_tree(), "leaf0", 1))].tolist() == [5, 7]
    assert np.isnan(np.delete(found, row, axis=1)).all()


def test_bundles_of_cables_are_named_by_both_ends() -> None:
    fabric = fat_tree()
    unknown = np.full(len(fabric.links), -1)
    plain = replace(fabric, links=replace(fabric.links, source_port=unknown, target_port=unknown))
    load = np.zeros(len(unknown))
    load[0] = 7.0
    (port,) = table(None, SharedLoad.of(plain, [JobLoad(job="a", loads=LoadedLinks.of(load))]), {}).top(5)
    ends = plain.names[plain.links.source[0]], plain.names[plain.links.target[0]]
    assert (port.name, port.port) == (":".join(ends), -1)


SECONDS = 600


def history(*counters: dict[str, int]) -> CounterHistory:
    """Port 1 of leaf0 counts this every ten minutes; port 77 has no cable, and two link downs in the end."""
    downs = [0] * (len(counters) - 1) + [2]
    sweeps = [
        sweep(10 * number, {(LEAF_GUID, 1): counted, (LEAF_GUID, 77): {"link_downed": downs[number]}})
        for number, counted in enumerate(counters)
    ]
    return sure(CounterHistory.of(fat_tree(), list(growth(sweeps)), ErrorLimits()))


def counters(sent_shares: float, symbols: int, wait: int) -> dict[str, int]:
    """Counters after having sent the capacity for so many times of ten minutes."""
    size = round(sent_shares * CAPACITY * SECONDS)
    return {"xmit_bytes": size, "symbol_errors": symbols, "xmit_wait": wait}


STEPS = (counters(0, 5, 0), counters(0.5, 5, 1200), counters(0.75, 905, 1200))


def test_a_link_has_the_mean_utilisation_between_each_two_sweeps_and_the_excess_of_its_sending_port() -> None:
    found, row = history(*STEPS), link_of(fat_tree(), "leaf0", 1)
    assert found.times == (at(10), at(20))
    assert np.allclose(found.share[:, row], [0.5, 0.25])
    assert np.allclose(found.wait[:, row], [2.0, 0.0])
    assert np.isnan(np.delete(found.share, row, axis=1)).all()
    # 900 symbol errors, limit 10; 4.8e14 bits in twenty minutes allow 480 of them
    assert found.excess[row] == 90
    assert np.isnan(np.delete(found.excess, row)).all()
    devices = [(one.time, found.errors.device[one.port], one.counter, one.amount) for one in found.new_errors]
    assert devices == [(at(20), "leaf0", "symbol_errors", 900), (at(20), "leaf0", "link_downed", 2)]


def test_the_growth_of_a_device_is_that_of_all_its_ports_also_without_a_cable() -> None:
    found = history(*STEPS)
    ports = found.ports_of_device("leaf0")
    assert found.growth(ports) == (
        CounterGrowth("symbol_errors", 900, 2700.0, 10.0, 1, 0, False),
        CounterGrowth("link_downed", 2, 6.0, 2.0, 0, 0, False),
        CounterGrowth("xmit_wait", 1200, 3600.0, math.inf, 0, 0, False),
    )
    of_link = found.growth(found.ports_of_links([link_of(fat_tree(), "leaf0", 1)]))
    assert [one.counter for one in of_link] == ["symbol_errors", "xmit_wait"]
    assert found.growth(found.ports_of_device("spine0")) == ()


def test_symbol_errors_within_the_bit_error_rate_may_be_harmless_and_a_reset_gives_a_lower_bound() -> None:
    # ten minutes at 50 GB/s are 2.4e14 bits: 240 errors at 1e-12
    found = history(counters(0, 0, 0), counters(0.5, 200, 0))
    (symbols, *_) = found.growth(found.ports_of_links([link_of(fat_tree(), "leaf0", 1)]))
    assert (symbols.growth, symbols.ports, symbols.harmless) == (200, 0, 1)
    found = history(counters(0, 50, 0), counters(0.5, 3, 0))
    (symbols, *_) = found.growth(found.ports_of_device("leaf0"))
    assert (symbols.growth, symbols.at_least) == (3, True)


def test_sweeps_of_errors_alone_give_no_utilisation() -> None:
    sweeps = [sweep(10 * k, {(ADAPTER_GUID, 1): {"rcv_errors": k}}) for k in range(3)]
    found = sure(CounterHistory.of(fat_tree(), list(growth(sweeps)), ErrorLimits()))
    assert (found.times, found.share.shape) == ((), (0, len(fat_tree().links)))
    assert [one.amount for one in found.new_errors] == [1, 1]
    assert CounterHistory.of(fat_tree(), [], ErrorLimits()) is None


Jobs = tuple[Fabric, tuple[JobTraffic, ...]]


@given(running_jobs())
def test_loads_of_jobs_alone_together_and_of_all_others(case: Jobs) -> None:
    fabric, jobs = case
    shared, capacity = shared_load(fabric, jobs), fabric.links.capacity
    alone = [oracles.cost(fabric, one.profile, one.placement).link_bytes for one in jobs]
    np.testing.assert_allclose(shared.link_bytes, sum(alone))
    np.testing.assert_allclose(shared.seconds, sum(alone) / capacity)
    np.testing.assert_allclose(shared.matrix(np.arange(len(capacity))), np.stack(alone) / capacity)
    for number, (one, own) in enumerate(zip(shared.jobs, alone, strict=True)):
        np.testing.assert_allclose(one.link_bytes, own)
        used = np.flatnonzero(own)
        isolated = max((own[row] / capacity[row] for row in used), default=0)
        assert shared.isolated_seconds()[number] == pytest.approx(isolated)
        together = max((shared.seconds[row] for row in used), default=0)
        assert shared.together_seconds()[number] == pytest.approx(together)
        others = [load for other, load in enumerate(alone) if other != number and load.any()]
        background = shared.background(one.job)
        if background is None:
            assert not others
        else:
            assert background.jobs == len(others) > 0
            np.testing.assert_allclose(background.link_bytes(fabric), sum(others), atol=1e-12)
    everyone = shared.background("a job that does not run")
    if everyone is not None:
        np.testing.assert_allclose(everyone.link_bytes(fabric), shared.link_bytes)


@given(running_jobs(), st.booleans())
def test_hot_links_come_by_falling_seconds_with_their_users(case: Jobs, network_only: bool) -> None:
    fabric, jobs = case
    shared = shared_load(fabric, jobs)
    seconds = np.where(fabric.network_link | (not network_only), shared.seconds, 0.0)
    links = shared.hottest(1000, network_only=network_only)
    assert [link.row for link in links] == sorted(
        np.flatnonzero(seconds).tolist(), key=lambda row: (-seconds[row], row)
    )
    assert shared.hottest(2, network_only=network_only) == links[:2]
    for link in links:
        assert sum(user.bytes for user in link.users) == pytest.approx(link.load.bytes)
        assert sum(user.part for user in link.users) == pytest.approx(1.0)
        assert [user.bytes for user in link.users] == sorted((u.bytes for u in link.users), reverse=True)
        assert link.network == fabric.network_link[link.row]
        for user in link.users:
            assert jobs[user.number].job == user.job
            assert user.bytes == pytest.approx(shared.jobs[user.number].link_bytes[link.row])


def test_two_jobs_over_one_cable_by_hand() -> None:
    fabric = two_leaves(uplinks=1)
    jobs = (
        job_between(fabric, "1", [("a0", "b0", 6.0)], user="ann"),
        job_between(fabric, "2", [("a1", "b1", 2.0)], user="bob"),
        job_between(fabric, "3", [("b0", "b1", 1.0)]),
    )
    shared = shared_load(fabric, jobs)
    assert shared.isolated_seconds().tolist() == [6.0, 2.0, 1.0]
    assert shared.together_seconds().tolist() == [8.0, 8.0, 3.0]  # job 3 shares b1's cable with job 2
    (hot,) = shared.hottest(1)
    assert str(hot.load) == "A:10 -> B:10"
    assert [(user.job, user.user, user.bytes, user.part) for user in hot.users] == [
        ("1", "ann", 6.0, 0.75),
        ("2", "bob", 2.0, 0.25),
    ]
    pair = sure(shared.worst_shared_link())
    assert (pair.row, pair.users[0].job, pair.users[1].job) == (hot.row, "1", "2")


def test_there_is_no_worst_link_if_none_is_shared_or_nothing_runs() -> None:
    fabric = two_leaves()
    jobs = (job_between(fabric, "1", [("a0", "a1", 6.0)]), job_between(fabric, "2", [("b0", "b1", 2.0)]))
    assert shared_load(fabric, jobs).worst_shared_link() is None
    shared = SharedLoad.of(fabric, ())
    assert shared.worst_shared_link() is None
    assert (len(shared), shared.hottest(5), shared.together_seconds().tolist()) == (0, (), [])
    assert not shared.seconds.any()
    assert shared.links([0])[0].users == ()


def test_loads_of_another_fabric_a_job_twice_and_unknown_rows_and_jobs_are_refused() -> None:
    fabric = two_leaves()
    load = JobLoad(job="1", loads=LoadedLinks.of(np.ones(3)))
    with pytest.raises(InvalidValue, match="job 1: 3 link loads for a fabric of 12 links"):
        SharedLoad.of(fabric, [load])
    fits = JobLoad(job="1", loads=LoadedLinks.of(np.ones(12)))
    with pytest.raises(InvalidValue, match="twice"):
        SharedLoad.of(fabric, [fits, fits])
    shared = SharedLoad.of(fabric, [fits])
    for row in (-1, 12):
        with pytest.raises(InvalidValue, match="must be from 0 to"):
            shared.links([row])
    with pytest.raises(UnknownName, match="closest: 1"):
        shared.index("11")


def test_routes_built_once_for_all_jobs_give_each_what_routes_of_its_own_give() -> None:
    fabric = two_leaves(uplinks=3)
    jobs = (
        job_between(fabric, "1", [("a0", "b0", 6.0), ("b0", "a1", 1.0)]),
        job_between(fabric, "2", [("b1", "a1", 2.0)]),
    )
    for routing in ("shortest-paths", "up-down", "ecmp:paths=4", "ugal", "least-loaded"):
        together = Loader(fabric, [one.placement for one in jobs], CostModel(routing=routing))
        for one in jobs:
            own = Loader(fabric, [one.placement], CostModel(routing=routing)).load(one.profile, one.placement)
            load = together.load(one.profile, one.placement)
            np.testing.assert_allclose(load.dense(), own.dense())


def test_what_cannot_be_delivered_is_counted_and_the_rest_is_loaded() -> None:
    fabric = two_leaves(uplinks=0)
    one = job_between(fabric, "1", [("a0", "b0", 6.0), ("a0", "a1", 2.0), ("b1", "a0", 3.0)])
    two = job_between(fabric, "2", [("a0", "b0", 6.0), ("a1", "b0", 1.0)])
    loader = Loader(fabric, [one.placement, two.placement], SHORTEST)
    with pytest.raises(DisconnectedAllocation, match="no path of the fabric leads from host 'a0'"):
        loader.load(one.profile, one.placement)
    found = loader.deliver(one.profile, one.placement)
    assert (found.unreachable_pairs, found.unreachable_bytes) == (2, 9.0)
    assert found.loads.dense().sum() == 4.0  # a0 -> A -> a1
    with pytest.raises(InvalidPlacement, match=r"2 ranks are placed, the profile has 3$"):
        loader.load(two.profile, job_between(fabric, "3", [("a0", "a1", 1.0)]).placement)


@given(adapter_fabrics(), st.integers(0, 9))
def test_periods_make_the_sums_over_measured_network_links_alike(fabric: Fabric, seed: int) -> None:
    rng = np.random.default_rng(seed)
    load = rng.random(len(fabric.links)) * 1e9
    rate = np.where(rng.random(len(fabric.links)) < 0.3, np.nan, rng.random(len(fabric.links)) * 1e9)
    found = against_counters(fabric, load, rate)
    both = [m for m in range(len(rate)) if fabric.network_link[m] and not np.isnan(rate[m])]
    if not both:
        assert np.isnan(found.iterations_per_second)
        return
    capacity = fabric.links.capacity
    predicted = sum(found.predicted_share[m] * capacity[m] for m in both)
    assert predicted == pytest.approx(sum(rate[m] for m in both))
    assert np.array_equal(found.measured_share, rate / capacity, equal_nan=True)
    assert np.array_equal(np.isnan(found.difference), np.isnan(rate))


@given(adapter_fabrics())
def test_traffic_as_predicted_differs_nowhere_and_none_on_either_side_has_no_scale(fabric: Fabric) -> None:
    load = np.arange(1.0, len(fabric.links) + 1)
    found = against_counters(fabric, load, 7 * load)
    if fabric.network_link.any():
        assert found.iterations_per_second == pytest.approx(7)
        assert np.allclose(found.difference, 0)
    none, some = np.zeros(len(fabric.links)), np.ones(len(fabric.links))
    assert np.isnan(against_counters(fabric, none, some).iterations_per_second)
    assert np.isnan(against_counters(fabric, some, none).iterations_per_second)
    with pytest.raises(InvalidValue):
        against_counters(fabric, some[1:], some)


def timed(shared: SharedLoad, *seconds: float | None) -> SharedLoad:
    jobs = (replace(one, iteration_seconds=time) for one, time in zip(shared.jobs, seconds, strict=True))
    return replace(shared, jobs=tuple(jobs))


def over_one_cable(*seconds: float | None) -> SharedLoad:
    """Job 1 sends 6 bytes and job 2 sends 2 bytes over the same uplink of 1 byte/s."""
    fabric = two_leaves(uplinks=1)
    jobs = (job_between(fabric, "1", [("a0", "b0", 6.0)]), job_between(fabric, "2", [("a1", "b1", 2.0)]))
    return timed(shared_load(fabric, jobs), *seconds)


def test_an_iteration_waits_for_the_capacity_that_others_leave() -> None:
    """Job 1 uses 0.3 and job 2 uses 0.2 of the cable: 6 bytes at 0.8 byte/s and 2 bytes at 0.7 byte/s."""
    found = interference(over_one_cable(20.0, 10.0))
    assert found.alone_seconds.tolist() == [6.0, 2.0]
    assert found.together_seconds == pytest.approx([7.5, 2 / 0.7])
    assert found.slowdowns == pytest.approx([1 + 1.5 / 20, 1 + (2 / 0.7 - 2) / 10])
    assert found.share == pytest.approx([0.6, 0.4])
    names = [link_text(two_leaves(uplinks=1), row) for row in found.worst_link.tolist()]
    assert names == ["A:10", "A:10"]
    assert found.utilisation[found.worst_link[0]] == pytest.approx(0.5)


def test_an_overloaded_link_delays_its_jobs_by_its_load() -> None:
    """Job 1 wants 0.75 and job 2 wants 0.5 byte/s of 1: both iterations take 1.25 times as long there."""
    found = interference(over_one_cable(8.0, 4.0))
    assert found.together_seconds == pytest.approx([10.0, 5.0])
    assert found.slowdowns == pytest.approx([1 + 4 / 8, 1 + 3 / 4])
    assert not np.isnan(interference(over_one_cable(6.0, 10.0)).slowdowns).any()  # no longer than alone
    # a profile of a whole hour: as one iteration it would be 1800 times the 2 bytes of job 2
    assert interference(over_one_cable(3600.0, 2000.0)).slowdowns.max() < 1.000_01


@pytest.mark.parametrize("seconds", [(20.0, None), (None, 10.0), (None, None), (5.0, 10.0)])
def test_without_all_times_no_slowdown_is_known(seconds: tuple[float | None, float | None]) -> None:
    """The last: 6 bytes cannot cross 1 byte/s in 5 seconds, so this is no time of an iteration."""
    found = interference(over_one_cable(*seconds))
    assert np.isnan([found.slowdowns, found.together_seconds]).all()
    assert found.share == pytest.approx([0.75, 0.25])
    assert np.isnan(found.utilisation[found.worst_link]).all()


def test_a_job_without_common_links_or_without_load_is_not_slowed_whatever_others_do() -> None:
    fabric = two_leaves()
    jobs = (job_between(fabric, "1", [("a0", "a1", 6.0)]), job_between(fabric, "2", [("b0", "b1", 2.0)]))
    found = interference(timed(shared_load(fabric, jobs), 10.0, None))
    assert found.slowdowns[0] == 1.0
    assert math.isnan(found.slowdowns[1])
    assert found.share.tolist() == [1.0, 1.0]
    idle = (job_between(fabric, "1", [("a0", "a0", 1.0)]),)
    found = interference(timed(shared_load(fabric, idle), 1.0))
    assert (found.worst_link.tolist(), found.share.tolist()) == ([-1], [0.0])
    assert (found.together_seconds.tolist(), found.slowdowns.tolist()) == ([0.0], [1.0])
    assert interference(SharedLoad.of(fabric, ())).slowdowns.tolist() == []


@given(running_jobs(), st.lists(st.one_of(st.none(), st.floats(0.5, 50.0)), min_size=3, max_size=3))
def test_slowdowns_of_a_slow_loop(case: Jobs, times: list[float | None]) -> None:
    fabric, jobs = case
    shared = timed(shared_load(fabric, jobs), *times[: len(jobs)])
    found, capacity = interference(shared), fabric.links.capacity
    loads = [one.link_bytes for one in shared.jobs]
    alone = [float((load / capacity).max(initial=0.0)) for load in loads]
    pairs = zip(times[: len(jobs)], alone, strict=True)
    known = [time if time is not None and time >= one else None for time, one in pairs]
    for job, load in enumerate(loads):
        slowest = 0.0
        for row in np.flatnonzero(load).tolist():
            users = [other for other in range(len(jobs)) if loads[other][row] > 0]
            rates = [np.nan if known[other] is None else loads[other][row] / known[other] for other in users]
            total, own = sum(rates), known[job]
            if np.isnan(total) or own is None:
                slowest = np.nan
                break
            others = total - load[row] / own
            fits, full = load[row] / (capacity[row] - others), own * total / capacity[row]
            slowest = max(slowest, fits if total <= capacity[row] else full)
        own = known[job]
        expected = np.nan if own is None else 1 + (slowest - alone[job]) / own
        assert found.slowdowns[job] == pytest.approx(expected, nan_ok=True)
        assert math.isnan(expected) or found.slowdowns[job] >= 1 - 1e-9
        assert 0 <= found.share[job] <= 1 + 1e-9
