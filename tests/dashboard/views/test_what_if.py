"""Cables that a change takes away: still at their place on the map, dashed and named, and offered no more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from almanac.demo.fill import CLUSTER
from bench.support.served_dashboard import Served
from mapping.service.live import traffic
from mapping.traffic.device_names import link_text
from registry.registry import Registry
from tests.dashboard.conftest import Connect
from tests.dashboard.test_app import page
from tests.support.browsing import MAP, NARROW, Visitor, keep, mapped, ready

GONE = "removed"


# --- on the page ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def connect(demonstration: Path) -> Connect:
    return lambda: Registry.open(home=demonstration, idle_seconds=120)


@pytest.fixture(scope="module")
def hottest(connect: Connect) -> str:
    with connect() as registry:
        live = traffic(registry, CLUSTER)
        return link_text(live.fabric, int(np.argmax(live.shared.seconds)))


def test_what_is_gone_is_not_offered_to_be_taken_away_again(connect: Connect, hottest: str) -> None:
    def offered(**address: str) -> set[str]:
        app = page(connect, "what-if", link=hottest, **address)
        assert not app.error
        return {button.key or "" for button in app.button if (button.key or "").startswith("do ")}

    assert f"do down {hottest}" in offered()
    rest = offered(down=hottest)
    assert f"do down {hottest}" not in rest
    assert rest == offered() - {f"do down {hottest}"}
    assert f"do down {hottest}" not in offered(down=hottest, colour="before")


def test_the_legend_names_what_is_gone_in_the_browser(visitor: Visitor, demo: Served, hottest: str) -> None:
    opened = visitor(NARROW)
    opened.goto(f"{demo.url}/what-if?cluster={CLUSTER}&down={hottest}")
    ready(opened, "What if")
    mapped(opened)
    legend = opened.locator(f"{MAP} .legend")
    expect(legend).to_contain_text(f"{GONE} · 1")
    assert legend.locator(".swatch.dashed").count() == 1
    keep(opened, "what-if-gone")
    opened.close()
