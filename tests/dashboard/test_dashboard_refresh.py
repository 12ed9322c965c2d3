"""Pages refresh: new data appear, walls share reads, a restarted database is found again, typing stays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from bench.dashboard.open_pages import serve_hastily
from bench.dashboard.statements import ran
from bench.support.served_dashboard import Served, serve
from dashboard.app import PAGES
from dashboard.queries.caching import SHARED
from dashboard.widgets.bar import REFRESH_SECONDS
from ingest.options import Options
from ingest.pipeline import ingest
from mapping.placement.search.options import SearchOptions
from mapping.service.placing import place
from mapping.service.request import PlacementRequest
from registry.database.local.server import stop
from registry.model import Job, Profile
from registry.model.intake import Intake
from registry.registry import Registry
from tests.dashboard.conftest import DATA, SCANNED, Filled
from tests.registry.model.test_circuit_plan import reconfiguration_record
from tests.support.browsing import NARROW, WIDE, Visitor, ready

JOB = Job(
    id="77",
    user="eve",
    state="RUNNING",
    hosts=("node0001", "node0040"),
    slots=(2, 2),
    ranks=3,
    started_at=SCANNED,
)
PROFILE = Profile.from_edges([0, 1], [2, 2], [8e6, 8e6], ranks=3, name="pairs", application="wrf")
TREE = DATA / "infiniband" / "fattree2-64-broken-link"
NEW_DATA_MS = 60_000
"""New data appear within this time without a reload."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A registry with a fabric, that tests change."""
    place = tmp_path / "home"
    try:
        with Registry.open(home=place, idle_seconds=300) as registry:
            ingest(registry, [TREE / "ibnetdiscover.txt"], Options(cluster="tree"))
        yield place
    finally:
        stop(place)


@pytest.fixture
def alive(home: Path, tmp_path: Path) -> Iterator[Served]:
    with serve({"ALMANAC_HOME": str(home)}, tmp_path) as running:
        yield running


def test_new_data_and_a_restarted_database_need_no_reload(
    visitor: Visitor, home: Path, alive: Served
) -> None:
    page = visitor(WIDE)
    page.goto(f"{alive.url}/?cluster=tree&wall=1")
    ready(page, "Overview")
    expect(page.get_by_text("almanac ingest --cluster tree JOBS")).to_be_visible()
    page.evaluate("() => { window.same = true }")
    stop(home)  # what opens it next starts it again
    with Registry.open(home=home, idle_seconds=300) as registry:
        now = datetime.now(UTC)
        job = Job(id="77", name="new", state="RUNNING", hosts=("node0001",), slots=(4,), started_at=now)
        registry.save(Intake(cluster="tree", jobs=(job,), source="test", observed_at=now))
    running = page.get_by_test_id("stMetric").filter(has_text="Running jobs")
    expect(running.get_by_text("1", exact=True)).to_be_visible(timeout=NEW_DATA_MS)
    assert page.evaluate("() => window.same")
    expect(page.locator("[data-testid='stException']")).to_have_count(0)
    page.close()


def test_what_viewers_share_is_older_than_a_refresh_never() -> None:
    assert SHARED.total_seconds() < REFRESH_SECONDS
    assert SHARED.total_seconds() + REFRESH_SECONDS < NEW_DATA_MS / 1000


def test_new_data_appear_on_all_other_pages(visitor: Visitor, home: Path, alive: Served) -> None:
    with Registry.open(home=home, idle_seconds=300) as registry:
        registry.save(Intake(cluster="tree", jobs=(JOB,), source="test", observed_at=datetime.now(UTC)))
    first, later = (  # texts on each page before and after the data are saved
        {
            "fabric?cluster=tree&colour=changes": "did not change until then",
            "jobs?cluster=tree": "1 to 1 of 1 job",
            "data?cluster=tree": "test · tree",
            "jobs?job=tree/77": "has no evaluated placement and no profile yet",
            "planner?cluster=tree": "No running job has known traffic",
            "planner?tab=circuits&cluster=tree": "Cluster tree has no circuit plan",
            "trends": "The registry holds no evaluated placement yet",
            "trends?tab=simulations": "The registry holds no placement and no simulated run yet",
        },
        (
            "2 cables appeared",
            "1 to 2 of 2 jobs",
            "another · tree",
            "Best possible",
            "Worst link now",
            "Circuits to move",
            "1 placement",
            "no simulated run yet. Simulate",
        ),
    )
    pages = [visitor(WIDE) for _ in first]
    for page, (path, text) in zip(pages, first.items(), strict=True):
        page.goto(f"{alive.url}/{path}")
        ready(page)
        expect(page.get_by_text(text).first).to_be_visible()
        page.evaluate("() => { window.same = true }")
    typed = pages[4].get_by_label("Drain a host")
    typed.press_sequentially("node00")
    with Registry.open(home=home, idle_seconds=300) as registry:
        now = datetime.now(UTC)
        ingest(registry, [TREE / "before.ibnetdiscover"], Options(cluster="tree", observed_at=now))
        other = replace(JOB, id="78", hosts=("node0002",), slots=(1,), ranks=1)
        registry.save(Intake(cluster="tree", jobs=(other,), source="another", observed_at=now))
        registry.save(Intake(cluster="tree", profiles=(PROFILE,)))
        profile = registry.profiles.list()[0].id
        registry.jobs.attach("77", profile, cluster="tree")
        short = SearchOptions(steps=100)
        place(registry, PlacementRequest(profile="pairs", job="77", cluster="tree", options=short))
        registry.circuit_plans.save(reconfiguration_record(profiles=(profile,), ranks=(3,)))
    for page, text in zip(pages, later, strict=True):
        expect(page.get_by_text(text).first).to_be_visible(timeout=NEW_DATA_MS)
        assert page.evaluate("() => window.same")
        expect(page.locator("[data-testid='stException']")).to_have_count(0)
    assert typed.input_value() == "node00"
    for page in pages:
        page.close()


