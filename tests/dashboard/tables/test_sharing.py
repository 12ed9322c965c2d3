"""Which job shares which link with whom, as tables and as a picture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dashboard.figures.sharing import ALL_JOBS, sharing_figure
from dashboard.figures.style import DARK, LIGHT
from dashboard.state.viewer import OTHERS, Viewer
from dashboard.tables.sharing import REST, Heat, busiest, heat, pair_text, sharers, sharing_table
from mapping.traffic.interference import interference
from mapping.traffic.shared_load import JobLoad, SharedLoad
from registry.model import Fabric
from registry.model.loaded_links import LoadedLinks
from tests.support.infiniband_data import infiniband

NASTY = "<img src=x onerror=alert(1)> datum.x'\"\\ {{y}}"
TIMES = {"a": 10.0, "b": 5.0, "c": 10.0, "d": 1.0}


def load(fabric: Fabric, job: str, rows: list[int], size: list[float], user: str = "ann") -> JobLoad:
    everywhere = np.zeros(len(fabric.links))
    everywhere[rows] = np.asarray(size) * fabric.links.capacity[rows]
    return JobLoad(job=job, user=user, application="cg", loads=LoadedLinks.of(everywhere))


@pytest.fixture(scope="module")
def untimed() -> SharedLoad:
    """Seconds by link: a loads 0 (3) and 1 (1), b loads 0 (1) and 2 (2), c loads 3 (5), d nothing."""
    fabric = infiniband("ndr-dgx-minhop")
    jobs = [
        load(fabric, "a", [0, 1], [3.0, 1.0]),
        load(fabric, "b", [0, 2], [1.0, 2.0], "bob"),
        load(fabric, "c", [3], [5.0]),
        load(fabric, "d", [], []),
    ]
    return SharedLoad.of(fabric, jobs)


@pytest.fixture(scope="module")
def shared(untimed: SharedLoad) -> SharedLoad:
    """The same with times of iterations: a uses 0.3 and b 0.2 of link 0; link 2 is used to 0.4, 3 to 0.5."""
    jobs = (replace(one, iteration_seconds=TIMES[one.job], iteration_from="stated") for one in untimed.jobs)
    return replace(untimed, jobs=tuple(jobs))


def all_links(shared: SharedLoad, viewer: Viewer | None = None, **more: int) -> Heat:
    found = interference(shared)
    return heat(shared, found, busiest(shared, found, 4, by_jobs=1), viewer or Viewer(), **more)


def test_what_sharing_costs_each_job(shared: SharedLoad) -> None:
    """Job a waits 3 / 0.8 s for link 0 instead of 3 s; job b waits 2 s for link 2, longer than for link 0."""
    table = sharing_table(shared, interference(shared), Viewer()).set_index("job")
    assert list(table.index) == ["a", "b", "c", "d"]
    assert table["slowdown"].to_dict() == pytest.approx({"a": 1 + 0.75 / 10, "b": 1.0, "c": 1.0, "d": 1.0})
    assert table["share of worst link"].to_dict() == pytest.approx({"a": 0.6, "b": 1.0, "c": 1.0, "d": 0.0})
    assert table["shared with"].to_dict() == {"a": "b", "b": "", "c": "", "d": ""}
    assert table["time per iteration"].to_dict()["a"] == "10 s (stated)"


def test_without_times_there_are_shares_of_the_traffic_and_no_slowdowns(untimed: SharedLoad) -> None:
    table = sharing_table(untimed, interference(untimed), Viewer()).set_index("job")
    assert table["slowdown"].isna().all()
    assert table["share of worst link"].to_dict() == pytest.approx({"a": 0.75, "b": 0.25, "c": 1.0, "d": 0.0})
    assert set(table["time per iteration"]) == {"unknown"}
    found = all_links(untimed)
    assert not found.of_capacity
    assert found.links["share"].tolist() == pytest.approx([1.0] * 4)
    assert found.cells[found.cells["place"] == 2].set_index("row")["share"].to_dict() == pytest.approx(
        {"a · cg": 0.75, "b · cg": 0.25}
    )


def test_the_heat_map_holds_the_share_of_each_job_on_the_busiest_links(
    shared: SharedLoad, untimed: SharedLoad
) -> None:
    """By bytes links 3 (5 s), 0 (4 s) and 2 (2 s); by utilisation links 0 and 3 (0.5), then link 2."""
    assert busiest(shared, interference(shared), 3, by_jobs=1).tolist() == [0, 3, 2]
    assert busiest(untimed, interference(untimed), 3, by_jobs=1).tolist() == [3, 0, 2]
    assert busiest(shared, interference(shared), 3).tolist() == [0]
    found = all_links(shared)
    assert found.of_capacity
    assert found.links["share"].tolist() == pytest.approx([0.5, 0.5, 0.4, 0.1])
    assert found.links["jobs"].tolist() == [2, 1, 1, 1]
    assert found.cells.groupby("place")["share"].sum().tolist() == pytest.approx(
        found.links["share"].tolist()
    )
    assert found.rows == ("b · cg", "c · cg", "a · cg")
    few = all_links(shared, most=1)
    assert few.rows == ("b · cg", REST)  # jobs with little traffic share a row
    rest = few.cells[few.cells["row"] == REST]
    assert rest.set_index("place")["share"].to_dict() == pytest.approx({1: 0.3, 2: 0.5, 4: 0.1})


def test_jobs_that_the_viewer_may_not_see_have_no_name_and_users_pseudonyms(shared: SharedLoad) -> None:
    viewer = Viewer(only="ann")
    found = interference(shared)
    assert all_links(shared, viewer).rows == ("c · cg", "a · cg", OTHERS)
    table = sharing_table(shared, found, viewer)
    assert table["job"].tolist() == ["a", "c", "d"]
    assert table["shared with"].tolist() == [OTHERS, "", ""]
    text = pair_text(shared, 0, viewer)
    assert "job b" not in text
    assert OTHERS in text
    viewer = Viewer(key=b"k")
    assert set(sharing_table(shared, found, viewer)["user"]) == {viewer.name("ann"), viewer.name("bob")}
    text = pair_text(shared, 0, viewer)
    assert "ann" not in text
    assert viewer.name("ann") in text
    assert pair_text(shared, 0, Viewer()).endswith(": job a (cg, ann) and job b (cg, bob).")


def test_the_jobs_that_share_links_with_each_job(shared: SharedLoad) -> None:
    assert sharers(shared, Viewer()) == {"a": ["b"], "b": ["a"], "c": [], "d": []}
    assert sharers(shared, Viewer(only="ann"))["a"] == [OTHERS]
    fabric = shared.fabric
    links = {"a": [0, 1, 2, 3], "b": [0], "c": [0, 1], "d": [1, 2, 3], "e": [3]}
    jobs = [load(fabric, job, rows, [1.0] * len(rows)) for job, rows in links.items()]
    most = ["d", "c", "b", "1 more"]  # by common links
    assert sharers(SharedLoad.of(fabric, jobs), Viewer())["a"] == most


def spec(shared: SharedLoad, theme: str) -> dict[str, Any]:
    made: dict[str, Any] = sharing_figure(all_links(shared), theme).to_dict()
    return made


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_heat_map_is_drawn_with_a_description(
    shared: SharedLoad, untimed: SharedLoad, theme: str
) -> None:
    made, other = spec(shared, theme), spec(untimed, theme)
    assert made["description"].startswith("Share of the link's capacity: jobs by links, 4 rows")
    rows, others = (
        one["vconcat"][0]["layer"][0]["encoding"]["y"]["scale"]["domain"] for one in (made, other)
    )
    assert rows == [ALL_JOBS, "b · cg", "c · cg", "a · cg"]
    assert others[0] == "a · cg"


def test_text_of_jobs_is_data_of_the_chart_never_an_expression() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    made = spec(SharedLoad.of(fabric, [load(fabric, NASTY, [0], [1.0])]), LIGHT)
    (rows,) = made.pop("datasets").values()
    assert any(row["row"].startswith(NASTY) for row in rows)
    assert not any(part.get("transform") for part in made["vconcat"][0]["layer"])
