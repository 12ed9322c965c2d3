"""Planner, Trends and Data in a real browser at 1280 x 800: answers are visible without scrolling."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import ConsoleMessage, Locator, Page, ViewportSize, expect

from almanac.demo.fill import CLUSTER, OPTICAL
from bench.support.served_dashboard import Served
from tests.support.browsing import MAP, Visitor, keep, mapped, ready

SCREEN = ViewportSize(width=1280, height=800)
SPINE = quote("MF0;A10-P1-IBSPINE-04:MQM9701/U1")


def number(page: Page, label: str) -> Locator:
    """The card with the number of this label."""
    return page.get_by_test_id("stMetric").filter(has_text=label).first


def planner(page: Page) -> list[Locator]:
    mapped(page)
    cards = [number(page, label) for label in ("Worst link", "Jobs slower", "Cut pairs")]
    return [*cards, page.locator(f"{MAP} canvas").first, page.get_by_text("Remove A10-P1-IBSPINE-04").first]


def circuits(page: Page) -> list[Locator]:
    charts = page.get_by_test_id("stVegaLiteChart")
    return [number(page, "Gain"), charts.nth(0), charts.nth(1), record_button(page)]


def record_button(page: Page) -> Locator:
    return page.get_by_role("button", name="Record that it was applied")


def trends(page: Page) -> list[Locator]:
    charts = page.get_by_test_id("stVegaLiteChart")
    cause = page.get_by_text("Changed: fabric, routes")
    return [page.get_by_text("1.85 ×, limit").first, cause.first, charts.first, charts.nth(3)]


def simulations(page: Page) -> list[Locator]:
    charts = page.get_by_test_id("stVegaLiteChart")
    return [number(page, "A · in-order"), number(page, "C · "), *(charts.nth(k) for k in range(3))]


def data(page: Page) -> list[Locator]:
    chart = page.get_by_test_id("stVegaLiteChart").first
    return [
        number(page, "Sources"),
        number(page, "Oldest data"),
        chart,
        page.get_by_text("all sources are fresh"),
    ]


def test_the_command_that_records_a_plan_is_behind_a_button(visitor: Visitor, demo: Served) -> None:
    page = visitor(SCREEN)
    page.goto(f"{demo.url}/planner?tab=circuits&cluster={OPTICAL}")
    ready(page, "Planner")
    expect(page.get_by_text("--applied")).to_have_count(0)
    record_button(page).click()
    expect(page.get_by_text("--applied").first).to_be_visible(timeout=60_000)


@pytest.mark.parametrize(
    ("title", "address", "answers"),
    [
        ("Planner", f"planner?cluster={CLUSTER}&down={SPINE}", planner),
        ("Planner", f"planner?tab=circuits&cluster={OPTICAL}", circuits),
        ("Trends", f"trends?cluster={CLUSTER}", trends),
        ("Trends", f"trends?tab=simulations&cluster={CLUSTER}", simulations),
        ("Data", "data", data),
    ],
    ids=["planner", "circuits", "trends", "simulations", "data"],
)
def test_the_answer_is_on_the_first_screen_without_warnings_of_charts(
    visitor: Visitor,
    demo: Served,
    title: str,
    address: str,
    answers: Callable[[Page], list[Locator]],
) -> None:
    page, warnings = visitor(SCREEN), list[str]()

    def console(message: ConsoleMessage) -> None:
        if message.type == "warning":
            warnings.append(message.text)

    page.on("console", console)
    page.goto(f"{demo.url}/{address}")
    ready(page, title)
    for answer in answers(page):
        expect(answer).to_be_visible()
        box = answer.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= SCREEN["height"], answer
    keep(page, f"{address.partition('?')[0]}-first-screen", whole=False)
    page.close()
    assert not [text for text in warnings if "WARN" in text]


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