def test_a_refresh_keeps_a_dialog_what_is_typed_in_it_and_the_search_that_it_starts(
    visitor: Visitor, home: Path, tmp_path: Path
) -> None:
    ends = np.random.default_rng(0).integers(48, size=(2, 400))
    size = np.full(400, 8e6)
    tangled = Profile.from_edges(ends[0], ends[1], size, ranks=48, name="tangled", application="t")
    hosts = tuple(f"node{number:04}" for number in range(1, 49, 4))
    job = replace(JOB, hosts=hosts, slots=(4,) * len(hosts), ranks=48)
    with Registry.open(home=home, idle_seconds=300) as registry:
        registry.save(
            Intake(cluster="tree", jobs=(job,), profiles=(tangled,), source="test", observed_at=SCANNED)
        )
        registry.jobs.attach("77", "tangled", cluster="tree")
    with serve_hastily({"ALMANAC_HOME": str(home)}, tmp_path) as served:
        page = visitor(WIDE)
        page.goto(f"{served.url}/jobs?job=tree/77")
        ready(page, "Jobs")
        page.get_by_role("button", name="Find better placement").click()
        dialog = page.get_by_role("dialog")
        seconds = dialog.get_by_role("spinbutton", name="Seconds")
        seconds.fill("6")
        refreshed(page)
        expect(seconds).to_have_value("6")
        dialog.get_by_role("button", name="Find placement").click()
        expect(page.get_by_text("of 6 s")).to_be_visible()
        refreshed(page, 1)
        expect(page.get_by_text("Saved to the history")).to_be_visible()
        refreshed(page)
        expect(page.get_by_text("Saved to the history")).to_be_visible()
        expect(page.get_by_test_id("stMetric").filter(has_text="Best possible")).to_be_visible()
        page.close()


def refreshed(page: Page, times: int = 2) -> None:
    """Wait until the page has refreshed itself so many times."""
    for _ in range(times):
        shown = page.get_by_text(re.compile(r"^\d\d:\d\d:\d\d UTC")).first
        before = shown.inner_text()[:8]
        expect(shown).not_to_have_text(re.compile(before))


@pytest.mark.parametrize(
    ("path", "address"),
    [
        *(("" if entry is PAGES[0] else entry.name, {"cluster": "tree"}) for entry in PAGES),
        ("jobs", {"cluster": "tree", "tab": "shared"}),
        ("jobs", {"job": "ndr/4711"}),
        ("planner", {"cluster": "tree", "tab": "circuits"}),
        ("trends", {"cluster": "tree", "tab": "simulations"}),
    ],
)
def test_ten_walls_cost_the_reads_of_one(filled: Filled, path: str, address: dict[str, str]) -> None:
    with filled.connect() as registry:
        once = ran(registry.database, path, address)
        assert ran(registry.database, path, address, viewers=10) == once != []


def test_a_second_browser_shows_the_same_from_the_address(visitor: Visitor, served: Served) -> None:
    first, second = visitor(WIDE), visitor(NARROW)
    first.goto(f"{served.url}/fabric")
    ready(first, "Fabric")
    first.get_by_role("combobox", name="Cluster").first.click()
    first.get_by_role("option", name="tree").click()
    first.wait_for_url("**cluster=tree**")
    ready(first)
    second.goto(first.url)
    ready(second, "Fabric")
    for page in (first, second):
        assert page.get_by_role("combobox", name="Cluster").first.input_value() == "tree"
        assert page.title() == "Fabric · Fabric Almanac"
    first.close()
    second.close()


def test_the_main_path_works_by_keyboard_alone(visitor: Visitor, served: Served) -> None:
    page = visitor(WIDE)
    page.goto(f"{served.url}/?cluster=ndr")
    ready(page, "Overview")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement?.getAttribute('aria-label')") == "Search":
            break
    page.keyboard.type("4711")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs?job=ndr%2F4711**")
    ready(page)
    assert "4711" in page.get_by_test_id("stMain").inner_text()
    page.close()
