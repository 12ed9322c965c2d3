"""Every page in a browser fits, has no fault of contrast, labels or headings, and refreshes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from bench.dashboard import hasty_page
from bench.dashboard.open_pages import streamlit
from bench.support.served_dashboard import Served, serve
from dashboard.shared.bar import REFRESH_SECONDS
from dashboard.shared.caching import SHARED
from ingest.options import Options
from ingest.pipeline import ingest
from mapping.placement.search import SearchOptions
from mapping.questions.place import PlacementRequest, place
from registry.database.embedded_server import stop
from registry.model import Job, Profile
from registry.model.intake import Intake
from registry.registry import Registry
from tests.dashboard.conftest import DATA, SCANNED
from tests.dashboard.test_dashboard_smoke import Shown, shown
from tests.registry.model.test_circuit_plan import reconfiguration_record
from tests.support import paths
from tests.support.browsing import NARROW, WIDE, Visitor, keep, ready, settle

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


TWO_HOSTS: dict[str, Any] = {"hosts": ("node0001", "node0040"), "slots": (2, 2), "ranks": 3}
JOB = Job(id="77", user="eve", state="RUNNING", started_at=SCANNED, **TWO_HOSTS)
PROFILE = Profile.from_edges([0, 1], [2, 2], [8e6, 8e6], ranks=3, name="pairs", application="wrf")
TREE = DATA / "infiniband" / "fattree2-64-broken-link"
BEFORE_AND_AFTER = {
    "?cluster=tree&wall=1": ("Running jobs", "Running jobs"),
    "fabric?cluster=tree&colour=changes": ("did not change until then", "2 cables appeared"),
    "jobs?cluster=tree": ("1 to 1 of 1 job", "1 to 2 of 2 jobs"),
    "data?cluster=tree": ("test · tree", "another · tree"),
    "jobs?job=tree/77": ("has no evaluated placement and no profile yet", "Best possible"),
    "planner?cluster=tree": ("No running job has known traffic", "Worst link now"),
    "planner?tab=circuits&cluster=tree": ("Cluster tree has no circuit plan", "Circuits to move"),
    "trends": ("The registry holds no evaluated placement yet", "1 placement"),
    "trends?tab=simulations": ("holds no placement and no simulated run", "no simulated run yet. Simulate"),
}
"""Texts on each page before and after data are saved."""


@pytest.fixture(scope="module")
def home(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("home")
    try:
        with Registry.open(home=place, idle_seconds=300) as registry:
            ingest(registry, [TREE / "ibnetdiscover.txt"], Options(cluster="tree"))
            registry.save(Intake(cluster="tree", jobs=(JOB,), source="test", observed_at=datetime.now(UTC)))
            ingest(registry, [TREE / "ibnetdiscover.txt"], Options(cluster="traced"))
            registry.save(Intake(cluster="traced", jobs=(JOB,), observed_at=datetime.now(UTC)))
            registry.save(Intake(profiles=(PROFILE,)))
            registry.jobs.attach("77", registry.profiles.list()[0].id, cluster="traced")
        yield place
    finally:
        stop(place)


@pytest.fixture(scope="module")
def hasty(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Pages that refresh, and forget what viewers share, every few seconds."""
    settings = {"ALMANAC_HOME": str(home), hasty_page.VARIABLE: "6", "PYTHONPATH": str(paths.ROOT)}
    with serve(settings, tmp_path_factory.mktemp("hasty"), streamlit(hasty_page.__file__)) as running:
        yield running


def test_what_viewers_share_is_older_than_a_refresh_never() -> None:
    assert SHARED.total_seconds() < REFRESH_SECONDS
    assert SHARED.total_seconds() + REFRESH_SECONDS < 60  # new data appear within a minute


def test_new_data_or_a_restarted_database_need_no_reload(visitor: Visitor, home: Path, hasty: Served) -> None:
    pages = [visitor(WIDE) for _ in BEFORE_AND_AFTER]
    for page, (path, (text, _)) in zip(pages, BEFORE_AND_AFTER.items(), strict=True):
        page.goto(f"{hasty.url}/{path}")
        ready(page)
        expect(page.get_by_text(text).first).to_be_visible()
        page.evaluate("() => { window.same = true }")
    typed = pages[5].get_by_label("Drain a host")
    typed.press_sequentially("node00")
    stop(home)  # what opens it next starts it again
    with Registry.open(home=home, idle_seconds=300) as registry:
        now = datetime.now(UTC)
        ingest(registry, [TREE / "before.ibnetdiscover"], Options(cluster="tree", observed_at=now))
        other = replace(JOB, id="78", hosts=("node0002",), slots=(1,), ranks=1)
        registry.save(Intake(cluster="tree", jobs=(other,), source="another", observed_at=now))
        profile = registry.profiles.list()[0].id
        registry.jobs.attach("77", profile, cluster="tree")
        short = SearchOptions(steps=100)
        place(registry, PlacementRequest(profile="pairs", job="77", cluster="tree", options=short))
        registry.circuit_plans.save(reconfiguration_record(profiles=(profile,), ranks=(3,)))
    running = pages[0].get_by_test_id("stMetric").filter(has_text="Running jobs")
    expect(running.get_by_text("2", exact=True)).to_be_visible()
    for page, (_, text) in zip(pages, BEFORE_AND_AFTER.values(), strict=True):
        expect(page.get_by_text(text).first).to_be_visible()
        assert page.evaluate("() => window.same")
        expect(page.locator("[data-testid='stException']")).to_have_count(0)
    assert typed.input_value() == "node00"
    for page in pages:
        page.close()


def test_a_refresh_keeps_a_dialog_and_what_is_typed_in_it(visitor: Visitor, hasty: Served) -> None:
    page = visitor(WIDE)
    page.goto(f"{hasty.url}/jobs?job=traced/77")
    ready(page, "Jobs")
    page.get_by_role("button", name="Find better placement").click()
    seconds = page.get_by_role("dialog").get_by_role("spinbutton", name="Seconds")
    seconds.fill("6")
    shown = page.get_by_text(re.compile(r"^\d\d:\d\d:\d\d UTC")).first
    for _ in range(2):
        before = shown.inner_text()[:8]
        expect(shown).not_to_have_text(re.compile(before))
    expect(seconds).to_have_value("6")
    page.close()
