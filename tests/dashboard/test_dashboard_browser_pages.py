"""Every page in a real browser, on what ``almanac demo`` saves; pictures go to artefacts/."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page

from almanac.demo.fill import CLUSTER, OPTICAL
from bench.support.served_dashboard import Served, Watch
from tests.support.browsing import NARROW, WIDE, Visitor, keep, mapped, ready

HERE = f"cluster={CLUSTER}"
PAGES = {
    "overview": ("Overview", ""),
    "fabric": ("Fabric", f"fabric?{HERE}"),
    "what-if": ("What if", f"what-if?{HERE}"),
    "jobs": ("Jobs", f"jobs?{HERE}"),
    "job": ("Job", f"job?job={CLUSTER}/4712"),
    "interference": ("Interference", f"interference?{HERE}"),
    "history": ("History", f"history?{HERE}"),
    "runs": ("Simulated runs", f"runs?{HERE}"),
    "circuits": ("Circuits", f"circuits?cluster={OPTICAL}"),
    "changes": ("Changes", f"changes?{HERE}"),
    "ingest": ("Ingest", "ingest"),
}
"""Title and address of each page."""
LOOKS = {"light": NARROW, "dark": WIDE}


@pytest.fixture(params=LOOKS)
def look(request: pytest.FixtureRequest, visitor: Visitor, demo: Served) -> Iterator[tuple[Page, str]]:
    """A page that may neither complain in its console nor ask another host."""
    page = visitor(LOOKS[request.param], request.param)
    watch = Watch()
    watch.on(page, urlsplit(demo.url).netloc)
    yield page, request.param
    page.close()
    assert not watch.complaints
    assert not watch.strangers


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_shown_and_fits_the_window(look: tuple[Page, str], demo: Served, name: str) -> None:
    page, scheme = look
    title, address = PAGES[name]
    page.goto(f"{demo.url}/{address}")
    ready(page, title)
    if name in ("fabric", "runs"):
        mapped(page)
    wide = page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    keep(page, f"{name}-{scheme}")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_used_without_a_mouse(visitor: Visitor, demo: Served, name: str) -> None:
    page = visitor(NARROW)
    title, address = PAGES[name]
    page.goto(f"{demo.url}/{address}")
    ready(page, title)
    wanted = page.evaluate(MARK)
    reached = _tabbed(page, len(wanted))
    page.close()
    assert [text for number, text in enumerate(wanted) if str(number) not in reached] == []


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
