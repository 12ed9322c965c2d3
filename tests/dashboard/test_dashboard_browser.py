"""What only a browser shows: markup, tabs, narrow windows, tables, errors; the map, by mouse and keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from almanac.demo.data import MOVED_AT
from almanac.demo.demo import CLUSTER, JOB, RUNNING
from bench.support.served_dashboard import Served, Watch
from tests.dashboard.conftest import MARKUP
from tests.support.browsing import MAP, NARROW, SCREEN, WIDE, Visitor, keep, mapped, ready, settle

LATER = "() => new Promise(done => setTimeout(done, 200))"
"""A timer that ends after the one by which the page tells the server, 150 ms later, what is selected."""


def test_a_name_with_markup_is_text_everywhere(visitor: Visitor, served: Served) -> None:
    page = visitor(WIDE)
    watch = Watch()
    watch.on(page, urlsplit(served.url).netloc)
    page.goto(f"{served.url}/jobs?job=tree/9")
    expect(page.get_by_text("almanac map PROFILE --job 9 --cluster tree")).to_be_visible()
    links = page.locator("a[href*='e.invalid']").count()
    assert links + page.locator("[data-testid='stMain'] b", has_text="bold").count() == 0
    page.goto(f"{served.url}/jobs?job={MARKUP}")
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


def test_a_narrow_overview_cuts_no_card_and_is_searched_by_keyboard(visitor: Visitor, demo: Served) -> None:
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
    page.goto(f"{urlsplit(page.url)._replace(path='/jobs', query=f'placement={found}').geturl()}")
    page.wait_for_url("**job=**")
    assert _opened(page) == job


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
    box = canvas(page).bounding_box()
    assert box is not None
    return box["x"], box["y"], box["width"], box["height"]


def within(page: Page, item: dict[str, int]) -> tuple[float, float]:
    """Place of an item as parts of the map's width and height; the legend may take a line more or less."""
    (x, y), (left, top, width, height) = place(page, item), area(page)
    return (x - left) / width, (y - top) / height


def becomes_true(page: Page, condition: str, value: float) -> None:
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
