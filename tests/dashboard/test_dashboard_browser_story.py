"""The main story in a real browser: a hot link, the job on it, a better placement, its file, the history."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from almanac.demo.fill import CLUSTER, RUNNING
from bench.support.served_dashboard import Served, Watch
from tests.support.browsing import MAP, WIDE, Visitor, keep, mapped, ready, settle

RANKS = 64


def test_from_a_hot_link_to_a_better_placement_and_its_history(visitor: Visitor, demo: Served) -> None:
    page = visitor(WIDE)
    watch = Watch()
    watch.on(page, urlsplit(demo.url).netloc)
    page.goto(f"{demo.url}/fabric?cluster={CLUSTER}")
    job = _open_the_job_on_the_hottest_link(page)
    found = _place_again(page, job)
    _download(page)
    _find_in_the_history(page, found, job)
    page.close()
    assert not watch.complaints
    assert not watch.strangers


def test_the_hottest_link_is_picked_by_keyboard(visitor: Visitor, demo: Served) -> None:
    page = visitor(WIDE)
    page.goto(f"{demo.url}/fabric?cluster={CLUSTER}")
    ready(page, "Fabric")
    mapped(page)
    page.locator(f"{MAP} canvas").focus()
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    page.wait_for_url("**link=**")
    settle(page)
    expect(page.get_by_role("tab", name="Ranks")).to_be_visible()
    page.close()


def _open_the_job_on_the_hottest_link(page: Page) -> str:
    ready(page, "Fabric")
    mapped(page)
    place = page.locator(MAP).first.evaluate("map => map.placeOf()")
    page.mouse.click(place["x"], place["y"])
    page.wait_for_url("**link=**")
    settle(page)
    page.get_by_role("tab", name="Ranks").click()
    expect(page.get_by_role("combobox", name="Ranks of job")).to_be_visible()
    keep(page, "story-1-link", whole=False)
    onward = page.get_by_role("link", name=re.compile(r"^Open job \d+"))
    onward.click()
    page.wait_for_url("**job=**")
    (job,) = parse_qs(urlsplit(page.url).query)["job"]
    _opened(page, job)
    assert job.split("/")[1] in RUNNING
    return job


def _opened(page: Page, job: str) -> None:
    """Wait until the page of a job is shown."""
    expect(page.get_by_role("heading", name=re.compile(f"^{job.split('/')[1]} · "))).to_be_visible()
    ready(page)


def _place_again(page: Page, job: str) -> str:
    """Search for two seconds; the id of what was saved."""
    page.get_by_role("button", name="Find better placement").click()
    seconds = page.get_by_role("spinbutton", name="Seconds")
    seconds.fill("2")
    seconds.press("Tab")  # Enter would submit the form, and the button below begin a second search
    page.get_by_role("button", name="Find placement").click()
    saved = page.get_by_text(re.compile(r"Saved to the history as p[0-9a-f]{12}")).first
    expect(saved).to_be_visible()
    match = re.search(r"p[0-9a-f]{12}", saved.inner_text())
    assert match is not None
    show = page.get_by_role("button", name="Show it")
    if show.count():
        show.click()
        page.wait_for_url(f"**placement={match.group()}**")
    _opened(page, job)
    keep(page, "story-2-job")
    return match.group()


def _download(page: Page) -> None:
    page.get_by_role("button", name="Get files").click()
    page.get_by_role("menuitem", name="openmpi-rankfile").click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Download")).to_be_visible()
    settle(page)  # the page draws the dialog while it runs, and may replace the button that is clicked
    with page.expect_download() as download:
        page.get_by_role("dialog").get_by_role("button", name="Download").click()
    lines = Path(download.value.path()).read_text("utf-8").splitlines()
    assert len(lines) == RANKS
    assert lines[0].startswith("rank 0=")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def _find_in_the_history(page: Page, found: str, job: str) -> None:
    page.get_by_role("link", name="Trends", exact=True).click()
    page.wait_for_url("**/trends**")
    ready(page, "Trends")
    keep(page, "story-3-trends")
    page.goto(f"{urlsplit(page.url)._replace(path='/job', query=f'placement={found}').geturl()}")
    page.wait_for_url("**job=**")
    _opened(page, job)
    assert parse_qs(urlsplit(page.url).query)["job"] == [job]
