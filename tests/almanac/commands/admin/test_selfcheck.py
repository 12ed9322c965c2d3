"""``almanac selfcheck``: on a cluster, a scan and the sample data."""

from __future__ import annotations

from typing import Any

import pytest

from mapping.selfcheck import waiting_times
from mapping.selfcheck.comparison import Comparison, Subject
from tests.almanac.conftest import Almanac
from tests.support import paths

TREE = paths.DATA / "infiniband" / "fattree2-64-traffic"
QUICK = ("--only", "waiting-times", "--only", "bytes")


def test_a_scan_is_checked_without_a_database(almanac: Almanac) -> None:
    files = ("--fabric", TREE / "ibnetdiscover.txt", "--fabric", TREE / "opensm-lfts.dump")
    outcome = almanac("selfcheck", *files, "--only", "paths", "--seconds", "2", "--json")
    assert outcome.code == 0, outcome.err
    (check,) = outcome.json["checks"]
    assert (check["check"], check["agrees"], check["differences"]) == ("paths", True, [])
    assert check["compared"] > 10


def test_a_cluster_and_the_sample_scan_are_checked(almanac: Almanac) -> None:
    assert almanac("ingest", TREE / "ibnetdiscover.txt", "--cluster", "ft").code == 0
    for cluster in (("ft",), ()):
        outcome = almanac("selfcheck", *cluster, *QUICK)
        assert outcome.code == 0, outcome.err
        assert outcome.out.count("agrees") == 2


def test_differences_are_printed_and_make_the_command_fail(
    almanac: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    def differs(subject: Subject) -> Comparison:
        comparison = Comparison("packets")
        comparison.add("packet 7, seconds", 2.0, 1.0)
        return comparison

    monkeypatch.setattr(waiting_times, "compare", differs)
    outcome = almanac("selfcheck", *QUICK)
    assert outcome.code == 4
    assert "1 differ" in outcome.out
    assert "waiting-times: packet 7, seconds: 2, expected 1" in outcome.err
    document: dict[str, Any] = almanac("selfcheck", *QUICK, "--json").json
    assert document["checks"][0]["largest_relative_difference"] == 0.5


def test_a_fabric_on_which_nothing_can_be_compared_is_a_failure(almanac: Almanac, tmp_path: Any) -> None:
    (tmp_path / "a.csv").write_text("source,target\nh1,h1b\n")
    outcome = almanac("selfcheck", "--fabric", tmp_path / "none.csv")
    assert outcome.code == 1
    assert "none.csv" in outcome.err


def test_unknown_checks_and_two_fabrics_are_errors(almanac: Almanac) -> None:
    assert almanac("selfcheck", "ft", "--fabric", TREE / "ibnetdiscover.txt").code == 2
    outcome = almanac("selfcheck", "--only", "path")
    assert outcome.code == 1
    assert "paths" in outcome.err
