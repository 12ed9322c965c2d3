"""``almanac metrics``, and the alert rules and the Grafana dashboard that use what it prints."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from almanac.prometheus import ABOUT, Gauges
from registry.model import CounterSweep
from registry.model.intake import Intake
from registry.model.placement import Metrics
from registry.registry import Registry
from registry.store.fabric_history import read_overview
from registry.store.ingest_runs import OLD, freshness
from tests.almanac.conftest import PROFILE, SCAN, TABLES, Almanac
from tests.support import paths
from tests.support.busy_cluster import fill, job, record
from tests.support.fat_tree import LEAF_GUID, SPINE_GUID, at

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


def test_ages_findings_and_quality_are_printed(almanac: Almanac, tmp_path: Path) -> None:
    assert almanac.ok("metrics").out.strip() == ""  # an empty registry
    (clusters,) = (row for row in almanac("doctor", "--json").json if row["check"] == "clusters")
    assert (clusters["state"], "almanac ingest --cluster NAME" in clusters["seen"]) == ("warning", True)
    almanac.ok("ingest", SCAN, TABLES, "--cluster", "ft", "--observed-at", "2025-01-01")
    almanac.ok("ingest", PROFILE, "--name", "cg")
    broken, target = tmp_path / "broken.txt", tmp_path / "almanac.prom"
    broken.write_text(SCAN.read_text()[:3000])
    almanac.refused("ingest", broken, "--cluster", "ft")
    where = ("--cluster", "ft", "--hosts", "node[0001-0016]")
    placed = almanac.json("map", "cg", *where, "--steps", 200)
    almanac.ok("metrics", "-o", target)
    answer = samples(target.read_text())

    def value(name: str, **labels: str) -> float:
        return answer[name, tuple(sorted(labels.items()))]

    assert value("almanac_source_age_seconds", cluster="ft", source="ibnetdiscover") > 300 * 86400
    assert value("almanac_source_failing", cluster="ft", source="ibnetdiscover") == 1
    assert value("almanac_source_failing", cluster="ft", source="opensm-lfts") == 0
    assert value("almanac_fabric_age_seconds", cluster="ft") > 300 * 86400
    assert value("almanac_findings", cluster="ft", severity="error") == 0
    (labels,) = {labels for name, labels in answer if name == "almanac_placement_over_bound_ratio"}
    wanted = placed["placed"]["congestion_seconds"] / placed["lower_bound"]["congestion_seconds"]
    assert answer["almanac_placement_over_bound_ratio", labels] == pytest.approx(wanted)


def test_metrics_doctor_today_and_the_overview_give_one_age(almanac: Almanac, registry: Registry) -> None:
    observed = datetime.now(UTC) - timedelta(days=30, hours=1)
    for _ in range(2):  # the second time nothing is new: the data get no younger
        almanac.ok("ingest", SCAN, "--cluster", "ft", "--observed-at", observed.isoformat())
    answer = samples(almanac("metrics").out)
    labels = (("cluster", "ft"), ("source", "ibnetdiscover"))
    assert answer["almanac_source_age_seconds", labels] == pytest.approx(30 * 86400 + 3600, abs=300)
    words = "observed 30 days ago, ingested "
    doctor = {row["check"]: row for row in almanac("doctor", "--json").json}
    assert doctor["cluster ft"]["seen"] == "observed 30 days ago"
    assert doctor["cluster ft"]["state"] == doctor["source ft ibnetdiscover"]["state"] == "warning"
    assert doctor["source ft ibnetdiscover"]["seen"].startswith(words)
    assert words in almanac("today", "ft").out
    now = datetime.now(UTC)
    (shown,) = read_overview(registry.database, "ft", now).sources
    (listed,) = registry.runs.sources("ft")
    assert shown == listed
    assert shown.observed_at == observed
    assert freshness(shown, now).state == OLD


def test_hot_links_are_those_of_sweeps_after_the_last_scan(almanac: Almanac) -> None:
    counters = paths.DATA / "counters"
    names = ("ibnetdiscover.txt", "sweep1-counters.txt.gz", "sweep2-counters.txt.gz")
    for day, name in enumerate(names, start=1):
        almanac.ok("ingest", counters / name, "--cluster", "ft", "--observed-at", f"2025-01-0{day}")
    answer = samples(almanac("metrics", "--top", 3).out)
    hot = [value for (name, _), value in answer.items() if name == "almanac_link_use_ratio"]
    assert 1 <= len(hot) <= 3
    assert all(value > 0 for value in hot)


def test_the_last_placement_has_its_quality_and_regression(almanac: Almanac, registry: Registry) -> None:
    fill(registry, job("7", 2))
    labels = (("application", "cg"), ("cluster", "toy"))
    placements = ((4.0, None), *((4.0, ...),) * 3, (4.1, None), (8.0, 1.0), (4.0, 0.0))
    for number, (seconds, regressed) in enumerate(placements):
        registry.placements.save(record(registry, "7", seconds=seconds, seed=number))
        if regressed is not ...:
            answer = samples(almanac("metrics").out)
            assert answer.get(("almanac_placement_regressed", labels)) == regressed
            assert answer["almanac_placement_over_bound_ratio", labels] == pytest.approx(seconds)


DEPLOY = paths.ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "almanac.rules.yml"
DASHBOARD = DEPLOY / "grafana" / "almanac.json"
METRIC = re.compile(r"\balmanac_\w+")
SELECTOR = re.compile(r"\b(almanac_\w+)\{([^}]*)\}")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
LABEL = re.compile(r"(\w+)\s*(?:=~|!=|!~|=)")
TEMPLATE = re.compile(r"\{\{ ?\$?(?:labels\.)?(\w+)")
OF_TEMPLATES = {"value", "humanize", "humanizeDuration"}

Labels = dict[str, set[str]]

ELSEWHERE: dict[str, set[str]] = {
    "almanac_database_up": set(),
    "almanac_spool_entries": {"state"},
    "almanac_spool_oldest_age_seconds": set(),
    "almanac_task_age_seconds": {"task"},
    "almanac_task_failing": {"task"},
    "almanac_disk_free_bytes": set(),
    "almanac_files_bytes": set(),
}
"""Labels of the series of `almanac serve`, and of one that a database named by its address has not."""


def sweep(minutes: float, grown: int, errors: int) -> CounterSweep:
    """Counters of two ports that send as much as they did before, and as many errors."""
    traffic = {"xmit_bytes": (grown, False), "rcv_bytes": (grown, False)}
    failures = {"symbol_errors": (errors, False), "link_downed": (errors, False)}
    ports = {(LEAF_GUID, 0, 1): traffic | failures, (SPINE_GUID, 0, 1): traffic, (SPINE_GUID, 0, 2): traffic}
    return CounterSweep.of(at(minutes), ports)


def read(text: str) -> tuple[Labels, dict[str, float]]:
    labels: Labels = {}
    largest: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
            largest[sample.name] = max(sample.value, largest.get(sample.name, sample.value))
    return labels, largest


def use(registry: Registry) -> None:
    fill(registry, job("7", 2))
    registry.jobs.attach("7", "ring")
    for seed, seconds in enumerate((4.0, 4.0, 4.1, 4.0, 4.0, 8.0)):
        placed = record(registry, "7", seconds=seconds, seed=seed)
        assert placed.evaluation is not None
        registry.placements.save(replace(placed, in_order=Metrics.of(placed.evaluation)))
    registry.save(Intake(cluster="toy", counters=(sweep(10, 0, 0), sweep(20, 10**12, 50))))


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load(RULES.read_text("utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return [one for one in json.loads(DASHBOARD.read_text("utf-8"))["panels"] if one["type"] != "row"]


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    yield from (target["expr"] for panel in panels() for target in panel["targets"])


def test_rules_and_dashboard_use_printed_metrics_and_labels(almanac: Almanac, registry: Registry) -> None:
    use(registry)
    printed, largest = read(almanac("metrics").out)
    assert set(printed) == set(ABOUT) - set(ELSEWHERE)
    printed |= ELSEWHERE
    counts = ("ports_counted", "ports_over_limit", "errors", "port_error_limit_ratio", "flapping_link_downs")
    assert [largest[f"almanac_{name}"] for name in counts] == [3, 1, 50, 25, 50]
    assert largest["almanac_network_use_ratio"] == pytest.approx(10**12 / 600 / 50e9)
    used: set[str] = set()
    for expression in expressions():
        names = set(METRIC.findall(expression))
        assert names, expression
        assert names <= set(ABOUT), expression
        used |= names
        for name, matchers in SELECTOR.findall(expression):
            assert set(LABEL.findall(matchers)) <= printed[name], expression
        for labels in GROUPED.findall(expression):
            assert all(set(labels.split(", ")) <= printed[name] for name in names), expression
    assert used == set(ABOUT), "metrics that nobody looks at"
    texts = [(rule["expr"], text) for rule in rules() for text in rule["annotations"].values()]
    texts += [(one["expr"], one.get("legendFormat", "")) for panel in panels() for one in panel["targets"]]
    for expression, text in texts:
        known = set().union(*(printed[name] for name in METRIC.findall(expression)))
        assert set(TEMPLATE.findall(text)) - OF_TEMPLATES <= known, text


def test_expressions_have_balanced_brackets_and_panels_do_not_overlap() -> None:
    pairs = {")": "(", "}": "{", "]": "["}
    for expression in expressions():
        unclosed: list[str] = []
        for sign in re.sub(r'"[^"]*"', '""', expression):
            if sign in pairs.values():
                unclosed.append(sign)
            elif sign in pairs:
                assert unclosed, expression
                assert unclosed.pop() == pairs[sign], expression
        assert not unclosed, expression
    alerts = [rule["alert"] for rule in rules()]
    assert len(set(alerts)) == len(alerts)
    assert {rule["labels"]["severity"] for rule in rules()} == {"info", "warning", "critical"}
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    assert len({panel["id"] for panel in dashboard}) == len(dashboard)
    taken: set[tuple[int, int]] = set()
    for panel in dashboard:
        place = panel["gridPos"]
        cells = {(place["x"] + dx, place["y"] + dy) for dx in range(place["w"]) for dy in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_accepts_rules_and_expressions_of_the_dashboard(tmp_path: Path, processes: None) -> None:
    recorded = [
        {"record": f"panel{number}", "expr": target["expr"].replace("$cluster", ".*")}
        for number, target in enumerate(target for panel in panels() for target in panel["targets"])
    ]
    other = tmp_path / "dashboard.yml"
    other.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    call = subprocess.run(["promtool", "check", "rules", RULES, other], capture_output=True, text=True)
    assert call.returncode == 0, call.stderr
