"""The map of the fabric in a real browser: pointing, picking, moving, by mouse and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from almanac.demo.fill import CLUSTER
from almanac.demo.history import MOVED_AT
from bench.support.served_dashboard import Served, Watch
from tests.dashboard.conftest import Filled
from tests.support.browsing import MAP, NARROW, Look, Visitor, keep, mapped, ready

TIP = f"{MAP} .tip"
PLACE = "(root, item) => root.placeOf(item ?? undefined)"


@pytest.fixture
def page(visitor: Visitor, demo: Served) -> Iterator[Page]:
    """The fabric page of the demo; nothing may complain, nothing ask another host."""
    opened = visitor(NARROW)
    watch = Watch()
    watch.on(opened, urlsplit(demo.url).netloc)
    opened.goto(f"{demo.url}/fabric?cluster={CLUSTER}")
    ready(opened, "Fabric")
    mapped(opened)
    yield opened
    opened.close()
    assert not watch.complaints
    assert not watch.strangers


def address(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def place(page: Page, item: dict[str, int] | None = None) -> tuple[float, float]:
    spot = page.locator(MAP).first.evaluate(PLACE, item)
    return spot["x"], spot["y"]


def canvas(page: Page) -> Locator:
    return page.locator(f"{MAP} canvas").first


def within(page: Page, item: dict[str, int]) -> tuple[float, float]:
    """Place of an item as parts of the map's width and height; the legend may take a line more or less."""
    (x, y), box = place(page, item), canvas(page).bounding_box()
    assert box is not None
    return (x - box["x"]) / box["width"], (y - box["y"]) / box["height"]


def frames(page: Page) -> int:
    return int(page.locator(MAP).first.get_attribute("data-frames") or 0)


def test_the_worst_link_is_pointed_at_and_picked(page: Page) -> None:
    x, y = place(page)
    page.mouse.move(x, y)
    expect(page.locator(TIP)).to_contain_text("this way")
    page.mouse.click(x, y)
    page.wait_for_url(re.compile("link="))
    expect(page.get_by_role("tab", name="Ranks")).to_be_visible()
    page.get_by_role("tab", name="Ranks").click()
    expect(page.get_by_role("combobox", name="Ranks of job")).to_be_visible()
    ready(page)
    keep(page, "fabric-link")


def test_what_is_picked_is_not_sent_again_and_is_shown_after_a_reload(page: Page) -> None:
    size = page.locator(MAP).first.get_attribute("data-bytes")
    page.mouse.click(*place(page))
    page.wait_for_url(re.compile("link="))
    ready(page)
    assert page.locator(MAP).first.get_attribute("data-bytes") == size
    link = address(page)["link"]
    page.reload()
    ready(page)
    mapped(page)
    assert address(page)["link"] == link
    canvas(page).focus()
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "link=" not in url)


def test_the_hottest_links_are_walked_and_picked_by_keyboard(page: Page) -> None:
    canvas(page).focus()
    page.keyboard.press("n")
    first = page.locator(TIP).inner_text()
    page.keyboard.press("n")
    assert page.locator(TIP).inner_text() != first
    page.keyboard.press("p")
    assert page.locator(TIP).inner_text() == first
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("link="))


def test_keys_move_the_map_and_take_it_back(page: Page) -> None:
    canvas(page).focus()
    home = place(page)
    for key in ("+", "+", "+", "ArrowRight", "ArrowDown"):
        before = frames(page)
        page.keyboard.press(key)
        page.wait_for_function(
            "([root, count]) => Number(root.dataset.frames) > count",
            arg=[page.locator(MAP).first.element_handle(), before],
        )
    assert place(page) != home
    page.keyboard.press("0")
    assert place(page) == pytest.approx(home, abs=1)


def test_the_map_is_dragged_and_a_drag_picks_nothing(page: Page) -> None:
    canvas(page).focus()
    for _ in range(4):
        page.keyboard.press("+")
    x, y = place(page, {"cable": 0})
    box = canvas(page).bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 60, middle[1] - 40, steps=5)
    page.mouse.up()
    assert place(page, {"cable": 0}) == pytest.approx((x - 60, y - 40), abs=1)
    assert "link" not in address(page)


def test_the_wheel_scrolls_the_page_until_the_map_has_the_focus(page: Page) -> None:
    def across() -> float:
        return place(page, {"cable": 9})[0] - place(page, {"cable": 0})[0]

    home = across()
    page.mouse.move(*place(page))
    page.mouse.wheel(0, -50)
    assert across() == home
    canvas(page).focus()
    page.mouse.move(*place(page))
    page.mouse.wheel(0, -50)
    page.wait_for_function(
        "([root, old]) => Math.abs(root.placeOf({cable: 9}).x - root.placeOf({cable: 0}).x - old) > 1",
        arg=[page.locator(MAP).first.element_handle(), home],
    )


