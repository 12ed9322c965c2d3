"""The page Planner: changes with their errors, both sides by one rule, removed cables on the map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from almanac.demo.fill import CLUSTER, RUNNING
from dashboard.state.viewer import Access
from dashboard.tables.what_if import totals
from mapping.service.live import imagine, traffic
from mapping.traffic.what_if import Change
from registry import units
from tests.dashboard.conftest import Connect
from tests.support.apps import PLANNER, address, numbers, page, seen_by


def test_a_removed_switch_is_shown_with_its_effect_on_each_job(
    connect: Connect, hottest: tuple[str, str]
) -> None:
    switch = hottest[1]
    app = page(connect, PLANNER)
    assert [one.label for one in app.metric] == ["Worst link now"]
    app.text_input(key="what if down").set_value(switch).run()
    assert address(app)["down"] == switch
    with connect() as registry:
        live = traffic(registry, CLUSTER)
        found = imagine(registry, live, Change(down_switches=(switch,)))
    total = totals(found)
    shown = numbers(app)
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
def test_what_if_is_seen_from_each_side(connect: Connect, hottest: tuple[str, str], colour: str) -> None:
    app = page(connect, PLANNER, down=hottest[0], rule="tables", colour=colour)
    assert len(app.get("bidi_component")) == 1
    assert not app.error


def test_what_is_picked_on_the_map_can_be_taken_away(connect: Connect, hottest: tuple[str, str]) -> None:
    link = hottest[0]
    app = page(connect, PLANNER, link=link)
    app.button(key=f"do down {link}").click().run()
    assert address(app)["down"] == link
    assert "link" not in address(app)


def test_a_drained_host_takes_its_ranks_along(connect: Connect) -> None:
    with connect() as registry:
        live = traffic(registry, CLUSTER)
    host = live.placements[0].host_of_rank[0]
    ranks = int((live.placements[0].host_of_rank == host).sum())
    app = page(connect, PLANNER, drain=live.fabric.names[host])
    assert numbers(app)["Ranks on drained hosts"] == str(ranks)


def test_a_name_that_does_not_exist_is_an_error_at_its_field_and_not_a_change(connect: Connect) -> None:
    app = page(connect, PLANNER)
    app.text_input(key="what if drain").set_value("nobody").run()
    (error,) = app.error
    assert "no host" in error.value
    assert "nobody" in error.value
    assert "drain" not in address(app)
    assert app.text_input(key="what if drain").value == "nobody"
    app.text_input(key="what if drain").set_value("").run()
    assert not app.error


def test_an_impossible_change_of_the_address_is_an_error_and_the_others_count(
    connect: Connect, hottest: tuple[str, str]
) -> None:
    app = page(connect, PLANNER, down=hottest[0], drain="nobody", add="nowhere:else")
    assert len(app.error) == 2
    assert "Cut pairs" in [one.label for one in app.metric]
    app.button(key="given drain nobody").click().run()
    assert len(app.error) == 1


def test_what_is_gone_is_not_offered_to_be_taken_away_again(
    connect: Connect, hottest: tuple[str, str]
) -> None:
    link = hottest[0]

    def offered(**address: str) -> set[str]:
        app = page(connect, PLANNER, link=link, **address)
        assert not app.error
        return {button.key or "" for button in app.button if (button.key or "").startswith("do ")}

    assert f"do down {link}" in offered()
    rest = offered(down=link)
    assert f"do down {link}" not in rest
    assert rest == offered() - {f"do down {link}"}
    assert f"do down {link}" not in offered(down=link, colour="before")


def test_a_job_that_would_lose_all_hosts_is_named_to_those_who_may_see_it(connect: Connect) -> None:
    with connect() as registry:
        live = traffic(registry, CLUSTER)
    hosts = [live.fabric.names[host] for host in np.unique(live.placements[0].host_of_rank).tolist()]
    address: dict[str, Any] = {"cluster": CLUSTER, "drain": hosts}
    (error,) = page(connect, PLANNER, **address).error
    assert f"job {live.shared.jobs[0].job} is left without hosts" in error.value.replace("\\", "")
    (hidden,) = seen_by(Access(only="eve"), connect, PLANNER, **address).error
    assert hidden.value == "This change leaves a job without hosts."
