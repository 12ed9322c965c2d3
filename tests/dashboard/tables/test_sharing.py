"""Which job shares which link with whom, as tables and as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashboard.figures.sharing import sharing_figure
from dashboard.figures.style import DARK, LIGHT
from dashboard.state.viewer import OTHERS, Viewer
from dashboard.tables.sharing import REST, heat, pair_text, slowdowns, worst_links
from mapping.traffic.shared_load import JobLoad, SharedLoad
from registry.model import Fabric
from registry.model.loaded_links import LoadedLinks
from tests.support.infiniband_data import infiniband

NASTY = "<img src=x onerror=alert(1)> datum.x'\"\\ {{y}}"


def load(fabric: Fabric, job: str, rows: list[int], size: list[float], user: str = "ann") -> JobLoad:
    everywhere = np.zeros(len(fabric.links))
    everywhere[rows] = np.asarray(size) * fabric.links.capacity[rows]
    return JobLoad(job=job, user=user, application="cg", loads=LoadedLinks.of(everywhere))


@pytest.fixture(scope="module")
def shared() -> SharedLoad:
    """Seconds by link: a loads 0 (3) and 1 (1), b loads 0 (1) and 2 (2), c loads 3 (5), d nothing."""
    fabric = infiniband("ndr-dgx-minhop")
    jobs = [
        load(fabric, "a", [0, 1], [3.0, 1.0]),
        load(fabric, "b", [0, 2], [1.0, 2.0], "bob"),
        load(fabric, "c", [3], [5.0]),
        load(fabric, "d", [], []),
    ]
    return SharedLoad.of(fabric, jobs)


def test_each_job_is_slowed_down_by_what_it_shares(shared: SharedLoad) -> None:
    table = slowdowns(shared, Viewer()).set_index("job")
    assert table[["alone", "together", "slowdown"]].loc[["b"]].to_numpy().tolist() == [[2.0, 4.0, 2.0]]
    assert table.loc["a", "slowdown"] == pytest.approx(4 / 3)
    assert table.loc[["c", "d"], "slowdown"].tolist() == [1.0, 1.0]
    assert list(table.index) == ["b", "a", "c", "d"]
    assert table["shared most with"].to_dict() == {"a": "b", "b": "a", "c": "", "d": ""}
    assert worst_links(shared).tolist() == [0, 0, 3, -1]


def test_the_heat_map_holds_all_bytes_of_its_links(shared: SharedLoad) -> None:
    found = heat(shared, shared.hottest(4), Viewer())
    assert found.links["seconds"].tolist() == [5.0, 4.0, 2.0, 1.0]
    assert found.links["jobs"].tolist() == [1, 2, 1, 1]
    assert found.cells.groupby("place")["seconds"].sum().tolist() == found.links["seconds"].tolist()
    assert found.cells.groupby("place")["part"].sum().tolist() == pytest.approx([1.0] * 4)
    assert found.rows == ("c · cg", "a · cg", "b · cg")


def test_jobs_with_little_traffic_share_a_row(shared: SharedLoad) -> None:
    found = heat(shared, shared.hottest(4), Viewer(), most=1)
    assert found.rows == ("c · cg", REST)
    rest = found.cells[found.cells["row"] == REST]
    assert rest.set_index("place")["seconds"].to_dict() == {2: 4.0, 3: 2.0, 4: 1.0}


def test_jobs_that_the_viewer_may_not_see_have_no_name_anywhere(shared: SharedLoad) -> None:
    viewer = Viewer(only="bob")
    found = heat(shared, shared.hottest(4), viewer)
    assert found.rows == ("b · cg", OTHERS)
    table = slowdowns(shared, viewer)
    assert table["job"].tolist() == ["b"]
    assert table["shared most with"].tolist() == [OTHERS]
    pair = shared.worst_shared_link()
    assert pair is not None
    told = pair_text(shared, pair, viewer)
    assert "job a" not in told
    assert OTHERS in told


def test_users_are_shown_as_pseudonyms(shared: SharedLoad) -> None:
    viewer = Viewer(key=b"k")
    assert set(slowdowns(shared, viewer)["user"]) == {viewer.name("ann"), viewer.name("bob")}
    pair = shared.worst_shared_link()
    assert pair is not None
    told = pair_text(shared, pair, viewer)
    assert "ann" not in told
    assert viewer.name("ann") in told


def test_the_pair_on_the_hottest_link_is_shown_with_the_part_of_each(shared: SharedLoad) -> None:
    pair = shared.worst_shared_link()
    assert pair is not None
    told = pair_text(shared, pair, Viewer())
    assert "needs 4 s per period: 75% of its bytes come from job a (cg, ann), " in told
    assert ", 25% from job b (cg, bob)." in told


def spec(shared: SharedLoad, theme: str) -> dict[str, Any]:
    shown = heat(shared, shared.hottest(4), Viewer())
    made: dict[str, Any] = sharing_figure(shown.rows, shown.cells, shown.links, theme).to_dict()
    return made


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_heat_map_is_drawn_with_its_unit_and_a_title(shared: SharedLoad, theme: str) -> None:
    made = spec(shared, theme)
    upper, lower = made["vconcat"]
    assert upper["title"] == "Time of all jobs, per period"
    assert lower["title"] == "Time of each job"
    assert lower["encoding"]["color"]["title"] == "time of its bytes (s)"
    assert lower["encoding"]["y"]["scale"]["domain"] == ["c · cg", "a · cg", "b · cg"]


def test_text_of_jobs_is_data_of_the_chart_never_an_expression() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    one = SharedLoad.of(fabric, [load(fabric, NASTY, [0], [1.0])])
    made = spec(one, LIGHT)
    datasets = made.pop("datasets")
    assert any(row.get("row", "").startswith(NASTY) for rows in datasets.values() for row in rows)
    assert not any(part.get("transform") for part in made["vconcat"])
