"""Serve the dashboard as its command does, on a free port, and start a browser that draws in software."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from bench.faults.commands import ALMANAC

START_SECONDS = 300.0
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
"""Of Chromium: no graphics processor, and no calls of its own to other hosts."""
PROBES = ("/_stcore/health", "/_stcore/host-config")
"""Streamlit's pages look for their server below the page's own path first, which is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running dashboard: its address and process."""

    url: str
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Recorder of a page's faults: errors in its console, requests to other hosts."""

    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def on(self, page: Page, host: str) -> None:
        """Watch a page that may send requests to this host alone."""

        def console(message: ConsoleMessage) -> None:
            probe = urlsplit(message.location["url"]).path.endswith(PROBES)
            if message.type == "error" and not probe:
                self.complaints.append(f"{message.text} {message.location}")

        def request(asked: Request) -> None:
            url = urlsplit(asked.url)
            if url.scheme not in ("data", "blob") and url.netloc != host:
                self.strangers.append(asked.url)

        page.on("console", console)
        page.on("request", request)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))


@contextmanager
def serve(
    environment: dict[str, str], folder: Path, command: Sequence[str] | None = None
) -> Iterator[Served]:
    """Serve the pages with these settings; the server's output goes to a file in the folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
    log = folder / "streamlit.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*(command or (*ALMANAC, "dashboard", "--no-browser", "--port")), str(port)],
            env={**inherited, **environment},
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _await_answer(f"{url}/_stcore/health", process, log)
        yield Served(url=url, pid=process.pid)
    finally:
        process.terminate()
        process.wait(timeout=30)


@contextmanager
def chromium(executable: str | None = None) -> Iterator[Browser]:
    """Start the system's Chromium.

    Raises:
        FileNotFoundError: There is none.
    """
    found = executable or shutil.which("chromium")
    if found is None:
        raise FileNotFoundError("no chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield launched
        launched.close()


def _await_answer(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the dashboard does not start: {log.read_text()}") from None
            time.sleep(0.2)
