"""The map of the fabric in a real browser: pointing, picking, moving, by mouse and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from almanac.demo.fill import CLUSTER
from almanac.demo.history import MOVED_AT
from bench.support.served_dashboard import Served, Watch
from tests.support.browsing import MAP, SCREEN, Visitor, keep, mapped, ready

TIP = f"{MAP} .tip"
PLACE = "(root, item) => root.placeOf(item ?? undefined)"


@pytest.fixture
def page(visitor: Visitor, demo: Served) -> Iterator[Page]:
    """The fabric page of the demo; nothing may complain, nothing ask another host."""
    opened = visitor(SCREEN)
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


def area(page: Page) -> tuple[float, float, float, float]:
    """Left, top, width and height of the map."""
    box = canvas(page).bounding_box()
    assert box is not None
    return box["x"], box["y"], box["width"], box["height"]


def within(page: Page, item: dict[str, int]) -> tuple[float, float]:
    """Place of an item as parts of the map's width and height; the legend may take a line more or less."""
    (x, y), (left, top, width, height) = place(page, item), area(page)
    return (x - left) / width, (y - top) / height


def becomes_true(page: Page, condition: str, value: float) -> None:
    """Wait until a condition of the map's element and a value is true."""
    root = page.locator(MAP).first.element_handle()
    page.wait_for_function(f"([root, value]) => {condition}", arg=[root, value])


def unpick(page: Page) -> None:
    canvas(page).focus()
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: not {"link", "switch"} & set(parse_qs(urlsplit(url).query)))
    ready(page)


def test_the_map_is_moved_by_wheel_keys_and_mouse_and_takes_the_windows_height(page: Page) -> None:
    def across() -> float:
        return place(page, {"cable": 9})[0] - place(page, {"cable": 0})[0]

    home, width = place(page), across()
    page.mouse.move(*home)
    page.mouse.wheel(0, -50)
    assert across() == width  # the wheel scrolls the page until the map has the focus
    canvas(page).focus()
    page.mouse.wheel(0, -50)
    spread = "root.placeOf({cable: 9}).x - root.placeOf({cable: 0}).x"
    becomes_true(page, f"Math.abs({spread} - value) > 1", width)
    page.keyboard.press("0")
    assert place(page) == pytest.approx(home, abs=1)
    for key in ("+", "+", "+", "ArrowRight", "ArrowDown"):
        before = int(page.locator(MAP).first.get_attribute("data-frames") or 0)
        page.keyboard.press(key)
        becomes_true(page, "Number(root.dataset.frames) > value", before)
    assert place(page) != home
    x, y = place(page, {"cable": 0})
    left, top, whole, height = area(page)
    page.mouse.move(left + whole / 2, top + height / 2)
    page.mouse.down()
    page.mouse.move(left + whole / 2 - 60, top + height / 2 - 40, steps=5)
    page.mouse.up()
    assert place(page, {"cable": 0}) == pytest.approx((x - 60, y - 40), abs=1)
    assert "link" not in address(page)  # a drag picks nothing
    page.set_viewport_size({"width": 1280, "height": 1300})
    becomes_true(page, "root.querySelector('canvas').clientHeight > value + 200", height)


def test_links_are_picked_by_mouse_or_keyboard_and_a_pick_sends_nothing_again(page: Page) -> None:
    size = page.locator(MAP).first.get_attribute("data-bytes")
    page.mouse.move(*place(page))
    expect(page.locator(TIP)).to_contain_text("this way")
    page.mouse.click(*place(page))
    page.wait_for_url(re.compile("link="))
    ready(page)
    assert page.locator(MAP).first.get_attribute("data-bytes") == size
    worst = address(page)["link"]
    page.get_by_role("tab", name="Ranks").click()
    expect(page.get_by_role("combobox", name="Ranks of job")).to_be_visible()
    page.reload()
    ready(page)
    mapped(page)
    assert address(page)["link"] == worst
    unpick(page)
    page.keyboard.press("n")
    first = page.locator(TIP).inner_text()
    page.keyboard.press("n")
    assert page.locator(TIP).inner_text() != first
    page.keyboard.press("p")
    assert page.locator(TIP).inner_text() == first
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("link="))
    assert address(page)["link"] == worst


def answered(page: Page, answer: str) -> None:
    """Check that a question is answered without scrolling, beside a large map."""
    ready(page)
    mapped(page)
    expect(page.get_by_text(answer).first).to_be_in_viewport()
    expect(page.get_by_test_id("stSlider")).to_be_in_viewport()
    page.wait_for_function(
        "() => { const main = document.querySelector('[data-testid=stMain]');"
        " return main.scrollHeight <= main.clientHeight; }"
    )
    block = page.get_by_test_id("stMainBlockContainer").bounding_box()
    assert block is not None
    assert area(page)[3] >= 0.55 * SCREEN["height"]
    assert area(page)[2] >= 0.64 * block["width"]
    keep(page, f"fabric-low-{answer.split()[0].lower()}", whole=False)


def test_each_question_is_answered_in_a_low_window_without_scrolling(page: Page) -> None:
    answered(page, "Busiest links (measured)")
    spot = within(page, {"cable": 5})
    for label, answer, legend in (
        ("Errors", "New errors", "beyond"),
        ("Capacity", "The fabric", "GB/s"),
        ("Changes", "Change history", ""),
    ):
        page.get_by_role("radio", name=label).click()
        page.wait_for_url(re.compile(f"colour={label.lower()}"))
        answered(page, answer)
        if legend:  # other colours are drawn at the same places
            expect(page.locator(f"{MAP} .legend")).to_contain_text(legend)
            assert within(page, {"cable": 5}) == pytest.approx(spot, abs=1e-3)
    page.get_by_role("radio", name="Load").click()
    for text, kind, answer in (
        (f"{MOVED_AT}:2", "link", "Utilisation by job"),
        (MOVED_AT, "switch", "Ports"),
        ("b05-p1-dgx-05-c10", "host", "Ports"),
    ):
        page.get_by_label("Find a host, a switch, a GUID or a link").fill(text)
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(f"{kind}="))
        answered(page, answer)
        if kind != "host":
            unpick(page)
    expect(page.get_by_role("heading", name="b05-p1-dgx-05-c10")).to_be_visible()


def test_a_click_on_the_name_of_a_row_picks_the_switch_and_keys_move_the_slider(page: Page) -> None:
    page.get_by_role("radio", name="Cells").click()
    page.wait_for_url(re.compile("shape=cells"))
    ready(page)
    left, top, *_ = area(page)
    page.mouse.click(left + 60, top + 36)  # the first name in the margin
    page.wait_for_url(re.compile("switch="))
    ready(page)
    page.get_by_role("tab", name="Jobs").click()
    page.wait_for_url(re.compile("show=jobs"))
    expect(page.get_by_text("below this switch")).to_be_visible()
    page.get_by_role("slider").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile("at="))
    ready(page)
    mapped(page)