def test_a_machine_is_found_by_a_search_and_shown_on_the_map(page: Page) -> None:
    page.get_by_label("Find a host, a switch, a GUID or a link").fill("b05-p1-dgx-05-c10")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("host="))
    ready(page)
    expect(page.get_by_role("heading", name="b05-p1-dgx-05-c10")).to_be_visible()
    expect(page.get_by_role("tab", name="Ports")).to_be_visible()


def test_a_click_on_the_name_of_a_row_picks_the_switch(page: Page) -> None:
    page.get_by_role("radio", name="Cells").click()
    page.wait_for_url(re.compile("shape=cells"))
    ready(page)
    box = canvas(page).bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 60, box["y"] + 36)  # the first name in the margin
    page.wait_for_url(re.compile("switch="))
    ready(page)
    page.get_by_role("tab", name="Jobs").click()
    page.wait_for_url(re.compile("show=jobs"))
    expect(page.get_by_text("below this switch")).to_be_visible()


def test_other_colours_are_drawn_at_the_same_places(page: Page) -> None:
    spot = within(page, {"cable": 5})
    page.get_by_role("radio", name="Capacity").click()
    page.wait_for_url(re.compile("colour=capacity"))
    ready(page)
    mapped(page)
    assert within(page, {"cable": 5}) == pytest.approx(spot, abs=1e-3)
    expect(page.locator(f"{MAP} .legend")).to_contain_text("GB/s")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_look_of_the_map_is_kept_as_a_picture(visitor: Visitor, demo: Served, scheme: Look) -> None:
    opened = visitor(NARROW, scheme)
    for colour, shape in (("estimated", "cells"), ("measured", "lines"), ("errors", "lines")):
        opened.goto(f"{demo.url}/fabric?cluster={CLUSTER}&colour={colour}&shape={shape}")
        ready(opened, "Fabric")
        mapped(opened)
        keep(opened, f"fabric-{colour}-{shape}-{scheme}")
    opened.close()


def test_a_page_without_traffic_shows_capacities(visitor: Visitor, served: Served, filled: Filled) -> None:
    opened = visitor(NARROW)
    opened.goto(f"{served.url}/fabric?cluster=tree")
    mapped(opened)
    expect(opened.locator(f"{MAP} .legend")).to_contain_text("Each direction")
    opened.close()


LOW = ViewportSize(width=1280, height=800)
ANSWERS = {
    "load": ("", "Busiest links (measured)"),
    "errors": ("colour=errors", "New errors"),
    "capacity": ("colour=capacity", "The fabric"),
    "changes": ("colour=changes", "Change history"),
    "a link": (f"link={quote(f'{MOVED_AT}:2')}", "Utilisation by job"),
    "a switch": (f"switch={quote(MOVED_AT)}", "Ports"),
}
"""Address, and a text of the answer."""


@pytest.mark.parametrize("name", ANSWERS)
def test_each_question_is_answered_in_a_low_window_without_scrolling(
    visitor: Visitor, demo: Served, name: str
) -> None:
    address, answer = ANSWERS[name]
    opened = visitor(LOW)
    opened.goto(f"{demo.url}/fabric?cluster={CLUSTER}&{address}")
    ready(opened, "Fabric")
    mapped(opened)
    expect(opened.get_by_text(answer).first).to_be_in_viewport()
    expect(opened.get_by_test_id("stSlider")).to_be_in_viewport()
    opened.wait_for_function(
        "() => { const main = document.querySelector('[data-testid=stMain]');"
        " return main.scrollHeight <= main.clientHeight; }"
    )
    picture, whole = (
        canvas(opened).bounding_box(),
        opened.get_by_test_id("stMainBlockContainer").bounding_box(),
    )
    assert picture is not None
    assert whole is not None
    assert picture["height"] >= 0.55 * LOW["height"]
    assert picture["width"] >= 0.64 * whole["width"]
    keep(opened, f"fabric-low-{name.replace(' ', '-')}", whole=False)
    opened.close()


def test_the_map_takes_the_height_of_a_higher_window(page: Page) -> None:
    low = canvas(page).bounding_box()
    page.set_viewport_size({"width": 1280, "height": 1300})
    page.wait_for_function(
        "([root, height]) => root.querySelector('canvas').clientHeight > height + 200",
        arg=[page.locator(MAP).first.element_handle(), low["height"] if low else 0],
    )


def test_the_slider_goes_to_a_change_by_keyboard(page: Page) -> None:
    slider = page.get_by_role("slider")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile("at="))
    ready(page)
    mapped(page)
