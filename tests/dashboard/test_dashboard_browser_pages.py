"""Every page in a real browser, on what ``almanac demo`` saves; pictures go to artefacts/.

Each page is opened once, at 1280 x 800: it fits and can be operated by keyboard, and axe-core finds no
fault of contrast, labels or headings, in light or in dark colours.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.dashboard.test_dashboard_smoke import Shown, shown
from tests.support.browsing import NARROW, WIDE, Visitor, keep, settle

__all__ = ["shown"]

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
FADED = """
() => document.getAnimations().every(one =>
  one.playState !== 'running' || one.effect.getComputedTiming().endTime === Infinity)
"""
"""What fades in has its final colour; what turns without an end does not matter."""


@pytest.mark.parametrize("look", ["light", "dark"])
def test_a_page_fits_and_has_no_fault_of_contrast_label_or_heading(shown: Shown, look: str) -> None:
    page = shown.page
    if look == "dark":
        page.set_viewport_size(WIDE)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(
            "() => getComputedStyle(document.querySelector('.stApp')).colorScheme === 'dark'"
        )
        settle(page)
        keep(page, f"{shown.name}-dark")
    assert page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth") <= 0
    page.wait_for_function(FADED)
    assert faults(page) == []


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


def test_a_fault_would_be_found(visitor: Visitor) -> None:
    page = visitor(NARROW)
    page.set_content('<h1>near</h1><h5>far</h5><input><p style="color: #999; background: #fff">pale</p>')
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
"""Number what can be operated in the page, and return it as text; radio buttons count as one."""


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
