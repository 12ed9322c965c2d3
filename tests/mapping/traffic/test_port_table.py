"""Ports with their errors, utilisation and jobs, now and over time, compared with values by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from mapping.checks.error_limits import ErrorLimits, port_errors
from mapping.traffic.counter_history import CounterGrowth, CounterHistory
from mapping.traffic.port_table import PortTable, PortUse
from mapping.traffic.shared_load import JobLoad, SharedLoad
from registry.model import CounterDeltas, Fabric, deltas, growth, link_rates
from registry.model.loaded_links import LoadedLinks
from tests.mapping.checks.test_error_limits import Counted, sweep
from tests.support.fat_tree import ADAPTER_GUID, LEAF_GUID, SPINE_GUID, at, fat_tree
from tests.support.sure import sure

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


def by_name(ports: tuple[PortUse, ...]) -> dict[str, PortUse]:
    return {port.name: port for port in ports}


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
    ports = by_name(table(grown, load, {}).top(10))
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
