"""The pages in a real browser on a really started server; screenshots go to artefacts/."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, ViewportSize, expect, sync_playwright

import almanac.dashboard_page
from tests.dashboard.conftest import MARKUP, Filled

ARTEFACTS = Path(__file__).parents[2] / "artefacts"
START_SECONDS = 60.0
READY_MS = 60_000
SIZE = ViewportSize(width=1280, height=2400)
PROBES = ("/_stcore/health", "/_stcore/host-config")
"""Streamlit's pages look for their server below the page's own path first, which is not there."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What a page did that it should not."""

    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def on(self, page: Page, host: str) -> None:
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = shutil.which("chromium")
    if executable is None:
        reason = "no chromium on this machine: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=executable,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", *quiet],
        )
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def served(filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve({"ALMANAC_HOME": str(filled.home)}, tmp_path_factory.mktemp("served")) as url:
        yield url


@contextmanager
def serve(environment: dict[str, str], folder: Path) -> Iterator[str]:
    """The dashboard as the command starts it, on a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
    log = folder / "streamlit.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "streamlit", "run", almanac.dashboard_page.__file__),
                *(f"--server.port={port}", "--server.address=127.0.0.1", "--server.headless=true"),
                *("--server.fileWatcherType=none", "--browser.gatherUsageStats=false"),
                "--client.toolbarMode=viewer",
            ],
            env={**inherited, **environment},
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        await_answer(f"{url}/_stcore/health", process, log)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def await_answer(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)


@pytest.fixture(params=["light", "dark"])
def watched(
    request: pytest.FixtureRequest, browser: Browser, served: str
) -> Iterator[tuple[Page, Watch, str]]:
    page = browser.new_page(viewport=SIZE, color_scheme=request.param)
    page.set_default_timeout(READY_MS)
    watch = Watch()
    watch.on(page, urlsplit(served).netloc)
    yield page, watch, request.param
    page.close()
    assert not watch.complaints
    assert not watch.strangers


def ready(page: Page, charts: int) -> None:
    """All charts are drawn and the script has come to its end."""
    expect(page.locator(".stVegaLiteChart canvas, .stVegaLiteChart svg")).to_have_count(
        charts, timeout=READY_MS
    )
    settled = "[data-testid='stApp'][data-test-script-state='notRunning']"
    expect(page.locator(settled)).to_be_visible(timeout=READY_MS)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    page.wait_for_load_state("networkidle")
    expect(page.locator("[data-testid='stException'], [data-testid='stAlert']")).to_have_count(0)


def keep(page: Page, name: str) -> None:
    ARTEFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTEFACTS / f"{name}.png")


def test_the_fabric_page(watched: tuple[Page, Watch, str], served: str, filled: Filled) -> None:
    page, _, scheme = watched
    page.goto(f"{served}/?cluster=ndr&placement={filled.second}")
    ready(page, charts=1)
    keep(page, f"fabric-lines-{scheme}")
    page.get_by_role("radio", name="Tiers, one cell a cable").click()
    page.wait_for_url("**shape=tiers**")
    ready(page, charts=1)
    keep(page, f"fabric-tiers-{scheme}")


def test_the_job_page(watched: tuple[Page, Watch, str], served: str, filled: Filled) -> None:
    page, _, scheme = watched
    page.goto(f"{served}/job?placement={filled.second}")
    ready(page, charts=7)
    keep(page, f"job-{scheme}")
    with page.expect_download() as download:
        page.get_by_role("button", name="openmpi-rankfile").click()
    lines = Path(download.value.path()).read_text("utf-8").splitlines()
    assert len(lines) == 64
    assert lines[0].startswith("rank 0=")


def test_the_history_page_leads_to_a_job(watched: tuple[Page, Watch, str], served: str) -> None:
    page, _, scheme = watched
    page.goto(f"{served}/history")
    ready(page, charts=2)
    keep(page, f"history-{scheme}")
    table = page.get_by_test_id("stDataFrame")
    table.locator("canvas").first.click(position={"x": 15, "y": 55}, force=True)
    page.get_by_role("link", name="Open p").click()
    page.wait_for_url("**/job?placement=p*")
    ready(page, charts=7)


def test_a_name_with_markup_is_text_everywhere(browser: Browser, served: str) -> None:
    page = browser.new_page(viewport=SIZE)
    watch = Watch()
    watch.on(page, urlsplit(served).netloc)
    page.goto(f"{served}/job?job=tree/9")
    expect(page.get_by_text("almanac map PROFILE --job 9 --cluster tree")).to_be_visible(timeout=READY_MS)
    assert MARKUP in (page.get_by_role("combobox", name="Job").input_value() or page.inner_text("body"))
    page.goto(f"{served}/job?job={MARKUP}")
    expect(page.get_by_text("There is no job")).to_be_visible(timeout=READY_MS)
    message = page.get_by_test_id("stAlert")
    assert MARKUP in message.inner_text().replace("\N{WORD JOINER}", "")
    assert message.locator("b, strong, a, code, .katex").count() == 0
    page.close()
    assert not watch.strangers


def test_a_database_that_is_down_is_told_without_a_traceback(browser: Browser, tmp_path: Path) -> None:
    with serve({"ALMANAC_DB": "bolt://127.0.0.1:1"}, tmp_path) as url:
        page = browser.new_page(viewport=SIZE)
        page.goto(url)
        expect(page.get_by_text("The database does not answer.")).to_be_visible(timeout=READY_MS)
        expect(page.get_by_text("almanac doctor").first).to_be_visible()
        assert "Traceback" not in page.inner_text("body")
        keep(page, "database-down")
        page.close()
