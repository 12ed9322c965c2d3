"""The fabric page and the what-if page on the demo: three running jobs, two scans, two sweeps of counters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from almanac.demo.fill import CLUSTER, RUNNING
from mapping.service.live import traffic
from mapping.traffic.device_names import link_text
from registry.model import Fabric
from registry.model.intake import Intake
from registry.registry import Registry
from tests.dashboard.conftest import RESCANNED, Connect, Filled
from tests.dashboard.test_app import FABRIC, address, messages, nothing, page

__all__ = ["nothing"]
WHAT_IF = "what-if"


@pytest.fixture(scope="module")
def connect(demonstration: Path) -> Connect:
    return lambda: Registry.open(home=demonstration, idle_seconds=120)


@pytest.fixture(scope="module")
def hottest(connect: Connect) -> tuple[str, str]:
    """The hottest link and its switch, by the names that the address takes."""
    with connect() as registry:
        live = traffic(registry, CLUSTER)
        row = int(np.argmax(live.shared.seconds))
        links = live.fabric.links
        ends = [int(links.source[row]), int(links.target[row])]
        switch = next(v for v in ends if v in live.fabric.switches)
        return link_text(live.fabric, row), live.fabric.names[switch]


def maps(app: AppTest) -> int:
    return len(app.get("bidi_component"))


def captions(app: AppTest) -> str:
    return "\n".join(element.value for element in app.caption).replace("\\", "")


def test_a_fabric_without_cables_is_reported(nothing: Connect) -> None:
    alone = Fabric.from_arcs(["a"], [], [], 1.0)
    with nothing() as registry:
        registry.save(Intake(cluster="one", fabric=alone, observed_at=RESCANNED))
    assert "This fabric has no cables." in messages(page(nothing, FABRIC))


@pytest.mark.parametrize("name", [FABRIC, WHAT_IF])
def test_an_empty_registry_shows_what_to_run(nothing: Connect, name: str) -> None:
    app = page(nothing, name)
    assert "almanac demo" in [code.value for code in app.code]


def test_the_page_shows_the_fabric_and_the_running_jobs(connect: Connect) -> None:
    app = page(connect, FABRIC)
    assert "193 hosts · 40 switches" in captions(app)
    assert f"Running jobs: {len(RUNNING)}," in captions(app)
    assert maps(app) == 1
    hot = [button for button in app.button if (button.key or "").startswith("hot ")]
    assert len(hot) == 8


def test_a_fabric_on_which_nothing_runs_is_shown_by_capacity(filled: Filled) -> None:
    app = page(filled.connect, FABRIC, cluster="tree")
    assert "No running job has known traffic" in messages(app)
    assert maps(app) == 1


@pytest.mark.parametrize("colour", ["predicted", "measured", "difference", "capacity"])
@pytest.mark.parametrize("shape", ["cells", "lines"])
def test_every_look_of_the_fabric_is_drawn(connect: Connect, colour: str, shape: str) -> None:
    app = page(connect, FABRIC, colour=colour, shape=shape)
    assert maps(app) == 1
    assert not app.warning
    assert not app.info


def test_an_unknown_look_is_reported(connect: Connect) -> None:
    assert "can be" in messages(page(connect, FABRIC, shape="cube"))


def test_a_hot_link_leads_to_its_jobs_and_ranks(connect: Connect, hottest: tuple[str, str]) -> None:
    app = page(connect, FABRIC)
    next(button for button in app.button if (button.key or "").startswith("hot ")).click().run()
    assert address(app)["link"] == hottest[0]
    users = next(table.value for table in app.dataframe if "part" in table.value.columns)
    assert set(users["job"]) <= set(RUNNING)
    assert users["part"].sum() == pytest.approx(1)
    pairs = next(table.value for table in app.dataframe if "from rank" in table.value.columns)
    assert len(pairs) > 0


def test_another_job_on_a_link_can_be_chosen(connect: Connect, hottest: tuple[str, str]) -> None:
    app = page(connect, FABRIC, link=hottest[0], load="nobody's")
    assert "load" not in address(app)
    for job in app.selectbox(key="choose load").options:
        app.selectbox(key="choose load").set_value(job).run()
        assert app.selectbox(key="choose load").value == job
        assert app.get("page_link")


def test_a_switch_lists_the_jobs_below_it(connect: Connect, hottest: tuple[str, str]) -> None:
    app = page(connect, FABRIC, device=hottest[1])
    jobs = next(table.value for table in app.dataframe if "hosts here" in table.value.columns)
    assert set(jobs["job"]) <= set(RUNNING)
    assert (jobs["hosts here"] <= jobs["of its hosts"]).all()
    app.button(key="clear pick").click().run()
    assert "device" not in address(app)


@pytest.mark.parametrize("what", ["name", "guid", "link"])
def test_things_are_found_by_name_guid_and_port(
    connect: Connect, hottest: tuple[str, str], what: str
) -> None:
    with connect() as registry:
        fabric = registry.fabrics.read(CLUSTER).fabric
    vertex = fabric.names.index(hottest[1])
    text = {"name": hottest[1], "guid": f"0x{int(fabric.guid[vertex]):016x}", "link": hottest[0]}[what]
    app = page(connect, FABRIC)
    app.text_input(key="find").set_value(text).run()
    given = address(app)
    assert given.get("link") == hottest[0] if what == "link" else given.get("device") == hottest[1]


def test_a_search_without_success_offers_the_closest(connect: Connect, hottest: tuple[str, str]) -> None:
    app = page(connect, FABRIC)
    app.text_input(key="find").set_value(hottest[1][:-1]).run()
    assert "There is no device" in messages(app)
    close = [button for button in app.button if (button.key or "").startswith("closest ")]
    close[0].click().run()
    assert address(app)["device"] in {(button.key or "").removeprefix("closest ") for button in close}


@pytest.mark.parametrize("name", ["link", "device", "placement", "cluster"])
def test_an_unknown_name_in_the_address_is_reported(connect: Connect, name: str) -> None:
    assert "here is no" in messages(page(connect, FABRIC, **{name: "nowhere:99"}))


def test_a_placement_is_shown_on_its_own_fabric(filled: Filled) -> None:
    app = page(filled.connect, FABRIC, cluster="tree", placement=filled.alone)
    table = next(table.value for table in app.dataframe if "of the worst" in table.value.columns)
    assert table.iloc[0]["of the worst"] == 1
    app.button(key="running").click().run()
    assert address(app) == {"cluster": "tree"}


def test_a_placement_alone_in_the_address_determines_its_cluster(filled: Filled) -> None:
    app = page(filled.connect, FABRIC, placement=filled.alone)
    assert "Traffic of placement" in messages(app)


def test_the_fabric_as_of_a_time_before_two_cables_were_lost(filled: Filled) -> None:
    cables = [
        int(captions(page(filled.connect, FABRIC, cluster="tree", at=at)).split(" cables")[0].split()[-1])
        for at in ("2026-01-01T09:00", "2026-01-01T23:00")
    ]
    assert cables[0] == cables[1] + 2


def test_the_slider_has_a_stop_for_each_state_and_now(filled: Filled) -> None:
    app = page(filled.connect, FABRIC, cluster="tree", at="2026-01-01T09:00")
    slider = app.select_slider[0]
    assert len(slider.options) == 3
    assert slider.value == "2026-01-01T08:30:15+00:00"
    slider.set_value("now").run()
    assert "at" not in address(app)


def test_a_time_before_the_first_scan_or_an_invalid_one_is_reported(filled: Filled) -> None:
    early = page(filled.connect, FABRIC, cluster="tree", at="2020-01-01")
    assert "was not observed at or before" in messages(early)
    assert "is not a time such as" in messages(page(filled.connect, FABRIC, cluster="tree", at="soon").run())


def test_what_if_removes_a_switch_and_lists_each_job(connect: Connect, hottest: tuple[str, str]) -> None:
    app = page(connect, WHAT_IF)
    assert maps(app) == 1
    app.text_input(key="what if down").set_value(hottest[1]).run()
    assert address(app)["down"] == hottest[1]
    assert {metric.label for metric in app.metric} >= {"Worst link now", "Worst link after"}
    jobs = next(table.value for table in app.dataframe if "unreachable pairs" in table.value.columns)
    assert set(jobs["job"]) == set(RUNNING)
    app.button(key=f"given down {hottest[1]}").click().run()
    assert not app.metric


@pytest.mark.parametrize("colour", ["more", "before", "after"])
def test_what_if_is_seen_from_each_side(connect: Connect, hottest: tuple[str, str], colour: str) -> None:
    app = page(connect, WHAT_IF, down=hottest[0], rule="tables", colour=colour)
    assert maps(app) == 1
    assert not app.error


def test_what_is_picked_on_the_map_can_be_taken_away(connect: Connect, hottest: tuple[str, str]) -> None:
    app = page(connect, WHAT_IF, link=hottest[0])
    app.button(key=f"do down {hottest[0]}").click().run()
    assert address(app)["down"] == hottest[0]
    assert "link" not in address(app)


def test_an_impossible_change_is_reported(connect: Connect) -> None:
    assert "there is no" in messages(page(connect, WHAT_IF, down="nowhere:1"))
    assert "there is no" in messages(page(connect, WHAT_IF, drain="nobody"))


def test_a_drained_host_takes_its_ranks_along(connect: Connect) -> None:
    with connect() as registry:
        live = traffic(registry, CLUSTER)
    host = live.placements[0].host_of_rank[0]
    ranks = int((live.placements[0].host_of_rank == host).sum())
    app = page(connect, WHAT_IF, drain=live.fabric.names[host])
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Ranks on drained hosts"] == str(ranks)


def test_the_past_is_shown_with_the_jobs_of_then(connect: Connect) -> None:
    with connect() as registry:
        first = registry.fabrics.clusters()[0].first_observed_at
    early = page(connect, FABRIC, at=first.isoformat())
    assert "Running jobs: 0," in captions(early) or "No running job" in messages(early)
