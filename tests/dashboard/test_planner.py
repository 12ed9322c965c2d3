"""The page Planner: changes with their errors; links that are gone stay on the map, dashed and named."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from almanac.demo.demo import CLUSTER, RUNNING
from dashboard.map.layouts import draw_fabric, redrawn
from dashboard.map.picture import Picture, Points
from dashboard.shared import link_map as colouring
from dashboard.shared.fabric import ChangedFabric, changed_fabric, effects, seconds_more, totals
from dashboard.shared.link_map import link_map
from dashboard.shared.names import bundles
from dashboard.shared.viewer import Access, Viewer
from mapping.questions.live import imagine, traffic
from mapping.traffic.job_loads import JobTraffic
from mapping.traffic.names import link_text
from mapping.traffic.what_if import Change, WhatIf, what_if
from registry import units
from registry.model import Fabric
from tests.dashboard.conftest import Connect
from tests.support.apps import PLANNER, address, numbers, page, seen_by
from tests.support.traffic_jobs import job_between, running_jobs, two_leaves

Jobs = tuple[Fabric, tuple[JobTraffic, ...]]

GONE = "removed"


def ends(fabric: Fabric, row: int) -> tuple[int, ...]:
    links = fabric.links
    names = ("source", "target", "source_port", "target_port")
    return tuple(int(getattr(links, name)[row]) for name in names)


def rows_of(fabric: Fabric) -> Counter[tuple[int, ...]]:
    return Counter(ends(fabric, row) for row in range(len(fabric.links)))


def parallel(change: Change, uplinks: int = 2) -> tuple[WhatIf, ChangedFabric]:
    fabric = two_leaves(uplinks)
    found = what_if(fabric, (job_between(fabric, "1", [("a0", "b0", 8.0)]),), change)
    return found, changed_fabric(found)


def picture(found: WhatIf, drawn: ChangedFabric, *, lines: bool) -> Picture:
    drawing = redrawn(draw_fabric(found.before.fabric), drawn.fabric)
    colours = colouring.load("title", "legend", found.after.seconds)
    gone = colouring.with_gone(colours, drawn.values(colours.values), GONE)
    return link_map(drawn.fabric, drawing, gone, lines=lines)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(running_jobs(), st.data())
def test_every_link_is_there_once_and_what_is_gone_has_no_value(case: Jobs, data: st.DataObject) -> None:
    fabric, jobs = case
    row = data.draw(st.integers(0, len(fabric.links) - 1))
    found = what_if(fabric, jobs, Change(down_links=(link_text(fabric, row),)))
    drawn = changed_fabric(found)
    lost = Counter(ends(drawn.fabric, k) for k in np.flatnonzero(drawn.gone).tolist())
    assert ends(fabric, row) in lost
    assert rows_of(drawn.fabric) == rows_of(found.after.fabric) + lost == rows_of(fabric)
    values = drawn.values(found.after.seconds)
    assert np.array_equal(np.isnan(values), drawn.gone)
    for k in np.flatnonzero(~drawn.gone).tolist():
        before = int(found.row_before[drawn.row_after[k]])
        assert ends(drawn.fabric, k) == ends(fabric, before)
        assert values[k] == found.after.seconds[drawn.row_after[k]]


@pytest.mark.parametrize("lines", [True, False])
def test_a_cable_that_is_gone_is_dashed_named_and_counted(lines: bool) -> None:
    found, drawn = parallel(Change(down_links=("A:10",)))
    shown = picture(found, drawn, lines=lines)
    (step,) = [step for step in shown.steps if step.dashed]
    assert step.label == f"{GONE} · 1"
    (cable,) = np.flatnonzero(shown.step == shown.steps.index(step)).tolist()
    assert np.isnan(shown.there[cable])
    assert np.isnan(shown.back[cable])
    assert drawn.gone[shown.rows[cable]]
    assert shown.worst != cable


def test_what_is_gone_is_drawn_apart_from_what_is_left_and_from_what_is_added() -> None:
    found, drawn = parallel(Change(down_links=("A:10",)), uplinks=3)
    shown = picture(found, drawn, lines=True)
    assert isinstance(shown.shape, Points)
    between = [
        (bool(drawn.gone[shown.rows[k]]), int(shown.shape.cables[k]))
        for k in range(len(shown.a))
        if {shown.names[shown.a[k]], shown.names[shown.b[k]]} == {"A", "B"}
    ]
    assert between == [(True, 1), (False, 2)]
    found, drawn = parallel(Change(down_switches=("B",)))
    shown = picture(found, drawn, lines=False)
    assert [step.label for step in shown.steps if step.dashed] == [f"{GONE} · 4"]
    assert len(shown.a) == len(picture(*parallel(Change()), lines=False).a)
    found, drawn = parallel(Change(added=("A:B",)))
    assert not drawn.gone.any()
    assert rows_of(drawn.fabric) == rows_of(found.after.fabric)
    assert not any(step.dashed for step in picture(found, drawn, lines=True).steps)


def test_cells_stay_where_they_were_when_cables_go_and_lines_if_none_goes() -> None:
    fabric = two_leaves(4)
    drawing = draw_fabric(fabric)
    found, drawn = parallel(Change(down_links=("A:11",)), uplinks=4)
    assert redrawn(drawing, drawn.fabric).cells.panels == drawing.cells.panels
    before = colouring.load("title", "legend", found.before.seconds)
    same = link_map(fabric, drawing, before, lines=False)
    assert picture(found, drawn, lines=False).drawing == same.drawing
    pairs = drawing.cables
    values = np.arange(1.0, len(fabric.links) + 1)
    one, other = bundles(fabric, pairs, values), bundles(fabric, pairs, values, np.zeros(len(pairs), bool))
    assert np.array_equal(one.cable, other.cable)
    assert np.array_equal(one.cables, other.cables)


def test_added_seconds_are_those_of_remaining_links_and_totals_compare_both_sides() -> None:
    found, drawn = parallel(Change(down_links=("A:10",)))
    more = drawn.values(seconds_more(found))
    left = [row for row in range(len(more)) if ends(drawn.fabric, row) == (4, 5, 11, 11)]
    assert more[left].tolist() == [4.0]  # eight bytes over one cable in place of two, a byte a second each
    fabric = two_leaves()
    jobs = tuple(job_between(fabric, job, [(f"a{job}", f"b{job}", 6.0)]) for job in "01")
    total = totals(what_if(fabric, jobs, Change(down_links=("A:10",))))
    # two cables of 1 byte/s carried 12 bytes, one is left
    assert (total.before_seconds, total.after_seconds, total.change) == (6.0, 12.0, "+100.0 %, ")
    assert (total.worse, total.jobs, total.slower, total.largest) == (True, 2, 2, 2.0)
    assert (total.cut_pairs, total.cut_jobs, total.lost_ranks) == (0, 0, 0)
    cut = totals(what_if(fabric, jobs, Change(down_switches=("B",), drained=("a0",))))
    assert (cut.after_seconds, cut.worse, cut.slower) == (0.0, False, 0)
    assert (cut.cut_pairs, cut.cut_jobs, cut.lost_ranks) == (1, 1, 1)
    table = effects(what_if(fabric, jobs, Change(down_links=("A:10",))), Viewer())
    assert table[["before", "after", "times"]].to_numpy().tolist() == [[6.0, 12.0, 2.0]] * 2


def test_a_removed_switch_is_shown_with_effects_on_jobs(connect: Connect, hottest: tuple[str, str]) -> None:
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


def test_what_is_picked_can_be_taken_away_and_what_is_gone_not_again(
    connect: Connect, hottest: tuple[str, str]
) -> None:
    link = hottest[0]
    app = page(connect, PLANNER, link=link)
    app.button(key=f"do down {link}").click().run()
    assert address(app)["down"] == link
    assert "link" not in address(app)
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


def test_an_impossible_change_is_an_error_others_count(connect: Connect, hottest: tuple[str, str]) -> None:
    app = page(connect, PLANNER, down=hottest[0], drain="nobody", add="nowhere:else")
    assert len(app.error) == 2
    assert "Cut pairs" in [one.label for one in app.metric]
    app.button(key="given drain nobody").click().run()
    assert len(app.error) == 1


def test_a_job_that_would_lose_all_hosts_is_named_to_those_who_may_see_it(connect: Connect) -> None:
    with connect() as registry:
        live = traffic(registry, CLUSTER)
    hosts = [live.fabric.names[host] for host in np.unique(live.placements[0].host_of_rank).tolist()]
    address: dict[str, Any] = {"cluster": CLUSTER, "drain": hosts}
    (error,) = page(connect, PLANNER, **address).error
    assert f"job {live.shared.jobs[0].job} is left without hosts" in error.value.replace("\\", "")
    (hidden,) = seen_by(Access(only="eve"), connect, PLANNER, **address).error
    assert hidden.value == "This change leaves a job without hosts."
