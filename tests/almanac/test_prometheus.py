"""``almanac metrics`` against a parser of the same text that Prometheus' own library brings."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from almanac.prometheus import Gauges
from registry.database.driver import Database
from registry.ingest_runs.freshness import OLD, freshness
from registry.pages.overview import read_overview
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support import paths
from tests.support.busy_cluster import fill, job, record

TREE = paths.DATA / "infiniband" / "fattree2-64-traffic"
PROFILE = paths.DATA / "openmpi" / "npb_cg_S_16.tar.gz"

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(answer: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer)
        for sample in family.samples
    }


def test_names_from_files_are_escaped() -> None:
    name = 'leaf "1"\\\nalmanac_findings 7'
    gauges = Gauges()
    gauges.add("almanac_link_use_ratio", 0.5, device=name)
    assert samples(gauges.text()) == {("almanac_link_use_ratio", (("device", name),)): 0.5}


def test_an_empty_registry_has_no_gauges(almanac: Almanac) -> None:
    outcome = almanac("metrics")
    assert (outcome.code, outcome.out.strip()) == (0, "")


def test_ages_findings_and_quality_are_printed(almanac: Almanac, tmp_path: Path) -> None:
    files = [TREE / "ibnetdiscover.txt", TREE / "opensm-lfts.dump"]
    assert almanac("ingest", *files, "--cluster", "ft", "--observed-at", "2025-01-01").code == 0
    assert almanac("ingest", PROFILE, "--name", "cg").code == 0
    broken = tmp_path / "broken.txt"
    broken.write_text((TREE / "ibnetdiscover.txt").read_text()[:3000])
    assert almanac("ingest", broken, "--cluster", "ft").code == 1
    call = ["map", "cg", "--cluster", "ft", "--hosts", "node[0001-0016]", "--steps", 2000, "--json"]
    placed = json.loads(almanac(*call).out)
    target = tmp_path / "almanac.prom"
    outcome = almanac("metrics", "-o", target)
    assert outcome.code == 0, outcome.err
    answer = samples(target.read_text())

    def value(name: str, **labels: str) -> float:
        return answer[name, tuple(sorted(labels.items()))]

    assert value("almanac_source_age_seconds", cluster="ft", source="ibnetdiscover") > 300 * 86400
    assert value("almanac_source_failing", cluster="ft", source="ibnetdiscover") == 1
    assert value("almanac_source_failing", cluster="ft", source="opensm-lfts") == 0
    assert value("almanac_fabric_age_seconds", cluster="ft") > 300 * 86400
    assert value("almanac_findings", cluster="ft", severity="error") == 0
    ratio = value("almanac_placement_over_bound_ratio", cluster="ft", application=placed_application(answer))
    wanted = placed["placed"]["congestion_seconds"] / placed["lower_bound"]["congestion_seconds"]
    assert ratio == pytest.approx(wanted)


def test_metrics_doctor_today_and_the_overview_give_one_age(
    embedded: Almanac, embedded_database: Database
) -> None:
    scan = TREE / "ibnetdiscover.txt"
    observed = datetime.now(UTC) - timedelta(days=30, hours=1)
    given = ("--cluster", "ft", "--observed-at", observed.isoformat())
    assert embedded("ingest", scan, *given).code == 0
    assert embedded("ingest", scan, *given).code == 0  # nothing new: the data get no younger
    answer = samples(embedded("metrics").out)
    labels = (("cluster", "ft"), ("source", "ibnetdiscover"))
    assert answer["almanac_source_age_seconds", labels] == pytest.approx(30 * 86400 + 3600, abs=300)
    words = "observed 30 days ago, ingested "
    doctor = {row["check"]: row for row in embedded("doctor", "--json").json}
    assert doctor["cluster ft"]["seen"] == "observed 30 days ago"
    assert doctor["cluster ft"]["state"] == doctor["source ft ibnetdiscover"]["state"] == "warning"
    assert doctor["source ft ibnetdiscover"]["seen"].startswith(words)
    assert words in embedded("today", "ft").out
    now = datetime.now(UTC)
    (shown,) = read_overview(embedded_database, "ft", now).sources
    (listed,) = Registry(embedded_database).runs.sources("ft")
    assert shown == listed
    assert shown.observed_at == observed
    assert freshness(shown, now).state == OLD


def placed_application(answer: Samples) -> str:
    """The only application that a placement is answer of."""
    (labels,) = {labels for name, labels in answer if name == "almanac_placement_over_bound_ratio"}
    return dict(labels)["application"]


def test_hot_links_are_those_of_sweeps_after_the_last_scan(almanac: Almanac) -> None:
    counters = paths.DATA / "counters"
    for name, moment in (
        ("ibnetdiscover.txt", "01"),
        ("sweep1-counters.txt.gz", "02"),
        ("sweep2-counters.txt.gz", "03"),
    ):
        outcome = almanac("ingest", counters / name, "--cluster", "ft", "--observed-at", f"2025-01-{moment}")
        assert outcome.code == 0, outcome.err
    answer = samples(almanac("metrics", "--top", 3).out)
    hot = [value for (name, _), value in answer.items() if name == "almanac_link_use_ratio"]
    assert 1 <= len(hot) <= 3
    assert all(value > 0 for value in hot)


def test_the_last_placement_of_an_application_has_its_quality_and_regression(
    almanac: Almanac, database: Database
) -> None:
    registry = fill(Registry(database), job("7", 2))
    labels = (("application", "cg"), ("cluster", "toy"))
    for number, (seconds, regressed) in enumerate(
        [(4.0, None), (4.0, None), (4.1, None), (4.0, None), (4.0, None), (8.0, 1.0), (4.0, 0.0)]
    ):
        registry.placements.save(record(registry, "7", seconds=seconds, seed=number))
        answer = samples(almanac("metrics").out)
        assert answer.get(("almanac_placement_regressed", labels)) == regressed
        assert answer["almanac_placement_over_bound_ratio", labels] == pytest.approx(seconds)
