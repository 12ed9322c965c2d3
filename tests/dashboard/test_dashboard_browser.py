"""What only a browser shows of any page: markup in names, two tabs, narrow windows, tables, errors."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from almanac.demo.fill import CLUSTER, JOB, RUNNING
from bench.support.served_dashboard import Served, Watch
from tests.dashboard.conftest import MARKUP
from tests.support.browsing import MAP, NARROW, SCREEN, WIDE, Visitor, mapped, ready, settle

LATER = "() => new Promise(done => setTimeout(done, 200))"
"""A timer that ends after the one by which the page tells the server, 150 ms later, what is selected."""


def test_a_name_with_markup_is_text_everywhere(visitor: Visitor, served: Served) -> None:
    page = visitor(WIDE)
    watch = Watch()
    watch.on(page, urlsplit(served.url).netloc)
    page.goto(f"{served.url}/job?job=tree/9")
    expect(page.get_by_text("almanac map PROFILE --job 9 --cluster tree")).to_be_visible()
    links = page.locator("a[href*='e.invalid']").count()
    assert links + page.locator("[data-testid='stMain'] b", has_text="bold").count() == 0
    page.goto(f"{served.url}/job?job={MARKUP}")
    expect(page.get_by_text("There is no cluster")).to_be_visible()
    message = page.get_by_test_id("stAlert")
    cluster = MARKUP.rsplit("/", 1)[0]  # an address names a job as CLUSTER/JOB
    assert cluster in message.inner_text().replace("\N{WORD JOINER}", "")
    assert message.locator("b, strong, a, code, .katex").count() == 0
    page.close()
    assert not watch.strangers


def test_a_second_tab_shows_the_same_from_the_address(visitor: Visitor, served: Served) -> None:
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
        page.close()


def test_a_narrow_overview_cuts_off_no_card_and_is_searched_by_keyboard(
    visitor: Visitor, demo: Served
) -> None:
    page = visitor(ViewportSize(width=768, height=1024))
    page.goto(f"{demo.url}/?cluster={CLUSTER}&live=off")
    ready(page, "Overview")
    mapped(page)
    cut = page.evaluate(
        "() => [...document.querySelectorAll('[data-testid=stMain] .stVerticalBlock')]"
        ".filter(card => getComputedStyle(card).overflowY === 'auto')"
        ".filter(card => card.scrollHeight > card.clientHeight + 1).map(card => card.innerText)"
    )
    assert cut == []
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement?.getAttribute('aria-label')") == "Search":
            break
    page.keyboard.type(JOB)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs?job={CLUSTER}%2F{JOB}**")
    _opened(page)
    page.close()


def _opened(page: Page) -> str:
    """Wait until the page shows the job of its address, and return it."""
    (job,) = parse_qs(urlsplit(page.url).query)["job"]
    expect(page.get_by_role("heading", name=re.compile(f"^{job.split('/')[1]} · "))).to_be_visible()
    return job


@pytest.mark.parametrize(
    ("address", "x"), [("jobs", 230), ("jobs?tab=shared", 25), ("fabric?device=A10-P1-IBSPINE-01", None)]
)
def test_keys_move_over_a_table_and_a_click_on_a_job_opens_it(
    visitor: Visitor, demo: Served, address: str, x: int | None
) -> None:
    page = visitor(SCREEN)
    page.goto(f"{demo.url}/{address}")
    ready(page)
    page.get_by_test_id("data-grid-canvas").last.focus()
    before = page.url
    for key in ("ArrowRight", "ArrowDown", "Tab"):
        page.keyboard.press(key)
        page.evaluate(LATER)
        settle(page)
        focused = page.locator("[role='gridcell']:focus, [data-testid='data-grid-canvas']:focus")
        expect(focused).to_have_count(1)
        assert page.url == before
    if x is not None:  # place of the name of the first row
        box = page.get_by_test_id("stDataFrame").last.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + x, box["y"] + 47)
        page.wait_for_url("**job=**")
        _opened(page)
    page.close()


def test_a_name_that_does_not_exist_is_an_error_below_its_field(visitor: Visitor, demo: Served) -> None:
    page = visitor(SCREEN)
    page.goto(f"{demo.url}/planner?cluster={CLUSTER}")
    ready(page, "Planner")
    field = page.get_by_label("Drain a host")
    field.fill("nobody")
    field.press("Enter")
    error = page.get_by_test_id("stAlertContentError")
    expect(error).to_contain_text("there is no host")
    above, below = field.bounding_box(), error.bounding_box()
    assert above is not None
    assert below is not None
    assert 0 < below["y"] - above["y"] < 100
    assert "drain=" not in page.url
    page.close()


# --- the main story: a hot link, the job on it, a better placement, its file, the history -------------------


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


def _open_the_job_on_the_hottest_link(page: Page) -> str:
    ready(page, "Fabric")
    mapped(page)
    place = page.locator(MAP).first.evaluate("map => map.placeOf()")
    page.mouse.click(place["x"], place["y"])
    page.wait_for_url("**link=**")
    settle(page)
    page.get_by_role("tab", name="Ranks").click()
    expect(page.get_by_role("combobox", name="Ranks of job")).to_be_visible()
    onward = page.get_by_role("link", name=re.compile(r"^Open job \d+"))
    onward.click()
    page.wait_for_url("**job=**")
    job = _opened(page)
    ready(page)
    assert job.split("/")[1] in RUNNING
    return job


def _place_again(page: Page, job: str) -> str:
    """Search for a second; the id of what was saved."""
    page.get_by_role("button", name="Find better placement").click()
    seconds = page.get_by_role("spinbutton", name="Seconds")
    seconds.fill("1")
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
    assert _opened(page) == job
    ready(page)
    return match.group()


def _download(page: Page) -> None:
    page.get_by_role("button", name="Get files").click()
    page.get_by_role("menuitem", name="openmpi-rankfile").click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Download")).to_be_visible()
    settle(page)  # the page draws the dialog while it runs, and may replace the button that is clicked
    with page.expect_download() as download:
        page.get_by_role("dialog").get_by_role("button", name="Download").click()
    lines = Path(download.value.path()).read_text("utf-8").splitlines()
    assert len(lines) == 64
    assert lines[0].startswith("rank 0=")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def _find_in_the_history(page: Page, found: str, job: str) -> None:
    page.get_by_role("link", name="Trends", exact=True).click()
    page.wait_for_url("**/trends**")
    ready(page, "Trends")
    page.goto(f"{urlsplit(page.url)._replace(path='/job', query=f'placement={found}').geturl()}")
    page.wait_for_url("**job=**")
    assert _opened(page) == job
