"""Utilisation and errors over time, compared with values by hand."""

from __future__ import annotations

import math

import numpy as np

from mapping.checks.error_limits import ErrorLimits
from mapping.traffic.counter_history import CounterGrowth, CounterHistory
from registry.model import growth
from tests.mapping.checks.test_error_limits import sweep
from tests.mapping.traffic.test_port_table import link_of
from tests.support.fat_tree import ADAPTER_GUID, LEAF_GUID, at, fat_tree

CAPACITY = 50e9
SECONDS = 600


def history(*counters: dict[str, int]) -> CounterHistory:
    """Port 1 of leaf0 counts this every ten minutes; port 77 has no cable, and two link downs in the end."""
    last = len(counters) - 1
    sweeps = [
        sweep(
            10 * number,
            {(LEAF_GUID, 1): counted, (LEAF_GUID, 77): {"link_downed": 2 if number == last else 0}},
        )
        for number, counted in enumerate(counters)
    ]
    found = CounterHistory.of(fat_tree(), list(growth(sweeps)), ErrorLimits())
    assert found is not None
    return found


def counted(sent_shares: float, symbols: int, wait: int) -> dict[str, int]:
    """Counters after having sent the capacity for so many times of ten minutes."""
    size = round(sent_shares * CAPACITY * SECONDS)
    return {"xmit_bytes": size, "symbol_errors": symbols, "xmit_wait": wait}


STEPS = (counted(0, 5, 0), counted(0.5, 5, 1200), counted(0.75, 905, 1200))


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
    found = history(counted(0, 0, 0), counted(0.5, 200, 0))
    (symbols, *_) = found.growth(found.ports_of_links([link_of(fat_tree(), "leaf0", 1)]))
    assert (symbols.growth, symbols.ports, symbols.harmless) == (200, 0, 1)
    found = history(counted(0, 50, 0), counted(0.5, 3, 0))
    (symbols, *_) = found.growth(found.ports_of_device("leaf0"))
    assert (symbols.growth, symbols.at_least) == (3, True)


def test_sweeps_of_errors_alone_give_no_utilisation() -> None:
    sweeps = [sweep(10 * k, {(ADAPTER_GUID, 1): {"rcv_errors": k}}) for k in range(3)]
    found = CounterHistory.of(fat_tree(), list(growth(sweeps)), ErrorLimits())
    assert found is not None
    assert (found.times, found.share.shape) == ((), (0, len(fat_tree().links)))
    assert [one.amount for one in found.new_errors] == [1, 1]
    assert CounterHistory.of(fat_tree(), [], ErrorLimits()) is None
