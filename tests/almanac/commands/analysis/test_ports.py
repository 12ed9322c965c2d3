"""``almanac ports`` on two real sweeps of a simulated fabric, with a reset and a full counter between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.almanac.conftest import Almanac
from tests.support import paths

COUNTERS = paths.DATA / "counters"


@pytest.fixture
def swept(embedded: Almanac) -> Almanac:
    for name, moment in (
        ("ibnetdiscover.txt", "2025-01-01"),
        ("sweep1-perfquery-1.txt", "2025-01-02T12:00"),
        ("sweep2-perfquery-1.txt", "2025-01-02T12:10"),
    ):
        outcome = embedded("ingest", COUNTERS / name, "--cluster", "ft", "--observed-at", moment)
        assert outcome.code == 0, outcome.err
    return embedded


def test_use_of_real_sweeps_with_resets_and_full_counters(swept: Almanac) -> None:
    document = swept("ports", "ft", "--json", "--top", 100).json
    assert (document["counted"], document["with_errors"], document["over_limit"]) == (12, 0, 0)
    assert document["errors_since"] == document["use_since"] == "2025-01-02T12:00:00Z"
    ports = {port["link"]: port for port in document["ports"]}
    one = ports["leaf01:1"]
    # words of 4 bytes in 10 minutes on a link of 200 Gbit/s
    assert one["to"] == "node0001:1"
    assert one["sent_share"] == pytest.approx((1268435456 - 268436464) * 4 / 600 / 25e9, rel=1e-3)
    assert not one["at_least"]
    assert ports["leaf01:9"]["at_least"]
    assert one["estimated_sent_share"] is None
    assert one["estimated_sent_seconds"] == 0


def test_errors_come_first_with_their_rate_and_limits(swept: Almanac, tmp_path: Path) -> None:
    for minute, errors, downs in ((15, 4711, 2), (25, 94711, 12)):
        sweep = tmp_path / f"{minute}.csv"
        sweep.write_text(f"guid,port,symbol_errors,link_downed\n0x2c90000100100,7,{errors},{downs}\n")
        outcome = swept("ingest", sweep, "--cluster", "ft", "--observed-at", f"2025-01-02T12:{minute}")
        assert outcome.code == 0, outcome.err
    document = swept("ports", "ft", "--json", "--top", 1).json
    (port,) = document["ports"]
    assert (port["link"], port["device"], port["port"]) == ("leaf01:7", "leaf01", 7)
    assert port["errors"]["symbol_errors"] == {
        "growth": 94711,  # the counters of the first sweep were zero
        "per_hour": pytest.approx(94711 / 25 * 60),
        "at_least": False,
        "saturated": False,
        "error_limit": 10,
    }
    assert document["over_limit"] == 1
    shown = swept("ports", "ft", "--top", 3)
    assert shown.code == 0
    assert "new errors since 2025-01-02 12:00:00 UTC: 1 of 12 ports, 1 beyond the limits" in shown.out
    assert "94,711 symbol errors (227,306), 12 link downs (28.8)" in shown.out
    assert "estimated" not in shown.out
    later = swept("ports", "ft", "--since", "2025-01-02T12:20", "--json", "--top", 1).json
    assert later["ports"][0]["errors"]["link_downed"]["growth"] == 10
    assert later["use_since"] == later["errors_since"] == "2025-01-02T12:15:00Z"


def test_a_cluster_without_counters_or_errors_says_so_and_an_unknown_one_is_an_error(swept: Almanac) -> None:
    before = swept("ports", "ft", "--at", "2025-01-02T12:05")
    assert (before.code, "no errors and no traffic" in before.out) == (0, True)
    assert "ft has no two sweeps of port counters" in before.err
    unknown = swept("ports", "fx", "--json")
    assert unknown.code == 1
    assert "closest: ft" in unknown.error["reason"]
    assert swept("ports", "ft", "--since", "soon").code == 2
    late = swept("ports", "ft", "--since", "2025-01-03", "--json")
    assert "no two sweeps in that period" in json.loads(late.err.splitlines()[-1])["reason"]
