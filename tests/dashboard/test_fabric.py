"""The fabric page on the demo; tables of ports and of counters over time, compared with values by hand."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button

from almanac.demo import data as history
from almanac.demo.demo import CLUSTER, RUNNING
from dashboard.pages import fabric_device as over_time
from dashboard.pages import fabric_device as ports
from dashboard.shared.cards import DARK, LIGHT
from dashboard.shared.viewer import OTHERS, Viewer
from mapping.checks.finding import WORDS, ErrorLimits
from mapping.questions.live import Live, read_ports, traffic, with_measured_iterations
from mapping.traffic.names import find_links, link_text, short_link
from mapping.traffic.shared_load import interference
from registry.model import Fabric
from registry.model.intake import Intake
from registry.store.fabric_history import (
    APPEARED,
    CHANGED_SPEED,
    REMOVED,
    RENAMED,
    DeviceEvent,
    DeviceHistory,
)
from tests.dashboard.conftest import RESCANNED, Connect, Filled
from tests.dashboard.test_pages_charts import spec
from tests.mapping.traffic.test_ports import CAPACITY, STEPS, link_of, shared
from tests.mapping.traffic.test_ports import history as counted
from tests.support.apps import FABRIC, address, captions, messages, numbers, page, table
from tests.support.fat_tree import at, fat_tree


def maps(app: AppTest) -> int:
    return len(app.get("bidi_component"))


def test_a_fabric_without_cables_is_reported(nothing: Connect) -> None:
    alone = Fabric.from_arcs(["a"], [], [], 1.0)
    with nothing() as registry:
        registry.save(Intake(cluster="one", fabric=alone, observed_at=RESCANNED))
    assert "This fabric has no cables." in messages(page(nothing, FABRIC))


def of_buttons(app: AppTest, start: str) -> list[Button]:
    return [button for button in app.button if (button.key or "").startswith(start)]


def test_the_page_shows_the_measured_load_and_the_busiest_links(connect: Connect) -> None:
    app = page(connect, FABRIC)
    assert maps(app) == 1
    chosen = [app.segmented_control(key=f"choose {what}").value for what in ("view", "colour")]
    assert chosen == ["load", "measured"]
    with connect() as registry:
        fabric = registry.fabrics.read(CLUSTER).fabric
        rates = registry.counters.rates(CLUSTER)
    busiest = int(rates.hottest(1)[0])
    first, *others = of_buttons(app, "hot ")
    assert first.key == f"hot {busiest}"
    label = f"**{100 * rates.share[busiest]:.3g} %** {short_link(fabric, busiest)}"
    assert first.label.replace("\\", "") == label
    assert len(others) == 8
    assert f"{len(RUNNING)} running jobs, {len(RUNNING)} with known traffic" in captions(app)


def test_the_estimated_load_scales_each_job_by_its_time_per_iteration(connect: Connect) -> None:
    with connect() as registry:
        live, rates = traffic(registry, CLUSTER), registry.counters.rates(CLUSTER)
    share = interference(with_measured_iterations(live, rates).shared).utilisation
    assert not np.isnan(share).any()
    first, *_ = of_buttons(page(connect, FABRIC, colour="estimated"), "hot ")
    busiest = int(np.argmax(share))
    assert first.key == f"hot {busiest}"
    assert first.label.startswith(f"**{100 * share[busiest]:.3g}".replace(".", "\\."))
    shown = page(connect, FABRIC, colour="estimated", link=link_text(live.fabric, busiest))
    assert numbers(shown)["Estimated"] == f"{100 * share[busiest]:.3g} %"


def test_a_fabric_without_traffic_and_counters_is_shown_by_capacity(filled: Filled) -> None:
    app = page(filled.connect, FABRIC, cluster="tree")
    assert maps(app) == 1
    assert app.segmented_control(key="choose view").value == "capacity"
    facts = table(app, "fact").set_index("fact")["value"]
    assert (facts["hosts"], facts["cables"]) == ("63", "94")
    for colour, text in (("estimated", "No running job has known traffic"), ("errors", "two counter sweeps")):
        assert text in messages(page(filled.connect, FABRIC, cluster="tree", colour=colour))


@pytest.mark.parametrize("colour", ["measured", "estimated", "difference", "errors", "capacity", "predicted"])
def test_cells_are_drawn_in_every_colour(connect: Connect, colour: str) -> None:
    app = page(connect, FABRIC, colour=colour, shape="cells")
    assert (maps(app), [*app.warning, *app.info]) == (1, [])


def test_an_unknown_look_is_reported(connect: Connect) -> None:
    assert "can be" in messages(page(connect, FABRIC, shape="cube"))
    assert "has no colour" in messages(page(connect, FABRIC, colour="pink"))


def test_errors_are_those_that_the_command_counts(connect: Connect) -> None:
    app = page(connect, FABRIC, colour="errors")
    with connect() as registry:
        found = read_ports(registry, traffic(registry, CLUSTER), ErrorLimits())
        worst = found.top(1)[0]
    assert found.errors is not None
    (first, *_) = of_buttons(app, "errors ")
    label = first.label.replace("\\", "")
    for error in worst.errors:
        assert f"{error.growth:,} {WORDS[error.counter]}" in label
    beyond = int((found.errors.excess > 1).sum())
    assert f"{beyond} of {len(found.errors.grown):,} ports beyond limits" in captions(app)
    first.click().run()
    assert address(app)["link"] == worst.name


def test_a_busy_link_leads_to_its_owners_over_time_and_its_ranks(connect: Connect) -> None:
    app = page(connect, FABRIC, colour="estimated")
    first = of_buttons(app, "hot ")[0]
    row = int((first.key or "").removeprefix("hot "))
    first.click().run()
    link = address(app)["link"]
    users = table(app, "part")
    assert set(users["job"]) <= set(RUNNING)
    assert users["part"].sum() == pytest.approx(1)
    owners = table(app, "owner")
    with connect() as registry:
        fabric, rates = registry.fabrics.read(CLUSTER).fabric, registry.counters.rates(CLUSTER)
    assert find_links(fabric, link).tolist() == [row]
    last = owners[owners["time"] == owners["time"].max()]
    assert last["share"].sum() == pytest.approx(float(rates.share[row]), rel=1e-5)
    assert numbers(app)["Measured"] == f"{100 * rates.share[row]:.3g} %"
    assert len(table(page(connect, FABRIC, link=link, show="ranks"), "from rank")) > 0


def test_another_job_on_a_link_its_ends_and_its_other_direction_can_be_chosen(
    connect: Connect, hottest: tuple[str, str]
) -> None:
    app = page(connect, FABRIC, link=hottest[0], show="ranks", load="nobody's")
    assert "load" not in address(app)
    for job in app.selectbox(key="choose load").options:
        app.selectbox(key="choose load").set_value(job).run()
        assert app.selectbox(key="choose load").value == job
        assert app.get("page_link")
    app = page(connect, FABRIC, link=hottest[0])
    app.button(key="reverse").click().run()
    assert address(app)["link"] != hottest[0]
    app.button(key="reverse").click().run()
    assert address(app)["link"] == hottest[0]
    of_buttons(app, "end ")[0].click().run()
    assert "link" not in address(app)
    assert {"switch", "host"} & set(address(app))


def test_a_switch_lists_ports_that_open_links_and_jobs(connect: Connect, hottest: tuple[str, str]) -> None:
    app = page(connect, FABRIC, switch=hottest[1])
    with connect() as registry:
        fabric = registry.fabrics.read(CLUSTER).fabric
    vertex = fabric.names.index(hottest[1])
    assert len(table(app, "port", "to", "use", "errors")) == int((fabric.links.source == vertex).sum())
    jobs = table(page(connect, FABRIC, switch=hottest[1], show="jobs"), "hosts here")
    assert set(jobs["job"]) <= set(RUNNING)
    assert (jobs["hosts here"] <= jobs["of its hosts"]).all()
    chosen = app.selectbox(key="port to open")
    chosen.set_value(next(row for row in chosen.options if " → " in row)).run()
    assert address(app)["link"].startswith(f"{hottest[1]}:")
    app.button(key="clear pick").click().run()
    assert not {"link", "switch"} & set(address(app))


def test_the_moved_cable_is_in_the_errors_and_the_history_of_its_switch(connect: Connect) -> None:
    with connect() as registry:
        fabric = registry.fabrics.read(CLUSTER).fabric
    switch = next(name for name in fabric.names if history.MOVED_AT in name)
    app = page(connect, FABRIC, switch=switch, show="errors")
    growth = table(app, "counter", "new").set_index("counter")
    assert (growth.loc["symbol errors", "new"], growth.loc["receive errors", "new"]) == ("36", "16")
    assert growth.loc["receive errors", "state"] == ports.BEYOND
    grown = table(app, "errors").groupby("counter")["errors"].sum()
    assert grown.to_dict() == {"symbol errors": 36, "receive errors": 16}
    assert f"{history.MOVED_AT}" in captions(app)
    moved = page(connect, FABRIC, switch=switch, show="history")
    events = table(moved, "what changed")["what changed"].tolist()
    assert any(f"port {history.PORT}: " in event and event.endswith("added") for event in events)
    assert any(event.endswith("removed") for event in events)


def test_a_host_has_its_own_address_and_an_unknown_name_is_reported(connect: Connect) -> None:
    with connect() as registry:
        live = traffic(registry, CLUSTER)
    host = live.fabric.names[int(live.placements[0].host_of_rank[0])]
    app = page(connect, FABRIC, host=host, show="jobs")
    assert live.shared.jobs[0].job in set(table(app, "hosts here")["job"])
    old = page(connect, FABRIC, device=host)
    assert host in [element.value.replace("\\", "") for element in old.header]
    wrong = {"link": "nowhere:99", "switch": host, "host": "nowhere:99", "device": "nowhere:99"}
    for name, text in wrong.items():
        assert "here is no" in messages(page(connect, FABRIC, **{name: text}))


def test_things_are_found_by_name_guid_and_port_or_nearly(connect: Connect, hottest: tuple[str, str]) -> None:
    link, switch = hottest
    with connect() as registry:
        fabric = registry.fabrics.read(CLUSTER).fabric
    guid = f"0x{int(fabric.guid[fabric.names.index(switch)]):016x}"
    for text, expected in ((switch, {"switch": switch}), (guid, {"switch": switch}), (link, {"link": link})):
        app = page(connect, FABRIC)
        app.text_input(key="find").set_value(text).run()
        assert address(app).items() >= expected.items()
    app = page(connect, FABRIC)
    app.text_input(key="find").set_value(hottest[1][:-1]).run()
    assert "There is no device" in messages(app)
    close = of_buttons(app, "closest ")
    close[0].click().run()
    assert address(app)["device"] in {(button.key or "").removeprefix("closest ") for button in close}


def test_a_placement_is_shown_on_its_own_fabric_and_determines_its_cluster(filled: Filled) -> None:
    app = page(filled.connect, FABRIC, cluster="tree", placement=filled.alone)
    assert table(app, "of the worst").iloc[0]["of the worst"] == 1
    assert not app.select_slider
    app.button(key="running").click().run()
    assert address(app) == {"cluster": "tree"}
    app = page(filled.connect, FABRIC, placement=filled.alone)
    assert "Traffic of placement" in messages(app)


def test_the_fabric_is_shown_as_of_a_time_and_the_slider_stops_at_each_change(filled: Filled) -> None:
    for time, cables in (("2026-01-01T09:00", "96"), ("2026-01-01T23:00", "94")):
        app = page(filled.connect, FABRIC, cluster="tree", at=time)
        assert table(app, "fact").set_index("fact").loc["cables", "value"] == cables
    app = page(filled.connect, FABRIC, cluster="tree", at=RESCANNED.isoformat())
    slider = app.select_slider[0]
    assert slider.value == RESCANNED.isoformat()
    assert "01 Jan 12:30 · wiring" in slider.options
    assert slider.options[-1] == "now"
    slider.set_value("now").run()
    assert "at" not in address(app)
    early = page(filled.connect, FABRIC, cluster="tree", at="2020-01-01")
    assert "was not observed at or before" in messages(early)
    assert "is not a time such as" in messages(page(filled.connect, FABRIC, cluster="tree", at="soon").run())


CHANGES = "changes"


def test_changes_are_listed_and_drawn_also_at_their_old_address_between_any_two_states(
    filled: Filled,
) -> None:
    app = page(filled.connect, FABRIC, cluster="tree", colour=CHANGES)
    lines = list(table(app, "what changed")["what changed"])
    assert "host node0042 vanished" in lines
    assert sum("vanished" in line for line in lines) == 3
    assert "1 host vanished, 2 cables vanished" in captions(app)
    assert maps(app) == 1
    never = page(filled.connect, FABRIC, cluster="ndr", colour=CHANGES)
    assert "did not change until then" in captions(never)
    assert maps(never) == 1
    period = {"from": "2026-01-01T23:00", "to": "2026-01-01T09:00"}
    app = page(filled.connect, FABRIC, cluster="tree", tab=CHANGES, **period)
    assert "1 host appeared, 2 cables appeared" in captions(app)
    assert address(app)["at"] == "2026-01-01T09:00"
    early = page(filled.connect, FABRIC, cluster="tree", colour=CHANGES, **{"from": "2020-01-01"})
    assert "was first seen at" in messages(early)


def test_a_state_is_compared_with_the_one_before_and_the_past_has_the_jobs_of_then(connect: Connect) -> None:
    app = page(connect, FABRIC, colour=CHANGES)
    assert "1 cable appeared, 1 cable vanished, 1 switch rerouted" in captions(app)
    states = of_buttons(app, "state ")
    assert len(states) == 3
    assert states[0].disabled
    states[1].click().run()
    assert "1 cable vanished" in captions(app)
    assert "appeared" not in captions(app)
    with connect() as registry:
        first = registry.fabrics.clusters()[0].first_observed_at
    early = page(connect, FABRIC, at=first.isoformat(), colour="estimated")
    assert "No running job has known traffic" in messages(early)


def live(starts: dict[str, datetime | None], load: Any) -> Live:
    one = SimpleNamespace
    jobs = {job: one(stored=one(job=one(started_at=time))) for job, time in starts.items()}
    return cast(Live, one(shared=load, fabric=load.fabric, job=jobs.__getitem__))


def test_the_ports_of_a_device_have_neighbours_use_and_errors() -> None:
    fabric = fat_tree()
    leaf = fabric.names.index("leaf0")
    row, back = link_of(fabric, "leaf0", 1), link_of(fabric, "node00", 1)
    share = np.full(len(fabric.links), np.nan)
    seconds = np.zeros(len(fabric.links))
    share[row], share[back], seconds[back] = 0.5, 0.25, 3.0
    excess = counted(*STEPS).excess
    rows, table = ports.device_ports(fabric, leaf, share=share, seconds=seconds, excess=excess)
    assert rows[0] == row
    assert table["port"].tolist() == ["1", "2", "3", "4"]
    assert table.iloc[0].to_dict() == {"port": "1", "to": "node00:1", "use": 0.5, "errors": ports.BEYOND}
    assert table["to"].tolist()[2:] == ["spine0:1", "spine1:1"]
    assert table["errors"].tolist()[1:] == [ports.NOT_COUNTED] * 3
    _, timed = ports.device_ports(fabric, leaf, share=None, seconds=seconds, excess=None)
    assert timed["time"].tolist() == [3.0, 0.0, 0.0, 0.0]
    _, short = ports.device_ports(fabric, leaf, share=None, seconds=None, excess=None)
    assert list(short.columns) == ["port", "to"]


def test_the_growth_of_counters_is_listed_by_time_with_its_state_by_limits() -> None:
    states = [ports.error_state(excess) for excess in (float("nan"), 0.0, 0.1, 1.0, 1.01)]
    assert states == [ports.NOT_COUNTED, ports.FINE, ports.SOME, ports.SOME, ports.BEYOND]
    found = counted(*STEPS)
    table = ports.growth_table(found.growth(found.ports_of_device("leaf0")))
    assert table.to_dict("records") == [
        {"counter": "symbol errors", "new": "900", "per hour": 2700.0, "state": ports.BEYOND},
        {"counter": "link downs", "new": "2", "per hour": 6.0, "state": ports.SOME},
        {"counter": "wait (ticks)", "new": "1,200", "per hour": 3600.0, "state": ""},
    ]
    table = ports.new_errors(found, found.ports_of_device("leaf0"))
    assert dict(zip(table["counter"], table["errors"], strict=True)) == {
        "link downs": 2,
        "symbol errors": 900,
    }
    assert set(table["time"]) == {at(20).replace(tzinfo=None)}
    assert ports.new_errors(found, found.ports_of_device("leaf1")).empty


def owners(
    starts: dict[str, datetime | None], scale: float, viewer: Viewer | None = None
) -> dict[str, list[float]]:
    """Parts of each owner of leaf0:1, which is used at 50 % for ten minutes and then at 25 %."""
    fabric = fat_tree()
    load = shared(fabric, a={("leaf0", 1): 0.2 * CAPACITY}, b={("leaf0", 1): 0.1 * CAPACITY})
    row = link_of(fabric, "leaf0", 1)
    table = ports.owners_over_time(counted(*STEPS), live(starts, load), row, viewer or Viewer(), scale)
    return {str(name): part["share"].tolist() for name, part in table.groupby("owner")}


def test_the_utilisation_is_split_by_owner_since_its_start_and_the_rest_is_not_attributed() -> None:
    found = owners({"a": at(-60), "b": at(-60)}, 1.0)
    # estimated 0.2 and 0.1: of 0.5 the rest is 0.2; of 0.25 both get less, in proportion
    assert found["job a"] == pytest.approx([0.2, 0.25 * 2 / 3])
    assert found["job b"] == pytest.approx([0.1, 0.25 / 3])
    assert found[ports.NOT_ATTRIBUTED] == pytest.approx([0.2, 0.0])
    found = owners({"a": at(12), "b": None}, 1.0)
    assert found["job a"] == pytest.approx([0.0, 0.25 * 2 / 3], abs=1e-6)
    assert found["job b"] == pytest.approx([0.1, 0.25 / 3])
    assert found[ports.NOT_ATTRIBUTED] == pytest.approx([0.4, 0.0], abs=1e-6)
    hidden = Viewer(only="nobody")
    assert set(owners({"a": at(-60), "b": at(-60)}, 1.0, hidden)) == {OTHERS, ports.NOT_ATTRIBUTED}
    unscaled = owners({"a": at(-60), "b": at(-60)}, float("nan"))
    assert unscaled == {ports.NOT_ATTRIBUTED: pytest.approx([0.5, 0.25])}
    alone = ports.owners_over_time(counted(*STEPS), None, link_of(fat_tree(), "leaf0", 1), Viewer(), 1.0)
    assert set(alone["owner"]) == {ports.NOT_ATTRIBUTED}


def test_events_are_sentences() -> None:
    events = (
        DeviceEvent(at(4), RENAMED, -1, "leaf-b", -1),
        DeviceEvent(at(3), CHANGED_SPEED, 4, "spine1", 1),
        DeviceEvent(at(2), APPEARED, -1, "node01", -1),
        DeviceEvent(at(1), REMOVED, 3, "spine0", 1),
    )
    table = ports.events_table(DeviceHistory(at(0), events))
    assert table["what changed"].tolist() == [
        "renamed to leaf-b",
        "port 4: cable to spine1:1 changed speed",
        "cable to node01 added",
        "port 3: cable to spine0:1 removed",
    ]


def test_charts_over_time_are_valid_and_described() -> None:
    found = counted(*STEPS)
    rows = ports.owners_over_time(found, None, link_of(fat_tree(), "leaf0", 1), Viewer(), 1.0)
    errors = ports.new_errors(found, found.ports_of_device("leaf0"))
    charts = over_time.utilisation(rows, "Use", LIGHT), over_time.new_errors_chart(errors, "New errors", DARK)
    for made in map(spec, charts):
        assert made["title"]
        assert made["description"].startswith(made["title"])
