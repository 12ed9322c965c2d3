"""Every page in a real browser, on what ``almanac demo`` saves: its answer is visible without scrolling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import ConsoleMessage, Locator, Page, expect

from almanac.demo.demo import CLUSTER, OPTICAL
from bench.support.served_dashboard import Served, Watch
from tests.support.browsing import MAP, SCREEN, Visitor, keep, mapped, ready

HERE = f"cluster={CLUSTER}"
SPINE = quote("MF0;A10-P1-IBSPINE-04:MQM9701/U1")


def number(page: Page, label: str) -> Locator:
    return page.get_by_test_id("stMetric").filter(has_text=label).first


def charts(page: Page, *numbers: int) -> list[Locator]:
    return [page.get_by_test_id("stVegaLiteChart").nth(place) for place in numbers]


def maps(page: Page) -> list[Locator]:
    mapped(page)
    return page.locator(f"{MAP} canvas").all()


def fabric(page: Page) -> list[Locator]:
    return [*maps(page), page.get_by_text("Busiest links (measured)").first]


def planner(page: Page) -> list[Locator]:
    cards = [number(page, label) for label in ("Worst link", "Jobs slower", "Cut pairs")]
    shown = [*cards, *maps(page), page.get_by_text("Remove A10-P1-IBSPINE-04").first]
    legend = page.locator(f"{MAP} .legend")
    expect(legend).to_contain_text("removed · 27")
    expect(legend.locator(".swatch.dashed")).to_have_count(1)
    return shown


def jobs(page: Page) -> list[Locator]:
    buttons = page.get_by_role("button", name="CSV", exact=True)
    return [page.get_by_test_id("stDataFrame").first, page.get_by_text("18 jobs"), buttons]


def job(page: Page) -> list[Locator]:
    expect(page.get_by_role("heading", name="4712 · hpcg_16_64")).to_be_visible()
    expect(page.get_by_test_id("stMetric")).to_have_count(3)
    return [*page.get_by_test_id("stMetric").all(), *charts(page, 0), *maps(page)]


def shared(page: Page) -> list[Locator]:
    expect(page.get_by_role("heading", name="Jobs on the busiest links")).to_be_visible()
    return [*page.get_by_test_id("stMetric").all(), *charts(page, 0)]


def trends(page: Page) -> list[Locator]:
    texts = ("1.85 ×, limit", "Changed: fabric, routes")
    return [*(page.get_by_text(text).first for text in texts), *charts(page, 0, 3)]


def simulations(page: Page) -> list[Locator]:
    mapped(page)
    return [number(page, "A · in-order"), number(page, "C · "), *charts(page, 0, 1, 2)]


def circuits(page: Page) -> list[Locator]:
    expect(page.get_by_text("--applied")).to_have_count(0)  # behind the button: its scripts are large
    record = page.get_by_role("button", name="Record that it was applied")
    return [number(page, "Gain"), *charts(page, 0, 1), record]


def data(page: Page) -> list[Locator]:
    numbers = [number(page, "Sources"), number(page, "Oldest data")]
    return [*numbers, *charts(page, 0), page.get_by_text("all sources are fresh")]


PAGES: dict[str, tuple[str, str, Callable[[Page], list[Locator]]]] = {
    "overview": ("Overview", f"?{HERE}", lambda page: [number(page, "Peak link")]),
    "wall": ("Overview", f"?{HERE}&wall=1", lambda page: [number(page, "Peak link")]),
    "fabric": ("Fabric", f"fabric?{HERE}", fabric),
    "changes": (
        "Fabric",
        f"fabric?tab=changes&{HERE}",
        lambda page: [page.get_by_text("Change history").first],
    ),
    "planner": ("Planner", f"planner?{HERE}&down={SPINE}", planner),
    "circuits": ("Planner", f"planner?tab=circuits&cluster={OPTICAL}", circuits),
    "jobs": ("Jobs", f"jobs?{HERE}", jobs),
    "job": ("Jobs", f"jobs?job={CLUSTER}/4712", job),
    "shared": ("Jobs", f"jobs?tab=shared&{HERE}", shared),
    "trends": ("Trends", f"trends?{HERE}", trends),
    "simulations": ("Trends", f"trends?tab=simulations&{HERE}", simulations),
    "data": ("Data", "data", data),
}
"""Title and address of each page, and what answers its question."""


class Shown(NamedTuple):
    page: Page
    name: str


@pytest.fixture(scope="module", params=PAGES)
def shown(request: pytest.FixtureRequest, visitor: Visitor, demo: Served) -> Iterator[Shown]:
    """A page that may neither complain in its console nor ask another host."""
    title, address, _ = PAGES[request.param]
    page, watch, warnings = visitor(SCREEN), Watch(), list[str]()
    watch.on(page, urlsplit(demo.url).netloc)

    def console(message: ConsoleMessage) -> None:
        if message.type == "warning":
            warnings.append(message.text)

    page.on("console", console)
    page.goto(f"{demo.url}/{address}")
    ready(page, title)
    yield Shown(page, request.param)
    page.close()
    assert not watch.complaints
    assert not watch.strangers
    assert not [text for text in warnings if "WARN" in text]  # of charts


def test_the_answer_is_on_the_first_screen(shown: Shown) -> None:
    for answer in PAGES[shown.name][2](shown.page):
        expect(answer).to_be_visible()
        box = answer.bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= SCREEN["height"], answer
    keep(shown.page, f"{shown.name}-light", whole=False)
