"""Tables of ports and of counters over time, compared with values by hand."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dashboard.figures import over_time
from dashboard.figures.style import DARK, LIGHT
from dashboard.state.viewer import OTHERS, Viewer
from dashboard.tables import ports
from mapping.service.live import Live
from registry.pages.devices import APPEARED, CHANGED_SPEED, REMOVED, RENAMED, DeviceEvent, DeviceHistory
from tests.dashboard.test_figures import spec
from tests.mapping.traffic.test_counter_history import STEPS, history
from tests.mapping.traffic.test_port_table import CAPACITY, link_of, shared
from tests.support.fat_tree import at, fat_tree


def live(starts: dict[str, datetime | None], load: Any) -> Live:
    """Running jobs with these loads and start times."""
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
    rows, table = ports.device_ports(
        fabric, leaf, share=share, seconds=seconds, excess=history(*STEPS).excess
    )
    assert rows[0] == row
    assert table["port"].tolist() == ["1", "2", "3", "4"]
    assert table.iloc[0].to_dict() == {"port": "1", "to": "node00:1", "use": 0.5, "errors": ports.BEYOND}
    assert table["to"].tolist()[2:] == ["spine0:1", "spine1:1"]
    assert table["errors"].tolist()[1:] == [ports.NOT_COUNTED] * 3
    _, timed = ports.device_ports(fabric, leaf, share=None, seconds=seconds, excess=None)
    assert timed["time"].tolist() == [3.0, 0.0, 0.0, 0.0]
    _, short = ports.device_ports(fabric, leaf, share=None, seconds=None, excess=None)
    assert list(short.columns) == ["port", "to"]


def test_the_state_of_errors_follows_their_limit() -> None:
    found = [ports.error_state(excess) for excess in (float("nan"), 0.0, 0.1, 1.0, 1.01)]
    assert found == [ports.NOT_COUNTED, ports.FINE, ports.SOME, ports.SOME, ports.BEYOND]


def test_the_growth_of_counters_is_listed_with_its_state_and_by_time() -> None:
    found = history(*STEPS)
    table = ports.growth_table(found.growth(found.ports_of_device("leaf0")))
    assert table.to_dict("records") == [
        {"counter": "symbol errors", "new": "900", "per hour": 2700.0, "state": ports.BEYOND},
        {"counter": "link downs", "new": "2", "per hour": 6.0, "state": ports.SOME},
        {"counter": "wait (ticks)", "new": "1,200", "per hour": 3600.0, "state": ""},
    ]
    table = ports.new_errors(found, found.ports_of_device("leaf0"))
    assert table[["counter", "errors"]].to_dict("records") == [
        {"counter": "link downs", "errors": 2},
        {"counter": "symbol errors", "errors": 900},
    ]
    assert set(table["time"]) == {at(20).replace(tzinfo=None)}
    assert ports.new_errors(found, found.ports_of_device("leaf1")).empty


def owners(
    starts: dict[str, datetime | None], scale: float, viewer: Viewer | None = None
) -> dict[str, list[float]]:
    """Parts of each owner of leaf0:1, which is used at 50 % for ten minutes and then at 25 %."""
    fabric = fat_tree()
    load = shared(fabric, a={("leaf0", 1): 0.2 * CAPACITY}, b={("leaf0", 1): 0.1 * CAPACITY})
    row = link_of(fabric, "leaf0", 1)
    table = ports.owners_over_time(history(*STEPS), live(starts, load), row, viewer or Viewer(), scale)
    return {str(name): part["share"].tolist() for name, part in table.groupby("owner")}


def test_the_utilisation_is_split_by_owner_and_the_rest_is_not_attributed() -> None:
    found = owners({"a": at(-60), "b": at(-60)}, 1.0)
    # estimated 0.2 and 0.1: of 0.5 the rest is 0.2; of 0.25 both get less, in proportion
    assert found["job a"] == pytest.approx([0.2, 0.25 * 2 / 3])
    assert found["job b"] == pytest.approx([0.1, 0.25 / 3])
    assert found[ports.NOT_ATTRIBUTED] == pytest.approx([0.2, 0.0])


def test_a_job_owns_nothing_before_its_start() -> None:
    found = owners({"a": at(12), "b": None}, 1.0)
    assert found["job a"] == pytest.approx([0.0, 0.25 * 2 / 3], abs=1e-6)
    assert found["job b"] == pytest.approx([0.1, 0.25 / 3])
    assert found[ports.NOT_ATTRIBUTED] == pytest.approx([0.4, 0.0], abs=1e-6)


def test_jobs_of_others_are_not_named_and_nothing_is_attributed_without_a_scale_or_jobs() -> None:
    hidden = Viewer(only="nobody")
    assert set(owners({"a": at(-60), "b": at(-60)}, 1.0, hidden)) == {OTHERS, ports.NOT_ATTRIBUTED}
    assert owners({"a": at(-60), "b": at(-60)}, float("nan")) == {
        ports.NOT_ATTRIBUTED: pytest.approx([0.5, 0.25])
    }
    alone = ports.owners_over_time(history(*STEPS), None, link_of(fat_tree(), "leaf0", 1), Viewer(), 1.0)
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
    found = history(*STEPS)
    rows = ports.owners_over_time(found, None, link_of(fat_tree(), "leaf0", 1), Viewer(), 1.0)
    errors = ports.new_errors(found, found.ports_of_device("leaf0"))
    charts = (
        over_time.utilisation(rows, "Utilisation", LIGHT),
        over_time.new_errors(errors, "New errors", DARK),
    )
    for made in map(spec, charts):
        assert made["title"]
        assert made["description"].startswith(made["title"])
