"""One visit of a page in one state: open it in a browser, wait until it is drawn, count what it received."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, Response, ViewportSize, WebSocket

from bench.support.served_dashboard import Served, Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A page in one state: its path and the parameters of its address."""

    name: str
    path: str
    address: Mapping[str, str] = field(default_factory=dict)
    draws_map: bool = False

    def url(self, base: str) -> str:
        """Return the whole address."""
        return f"{base}/{self.path}" + (f"?{urlencode(self.address)}" if self.address else "")


SIZE = ViewportSize(width=1280, height=900)
PATIENCE_MS = 120_000
MAP = "[data-testid='fabric-map']"
SETTLED = "[data-testid='stApp'][data-test-script-state='notRunning']"


@dataclass(slots=True)
class Traffic:
    """Bytes that a page received, without the dashboard's own program."""

    received: int = 0

    def on(self, page: Page) -> None:
        """Count what this page receives."""

        def frame(data: str | bytes) -> None:
            self.received += len(data)

        def socket(opened: WebSocket) -> None:
            opened.on("framereceived", frame)

        def response(answer: Response) -> None:
            path = urlsplit(answer.url).path
            if "/static/" not in path and "/components/" not in path:
                self.received += int(answer.headers.get("content-length", 0))

        page.on("websocket", socket)
        page.on("response", response)


def settle(page: Page, *, draws_map: bool = False) -> None:
    """Wait until the page's script has finished and its fabric map, if any, is drawn."""
    page.wait_for_selector(SETTLED, timeout=PATIENCE_MS)
    page.wait_for_function(
        "() => !document.querySelector('[data-testid=\"stSkeleton\"]')", timeout=PATIENCE_MS
    )
    if draws_map:
        page.wait_for_selector(f"{MAP}[data-state='drawn']", timeout=PATIENCE_MS)


def opened(browser: Browser, served: Served, view: View, watch: Watch) -> tuple[float, int]:
    """Open a page as a new user does, whose browser keeps nothing; return the seconds and the bytes."""
    context = browser.new_context(viewport=SIZE)
    try:
        return _visit(context, served, view, watch)
    finally:
        context.close()


def returned(browser: Browser, served: Served, view: View, watch: Watch, times: int) -> list[float]:
    """Open a page in a browser that had it before, and return the seconds of each further visit."""
    context = browser.new_context(viewport=SIZE)
    try:
        return [_visit(context, served, view, watch)[0] for _ in range(times + 1)][1:]
    finally:
        context.close()


def _visit(context: BrowserContext, served: Served, view: View, watch: Watch) -> tuple[float, int]:
    page = context.new_page()
    try:
        traffic = Traffic()
        traffic.on(page)
        watch.on(page, urlsplit(served.url).netloc)
        start = time.perf_counter()
        page.goto(view.url(served.url))
        settle(page, draws_map=view.draws_map)
        return time.perf_counter() - start, traffic.received
    finally:
        page.close()
