"""Pages of the present refresh: new data appear, walls share reads, a restarted database is found again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from bench.dashboard.statements import ran
from bench.support.served_dashboard import Served, serve
from dashboard.app import PAGES, Entry
from dashboard.queries.caching import SHARED
from dashboard.widgets.bar import REFRESH_SECONDS
from ingest.options import Options
from ingest.pipeline import ingest
from registry.database.local.server import stop
from registry.model import Job
from registry.model.intake import Intake
from registry.registry import Registry
from tests.dashboard.conftest import DATA, Filled
from tests.support.browsing import READY_MS, WIDE, ready

NEW_DATA_MS = 60_000
"""New data appear within this time without a reload."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A registry with a fabric, that tests change."""
    place = tmp_path / "home"
    try:
        with Registry.open(home=place, idle_seconds=300) as registry:
            tree = DATA / "infiniband" / "fattree2-64-broken-link"
            ingest(registry, [tree / "ibnetdiscover.txt"], Options(cluster="tree"))
        yield place
    finally:
        stop(place)


@pytest.fixture
def alive(home: Path, tmp_path: Path) -> Iterator[Served]:
    with serve({"ALMANAC_HOME": str(home)}, tmp_path) as running:
        yield running


def test_new_data_and_a_restarted_database_need_no_reload(
    browser: Browser, home: Path, alive: Served
) -> None:
    page = browser.new_page(viewport=WIDE)
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


@pytest.mark.parametrize("entry", [entry for entry in PAGES if entry.live], ids=attrgetter("name"))
def test_ten_walls_cost_the_reads_of_one(filled: Filled, entry: Entry) -> None:
    path, address = "" if entry is PAGES[0] else entry.name, {"cluster": "tree"}
    with filled.connect() as registry:
        once = ran(registry.database, path, address)
        assert ran(registry.database, path, address, viewers=10) == once != []


def test_a_second_browser_shows_the_same_from_the_address(browser: Browser, served: Served) -> None:
    first, second = browser.new_page(viewport=WIDE), browser.new_page(viewport=WIDE)
    first.goto(f"{served.url}/fabric")
    ready(first, "Fabric")
    first.get_by_role("combobox", name="Cluster").first.click()
    first.get_by_role("option", name="tree").click()
    first.wait_for_url("**cluster=tree**", timeout=READY_MS)
    ready(first)
    second.goto(first.url)
    ready(second, "Fabric")
    for page in (first, second):
        assert page.get_by_role("combobox", name="Cluster").first.input_value() == "tree"
        assert page.title() == "Fabric · Fabric Almanac"
    first.close()
    second.close()


def test_the_main_path_works_by_keyboard_alone(browser: Browser, served: Served) -> None:
    page = browser.new_page(viewport=WIDE)
    page.goto(f"{served.url}/?cluster=ndr")
    ready(page, "Overview")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement?.getAttribute('aria-label')") == "Search":
            break
    page.keyboard.type("4711")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs?job=ndr%2F4711**", timeout=READY_MS)
    ready(page)
    assert "4711" in page.get_by_test_id("stMain").inner_text()
    page.close()
