"""Every page in a real browser, on what ``almanac demo`` saves; pictures go to artefacts/.

Each page is opened once in each look: it fits, can be operated by keyboard, and axe-core finds no fault of
contrast, labels or headings.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, ViewportSize

from almanac.demo.fill import CLUSTER, OPTICAL
from bench.support.served_dashboard import Served, Watch
from tests.support.browsing import NARROW, WIDE, Look, Visitor, keep, mapped, ready

HERE = f"cluster={CLUSTER}"
PAGES = {
    "overview": ("Overview", f"?{HERE}"),
    "wall": ("Overview", f"?{HERE}&wall=1"),
    "fabric": ("Fabric", f"fabric?{HERE}"),
    "planner": ("Planner", f"planner?{HERE}"),
    "jobs": ("Jobs", f"jobs?{HERE}"),
    "job": ("Jobs", f"job?job={CLUSTER}/4712"),
    "interference": ("Jobs", f"interference?{HERE}"),
    "trends": ("Trends", f"trends?{HERE}"),
    "simulations": ("Trends", f"trends?tab=simulations&{HERE}"),
    "circuits": ("Planner", f"planner?tab=circuits&cluster={OPTICAL}"),
    "changes": ("Changes", f"changes?{HERE}"),
    "data": ("Data", "data"),
}
"""Title and address of each page."""
LOOKS: dict[Look, ViewportSize] = {"light": NARROW, "dark": WIDE}
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
RULES = ("cat.color", "cat.name-role-value", "cat.forms", "cat.text-alternatives")
"""Categories of rules: contrast, names and labels."""
HEADINGS = ("heading-order", "empty-heading", "page-has-heading-one")
CHECK = """
async (rules) => {
  const strict = rule => rule.tags.includes('wcag2aaa');
  const wanted = axe.getRules(rules.tags).filter(rule => !strict(rule)).map(rule => rule.ruleId);
  const values = [...new Set([...wanted, ...rules.headings])];
  const found = await axe.run(document, {runOnly: {type: 'rule', values}});
  const text = node => `${node.html.slice(0, 160)} | ${node.any[0]?.message ?? ''}`;
  return found.violations.map(one => ({rule: one.id, nodes: one.nodes.map(text)}));
}
"""


class Shown(NamedTuple):
    """A page that is open."""

    page: Page
    name: str
    look: Look


@pytest.fixture(
    scope="module",
    params=[pytest.param((name, look), id=f"{name}-{look}") for name in PAGES for look in LOOKS],
)
def shown(request: pytest.FixtureRequest, visitor: Visitor, demo: Served) -> Iterator[Shown]:
    """A page that may neither complain in its console nor ask another host."""
    name, look = request.param
    title, address = PAGES[name]
    page = visitor(LOOKS[look], look)
    watch = Watch()
    watch.on(page, urlsplit(demo.url).netloc)
    page.goto(f"{demo.url}/{address}")
    ready(page, title)
    if name in ("fabric", "planner", "simulations"):
        mapped(page)
    yield Shown(page, name, look)
    page.close()
    assert not watch.complaints
    assert not watch.strangers


def test_a_page_is_shown_and_fits_the_window(shown: Shown) -> None:
    page = shown.page
    wide = page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    keep(page, f"{shown.name}-{shown.look}")


def test_a_page_has_no_fault_of_contrast_label_or_heading(shown: Shown) -> None:
    shown.page.wait_for_timeout(500)  # what fades in has its final colour
    assert faults(shown.page) == []


def test_a_page_can_be_used_without_a_mouse(shown: Shown) -> None:
    wanted, address = shown.page.evaluate(MARK), shown.page.url
    reached = _tabbed(shown.page, len(wanted))
    assert shown.page.url == address
    assert [text for number, text in enumerate(wanted) if str(number) not in reached] == []


def faults(page: Page) -> list[dict[str, Any]]:
    """Return what axe-core finds: rule, and the elements that break it."""
    page.evaluate(AXE)
    found: list[dict[str, Any]] = page.evaluate(CHECK, {"tags": list(RULES), "headings": list(HEADINGS)})
    return found


def test_a_fault_would_be_found(visitor: Visitor, demo: Served) -> None:
    page = visitor(NARROW)
    page.goto(f"{demo.url}/{PAGES['data'][1]}")
    ready(page)
    page.evaluate(
        """() => document.querySelector('[data-testid="stMain"]').insertAdjacentHTML('beforeend',
        '<h5>far</h5><input><p style="color: #999; background: #fff">pale</p>')"""
    )
    found = faults(page)
    page.close()
    assert {"heading-order", "label", "color-contrast"} <= {one["rule"] for one in found}


MARK = """
() => {
  const all = [...document.querySelectorAll(
    '[data-testid="stMain"] :is(a[href], button, input, canvas[tabindex="0"])')]
    .filter(one => one.checkVisibility({visibilityProperty: true}) && !one.disabled && one.tabIndex >= 0)
    .filter(one => one.type !== 'radio' || one.checked)
    .map(one => one.closest('[role="radiogroup"]') ?? one);
  return [...new Set(all)].map((one, number) => {
    one.dataset.wanted = number;
    return one.outerHTML.slice(0, 200);
  });
}
"""
"""Number what can be operated in the page, and tell it; radio buttons count as one."""


def _tabbed(page: Page, count: int) -> set[str]:
    """Numbers of the elements that the tabulator comes by."""
    found: set[str] = set()
    for _ in range(2 * count + 60):
        page.keyboard.press("Tab")
        reached = page.evaluate(
            "() => document.activeElement?.closest('[data-wanted]')?.dataset.wanted ?? ''"
        )
        found.add(reached)
        if len(found - {""}) == count:
            break
    return found


def test_no_card_of_the_overview_is_cut_off_in_a_narrow_window(visitor: Visitor, demo: Served) -> None:
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
