"""The page Jobs and a job's page in a browser: answered without scrolling; rows, dialogs and files work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from almanac.demo.fill import CLUSTER
from bench.support.served_dashboard import Served
from tests.support.browsing import MAP, Visitor, keep, mapped, ready, settle

HEIGHT = 800
JOB = f"jobs?job={CLUSTER}/4712"
REFRESHED = re.compile(r"^\d\d:\d\d:\d\d UTC")


@pytest.fixture
def page(visitor: Visitor) -> Iterator[Page]:
    opened = visitor({"width": 1280, "height": HEIGHT})
    yield opened
    opened.close()


def within(*shown: Locator) -> None:
    """Check that elements are inside the window, without scrolling."""
    for one in shown:
        expect(one).to_be_visible()
        box = one.bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= HEIGHT


def click_first(page: Page, table: Locator, x: int) -> None:
    """Click what a table's first row has at this place, and wait for the page of a job."""
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x, box["y"] + 47)
    page.wait_for_url("**job=**")


def test_the_list_of_jobs_is_answered_without_scrolling_and_a_click_opens_a_job(
    page: Page, demo: Served
) -> None:
    page.goto(f"{demo.url}/jobs?cluster={CLUSTER}")
    ready(page, "Jobs")
    table = page.get_by_test_id("stDataFrame").first
    within(table, page.get_by_text("18 jobs"), page.get_by_role("button", name="CSV", exact=True))
    keep(page, "jobs-1280", whole=False)
    click_first(page, table, 230)
    (job,) = parse_qs(urlsplit(page.url).query)["job"]
    expect(page.get_by_role("heading", name=re.compile(f"^{job.split('/')[1]} · "))).to_be_visible()


@pytest.mark.parametrize("address", ["jobs", "jobs?tab=shared", "fabric?device=A10-P1-IBSPINE-01"])
def test_moving_over_a_table_by_keys_opens_nothing(page: Page, demo: Served, address: str) -> None:
    page.goto(f"{demo.url}/{address}")
    ready(page)
    table = page.get_by_test_id("data-grid-canvas").last
    table.focus()
    before = page.url
    for key in ("ArrowRight", "ArrowDown", "Tab"):
        page.keyboard.press(key)
        page.wait_for_timeout(500)  # the server learns 150 ms later which cell is selected
        settle(page)
        focused = page.locator("[role='gridcell']:focus, [data-testid='data-grid-canvas']:focus")
        expect(focused).to_have_count(1)
        assert page.url == before


def test_a_job_is_answered_without_scrolling(page: Page, demo: Served) -> None:
    page.goto(f"{demo.url}/{JOB}")
    ready(page, "4712 · hpcg_16_64")
    mapped(page)
    numbers = page.get_by_test_id("stMetric")
    expect(numbers).to_have_count(3)
    maps = page.locator(f"{MAP} canvas")
    within(*numbers.all(), page.get_by_test_id("stVegaLiteChart").first, *maps.all())
    keep(page, "job-1280", whole=False)


def test_shared_links_are_answered_without_scrolling(page: Page, demo: Served) -> None:
    page.goto(f"{demo.url}/jobs?cluster={CLUSTER}&tab=shared")
    expect(page.get_by_role("heading", name="Jobs on the busiest links")).to_be_visible()
    settle(page)
    within(*page.get_by_test_id("stMetric").all(), page.get_by_test_id("stVegaLiteChart").first)
    keep(page, "shared-1280", whole=False)
    click_first(page, page.get_by_test_id("stDataFrame").last, 25)


def test_the_form_of_a_search_and_a_file_are_dialogs_that_refreshes_leave_open(
    page: Page, demo: Served
) -> None:
    page.goto(f"{demo.url}/{JOB}")
    ready(page, "4712 · hpcg_16_64")
    page.get_by_role("button", name="Find better placement").click()
    seconds = page.get_by_role("dialog").get_by_role("spinbutton", name="Seconds")
    seconds.fill("3")
    seconds.press("Tab")
    refreshed = page.get_by_text(REFRESHED)
    before = refreshed.inner_text()
    expect(refreshed).not_to_have_text(before)
    expect(seconds).to_have_value("3")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    ready(page)  # the server has closed it, too
    page.get_by_role("button", name="Get files").click()
    page.get_by_role("menuitem", name="openmpi-rankfile").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("mpirun")).to_be_visible()
    settle(page)
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download").click()
    assert Path(download.value.path()).read_text("utf-8").startswith("rank 0=")
