"""Helpers of the browser tests: wait for a page, check it, and keep a picture of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from tests.support import paths

ARTEFACTS = paths.ROOT / "artefacts"
READY_MS = 90_000
"""Default time limit for everything that a test waits for: a page takes long on a busy machine."""
expect.set_options(timeout=READY_MS)
NARROW, WIDE = ViewportSize(width=1280, height=1000), ViewportSize(width=1920, height=1080)
SCREEN = ViewportSize(width=1280, height=800)
"""What a laptop shows without scrolling."""
MAP = "[data-testid='fabric-map']"
AT_REST = """
root => new Promise(done => {
  let last = "", since = 0;
  const look = () => {
    const {x, y, width, height} = root.querySelector("canvas").getBoundingClientRect();
    const now = [x, y, width, height].join();
    if (now !== last) [last, since] = [now, performance.now()];
    if (performance.now() - since > 600) done(); else setTimeout(look, 50);
  };
  look();
})
"""
"""The map takes the height that the window has left, which it measures every 0.4 s."""
SETTLED = "[data-testid='stApp'][data-test-script-state='notRunning']"

Look = Literal["light", "dark"]


class Visitor(Protocol):
    """Opens a page in a window of this size."""

    def __call__(self, viewport: ViewportSize, look: Look = "light") -> Page: ...


@contextmanager
def visiting(browser: Browser) -> Iterator[Visitor]:
    """Open pages in one browser context, which caches the pages' scripts: loading them takes longest."""
    contexts: dict[tuple[int, int, Look], BrowserContext] = {}

    def opened(viewport: ViewportSize, look: Look = "light") -> Page:
        key = (viewport["width"], viewport["height"], look)
        if key not in contexts:
            contexts[key] = browser.new_context(viewport=viewport, color_scheme=look)
        page = contexts[key].new_page()
        page.set_default_timeout(READY_MS)
        return page

    yield opened
    for context in contexts.values():
        context.close()


def settle(page: Page) -> None:
    """Wait until the page's script has finished and everything is drawn."""
    expect(page.locator(SETTLED)).to_be_visible()
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    page.wait_for_load_state("networkidle")


def ready(page: Page, title: str | None = None) -> None:
    """Wait until the page is shown, and check that it has no error."""
    if title is not None:
        expect(page.get_by_role("heading", name=title, exact=True).first).to_be_visible()
    settle(page)
    failed = page.locator("[data-testid='stException'], [data-testid='stAlertContentError']")
    expect(failed).to_have_count(0)


def mapped(page: Page) -> None:
    """Wait until the fabric map is drawn and has its final size."""
    drawn = page.locator(f"{MAP}[data-state='drawn']").first
    expect(drawn).to_be_visible()
    drawn.evaluate(AT_REST)


def keep(page: Page, name: str, *, whole: bool = True) -> None:
    """Keep a picture among the artefacts, of the whole page by default."""
    ARTEFACTS.mkdir(exist_ok=True)
    size = page.viewport_size
    if whole:
        _grow(page)
    page.screenshot(path=ARTEFACTS / f"{name}.png")
    if whole and size is not None:
        page.set_viewport_size(size)


def _grow(page: Page) -> None:
    """Make the window as tall as the page, which scrolls inside it."""
    tall = page.evaluate("() => document.querySelector('[data-testid=\"stMain\"]')?.scrollHeight ?? 0")
    size = page.viewport_size
    if size is not None and tall > size["height"]:
        page.set_viewport_size({"width": size["width"], "height": min(int(tall), 6000)})
        settle(page)
