"""What a page costs that stays open: its refreshes, further viewers, and memory after an hour."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, CDPSession, Page

from almanac.commands.serve import server_command
from bench.dashboard import hasty_page
from bench.dashboard.statements import CountingDatabase, Session, statements_of
from bench.dashboard.visits import View
from bench.support.paths import ROOT
from bench.support.served_dashboard import Served, serve
from dashboard.shared.caching import SHARED
from registry.database.driver import Database

INTERVAL = 2
"""Seconds between two refreshes here, instead of `dashboard.shared.bar.REFRESH_SECONDS`."""
REFRESHES = 10
HOUR = 120
"""Refreshes of a page in an hour."""
VIEWERS = 10
PATIENCE_SECONDS = 1200.0
Settle = Callable[[Page], None]


class Refreshing:
    """An open page that counts its refreshes and what it receives."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = self.received = 0
        page.on("websocket", lambda socket: self._listen(socket))

    def _listen(self, socket: Any) -> None:
        def sent(_: object) -> None:
            self.count += 1

        def received(data: str | bytes) -> None:
            self.received += len(data)

        socket.on("framesent", sent)
        socket.on("framereceived", received)

    def wait(self, count: int) -> None:
        """Wait until the page has been refreshed so many times more.

        Raises:
            TimeoutError
        """
        end, wanted = time.monotonic() + PATIENCE_SECONDS, self.count + count
        while self.count < wanted:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.page.url} does not refresh")
            self.page.wait_for_timeout(100)


def serve_hastily(settings: dict[str, str], folder: Path) -> AbstractContextManager[Served]:
    """Serve pages that refresh every `INTERVAL` seconds."""
    command = streamlit(hasty_page.__file__)
    return serve({**settings, hasty_page.VARIABLE: str(INTERVAL), "PYTHONPATH": str(ROOT)}, folder, command)


def streamlit(page: str) -> list[str]:
    """Return the command that serves a file as the dashboard is served; the port follows it."""
    options = [word for word in server_command(0) if word.startswith("--") and "port" not in word]
    return [sys.executable, "-m", "streamlit", "run", page, *options, "--server.port"]


def reads(database: Database, view: View) -> dict[str, int]:
    """Return the statements of a page: of one viewer, of ten, and of a refresh."""
    session = Session(CountingDatabase(database), view.path, view.address)
    session.run()
    time.sleep(SHARED.total_seconds() + 1)
    return {
        "refresh_statements": len(session.run()),
        "statements": statements_of(database, view.path, view.address),
        "statements_of_ten_viewers": statements_of(database, view.path, view.address, VIEWERS),
    }


def refreshed(browser: Browser, url: str, pid: int, settle: Settle) -> dict[str, float]:
    """Return what one refresh of a page costs: seconds of the server's processor, and bytes sent."""
    page = browser.new_page()
    try:
        watched = Refreshing(page)
        page.goto(url)
        settle(page)
        watched.wait(1)
        start, received, before = watched.count, watched.received, processor_seconds(pid)
        watched.wait(REFRESHES)
        count = watched.count - start
        return {
            "refresh_server_cpu_seconds": round((processor_seconds(pid) - before) / count, 3),
            "refresh_bytes": round((watched.received - received) / count),
        }
    finally:
        page.close()


def hour(browser: Browser, urls: Sequence[str], pid: int, settle: Settle) -> dict[str, Any]:
    """Return the memory of the server and of pages that are open together, while they refresh for an hour."""
    pages: list[tuple[Refreshing, CDPSession]] = []
    for url in urls:
        page = browser.new_page()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        pages.append((Refreshing(page), session))
        page.goto(url)
        settle(page)
    first = pages[0][0]
    first.wait(5)
    start = first.count
    found = [_memory(pid, pages)]
    while first.count < start + HOUR:
        first.wait(HOUR // 2)
        found.append(_memory(pid, pages))
    for watched, _ in pages:
        watched.page.close()
    return {"refreshes": HOUR, "at_start_middle_and_end": found}


def processor_seconds(pid: int) -> float:
    """Return the seconds that a process has used of the processor."""
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


def _memory(pid: int, pages: Sequence[tuple[Refreshing, CDPSession]]) -> dict[str, Any]:
    """Return megabytes of the server and of the scripts of each page, and how many nodes these have."""
    found: dict[str, Any] = {
        "server_mb": round(psutil.Process(pid).memory_info().rss / 1e6, 1),
        "pages_mb": [],
        "pages_nodes": [],
    }
    for _, session in pages:
        session.send("HeapProfiler.collectGarbage")
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        found["pages_mb"].append(round(metrics["JSHeapUsedSize"] / 1e6, 1))
        found["pages_nodes"].append(int(metrics["Nodes"]))
    return found
