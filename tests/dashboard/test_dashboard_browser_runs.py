"""The page of simulated runs in a real browser; pictures go to artefacts/."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from bench.support.served_dashboard import Served, Watch
from tests.dashboard.views.test_simulations import runs
from tests.support.browsing import NARROW, WIDE, Look, Visitor, keep, mapped, ready

if TYPE_CHECKING:
    from playwright.sync_api import ViewportSize

__all__ = ["runs"]

LOOKS: tuple[tuple[Look, ViewportSize], ...] = (("light", NARROW), ("dark", WIDE))


@pytest.mark.parametrize(("look", "size"), LOOKS, ids=["light", "dark"])
def test_runs_are_compared_and_fit_the_window(
    visitor: Visitor, served: Served, runs: dict[str, str], look: Look, size: ViewportSize
) -> None:
    page, watch = visitor(size, look), Watch()
    watch.on(page, urlsplit(served.url).netloc)
    page.goto(f"{served.url}/trends?tab=simulations&run={runs['first']},{runs['second']}")
    ready(page, "Trends")
    mapped(page)
    assert page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth") <= 0
    keep(page, f"runs-{look}")
    page.close()
    assert not watch.complaints
    assert not watch.strangers
