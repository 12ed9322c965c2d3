"""What any page must stand in a real browser: markup in names, a database that is down, a window's end."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from bench.support.served_dashboard import Served, Watch, serve
from tests.dashboard.conftest import MARKUP
from tests.support.browsing import WIDE, Visitor, keep, ready


def test_a_name_with_markup_is_text_everywhere(visitor: Visitor, served: Served) -> None:
    page = visitor(WIDE)
    watch = Watch()
    watch.on(page, urlsplit(served.url).netloc)
    page.goto(f"{served.url}/job?job=tree/9")
    expect(page.get_by_text("almanac map PROFILE --job 9 --cluster tree")).to_be_visible()
    assert made_of_markup(page) == 0
    page.goto(f"{served.url}/jobs?cluster=tree")
    ready(page, "Jobs")
    assert made_of_markup(page) == 0
    page.goto(f"{served.url}/job?job={MARKUP}")
    expect(page.get_by_text("There is no cluster")).to_be_visible()
    message = page.get_by_test_id("stAlert")
    cluster = MARKUP.rsplit("/", 1)[0]  # an address names a job as CLUSTER/JOB
    assert cluster in message.inner_text().replace("\N{WORD JOINER}", "")
    assert message.locator("b, strong, a, code, .katex").count() == 0
    page.close()
    assert not watch.strangers


def test_a_database_that_is_down_is_reported_without_a_traceback(visitor: Visitor, tmp_path: Path) -> None:
    with serve({"ALMANAC_DB": "bolt://127.0.0.1:1"}, tmp_path) as served:
        page = visitor(WIDE)
        for path in ("", "fabric", "jobs"):
            page.goto(f"{served.url}/{path}")
            expect(page.get_by_text("The database does not answer:")).to_be_visible()
            expect(page.get_by_text("almanac doctor").first).to_be_visible()
            assert "Traceback" not in page.inner_text("body")
        keep(page, "database-down")
        page.close()


def made_of_markup(page: Page) -> int:
    """Elements that the name became."""
    links = page.locator("a[href*='e.invalid']").count()
    return links + page.locator("[data-testid='stMain'] b", has_text="bold").count()
