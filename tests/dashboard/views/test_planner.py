"""The page Planner: changes with their errors, both sides by one rule, removed cables on the map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from almanac.demo.fill import CLUSTER, RUNNING
from bench.support.served_dashboard import Served
from dashboard.state.viewer import Access
from dashboard.tables.what_if import totals
from mapping.service.live import imagine, traffic
from mapping.traffic.device_names import link_text
from mapping.traffic.what_if import Change
from registry import units
from registry.registry import Registry
from tests.dashboard.conftest import Connect
from tests.dashboard.test_app import address, page
from tests.dashboard.test_views import seen_by
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


@pytest.fixture(scope="module")
def switch(connect: Connect) -> str:
    """A switch at the busiest link."""
    with connect() as registry:
        live = traffic(registry, CLUSTER)
        links, row = live.fabric.links, int(np.argmax(live.shared.seconds))
        ends = [int(links.source[row]), int(links.target[row])]
        return live.fabric.names[next(v for v in ends if v in live.fabric.switches)]


def test_a_removed_switch_is_shown_with_its_effect_on_each_job(connect: Connect, switch: str) -> None:
    app = page(connect, "planner")
    assert [one.label for one in app.metric] == ["Worst link now"]
    app.text_input(key="what if down").set_value(switch).run()
    assert address(app)["down"] == switch
    with connect() as registry:
        live = traffic(registry, CLUSTER)
        found = imagine(registry, live, Change(down_switches=(switch,)))
    total = totals(found)
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Worst link"] == units.short(float(found.after.seconds.max()), units.SECONDS)
    assert shown["Jobs slower"] == f"{total.slower} of {len(found.jobs)}"
    assert shown["Cut pairs"] == f"{total.cut_pairs:,}"
    assert found.rule == "repaired-tables"
    assert total.after_seconds >= total.before_seconds == float(live.shared.seconds.max())
    jobs = next(table.value for table in app.dataframe if "unreachable pairs" in table.value.columns)
    assert set(jobs["job"]) == set(RUNNING)
    app.button(key=f"given down {switch}").click().run()
    assert [one.label for one in app.metric] == ["Worst link now"]


@pytest.mark.parametrize("colour", ["more", "before", "after"])
def test_what_if_is_seen_from_each_side(connect: Connect, hottest: str, colour: str) -> None:
    app = page(connect, "planner", down=hottest, rule="tables", colour=colour)
    assert len(app.get("bidi_component")) == 1
    assert not app.error


def test_what_is_picked_on_the_map_can_be_taken_away(connect: Connect, hottest: str) -> None:
    app = page(connect, "planner", link=hottest)
    app.button(key=f"do down {hottest}").click().run()
    assert address(app)["down"] == hottest
    assert "link" not in address(app)


def test_a_drained_host_takes_its_ranks_along(connect: Connect) -> None:
    with connect() as registry:
        live = traffic(registry, CLUSTER)
    host = live.placements[0].host_of_rank[0]
    ranks = int((live.placements[0].host_of_rank == host).sum())
    app = page(connect, "planner", drain=live.fabric.names[host])
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Ranks on drained hosts"] == str(ranks)


def test_a_name_that_does_not_exist_is_an_error_at_its_field_and_not_a_change(connect: Connect) -> None:
    app = page(connect, "planner")
    app.text_input(key="what if drain").set_value("nobody").run()
    (error,) = app.error
    assert "no host" in error.value
    assert "nobody" in error.value
    assert "drain" not in address(app)
    assert app.text_input(key="what if drain").value == "nobody"
    app.text_input(key="what if drain").set_value("").run()
    assert not app.error


def test_an_impossible_change_of_the_address_is_an_error_and_the_others_count(
    connect: Connect, hottest: str
) -> None:
    app = page(connect, "planner", down=hottest, drain="nobody", add="nowhere:else")
    assert len(app.error) == 2
    assert "Cut pairs" in [one.label for one in app.metric]
    app.button(key="given drain nobody").click().run()
    assert len(app.error) == 1


def test_what_is_gone_is_not_offered_to_be_taken_away_again(connect: Connect, hottest: str) -> None:
    def offered(**address: str) -> set[str]:
        app = page(connect, "planner", link=hottest, **address)
        assert not app.error
        return {button.key or "" for button in app.button if (button.key or "").startswith("do ")}

    assert f"do down {hottest}" in offered()
    rest = offered(down=hottest)
    assert f"do down {hottest}" not in rest
    assert rest == offered() - {f"do down {hottest}"}
    assert f"do down {hottest}" not in offered(down=hottest, colour="before")


def test_a_job_that_would_lose_all_hosts_is_named_to_those_who_may_see_it(connect: Connect) -> None:
    with connect() as registry:
        live = traffic(registry, CLUSTER)
    hosts = [live.fabric.names[host] for host in np.unique(live.placements[0].host_of_rank).tolist()]
    address: dict[str, Any] = {"cluster": CLUSTER, "drain": hosts}
    (error,) = page(connect, "planner", **address).error
    assert f"job {live.shared.jobs[0].job} is left without hosts" in error.value.replace("\\", "")
    (hidden,) = seen_by(Access(only="eve"), connect, "planner", **address).error
    assert hidden.value == "This change leaves a job without hosts."


def test_the_legend_names_what_is_gone_in_the_browser(visitor: Visitor, demo: Served, hottest: str) -> None:
    opened = visitor(NARROW)
    opened.goto(f"{demo.url}/planner?cluster={CLUSTER}&down={hottest}")
    ready(opened, "Planner")
    mapped(opened)
    legend = opened.locator(f"{MAP} .legend")
    expect(legend).to_contain_text(f"{GONE} · 1")
    assert legend.locator(".swatch.dashed").count() == 1
    keep(opened, "planner-gone")
    opened.close()
