"""The table of all jobs; who shares which link with whom, as tables, as a picture and as a page."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from almanac.demo.data import NIGHTS
from almanac.demo.demo import CLUSTER, JOB, ON_CIRCUITS, OPTICAL, RUNNING
from dashboard.pages.shared_links import ALL_JOBS, sharing_figure
from dashboard.shared.cards import DARK, LIGHT
from dashboard.shared.traffic import REST, Heat, busiest, heat, pair_text, sharers, sharing_table
from dashboard.shared.viewer import OTHERS, Viewer
from mapping.questions.live import traffic, with_counters
from mapping.traffic.shared_load import JobLoad, SharedLoad, interference
from registry.model import Fabric, Job
from registry.model.intake import Intake
from registry.model.placement import LoadedLinks
from tests.dashboard.conftest import MARKUP, SCANNED, Connect, Filled
from tests.support.apps import INTERFERENCE, JOBS, address, captions, messages, numbers, page, table
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


def test_what_sharing_costs_each_job_and_with_whom_it_shares(shared: SharedLoad) -> None:
    """Job a waits 3 / 0.8 s for link 0 instead of 3 s; job b waits 2 s for link 2, longer than for link 0."""
    table = sharing_table(shared, interference(shared), Viewer()).set_index("job")
    assert list(table.index) == ["a", "b", "c", "d"]
    assert table["slowdown"].to_dict() == pytest.approx({"a": 1 + 0.75 / 10, "b": 1.0, "c": 1.0, "d": 1.0})
    assert table["share of worst link"].to_dict() == pytest.approx({"a": 0.6, "b": 1.0, "c": 1.0, "d": 0.0})
    assert table["shared with"].to_dict() == {"a": "b", "b": "", "c": "", "d": ""}
    assert table["time per iteration"].to_dict()["a"] == "10 s (stated)"
    assert sharers(shared, Viewer()) == {"a": ["b"], "b": ["a"], "c": [], "d": []}
    assert sharers(shared, Viewer(only="ann"))["a"] == [OTHERS]
    fabric = shared.fabric
    links = {"a": [0, 1, 2, 3], "b": [0], "c": [0, 1], "d": [1, 2, 3], "e": [3]}
    jobs = [load(fabric, job, rows, [1.0] * len(rows)) for job, rows in links.items()]
    most = ["d", "c", "b", "1 more"]  # by common links
    assert sharers(SharedLoad.of(fabric, jobs), Viewer())["a"] == most


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


def test_the_heat_map_holds_shares_of_jobs_on_busiest_links(shared: SharedLoad, untimed: SharedLoad) -> None:
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
    assert (table["job"].tolist(), table["shared with"].tolist()) == (["a", "c", "d"], [OTHERS, "", ""])
    text = pair_text(shared, 0, viewer)
    assert "job b" not in text
    assert OTHERS in text
    viewer = Viewer(key=b"k")
    assert set(sharing_table(shared, found, viewer)["user"]) == {viewer.name("ann"), viewer.name("bob")}
    text = pair_text(shared, 0, viewer)
    assert "ann" not in text
    assert viewer.name("ann") in text
    assert pair_text(shared, 0, Viewer()).endswith(": job a (cg, ann) and job b (cg, bob).")


def spec(shared: SharedLoad, theme: str) -> dict[str, Any]:
    made: dict[str, Any] = sharing_figure(all_links(shared), theme).to_dict()
    return made


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_heat_map_is_drawn_and_described(shared: SharedLoad, untimed: SharedLoad, theme: str) -> None:
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


RUN = {*RUNNING, *ON_CIRCUITS}
"""Jobs that run, on both clusters of the demo."""
NIGHTLY = {str(int(JOB) - night) for night in NIGHTS}
"""Jobs that ended before `JOB`."""
ALL = {*NIGHTLY, JOB, *RUN}
LATELY = f"{datetime.now(UTC) - timedelta(minutes=30):%Y-%m-%dT%H:%M}"
"""After all jobs that ended."""


def listed(app: AppTest) -> pd.DataFrame:
    jobs = table(app, "job", "state", "possible gain")
    return jobs.assign(id=[text.partition(" ")[0] for text in jobs["job"]])


def test_all_jobs_are_listed_with_what_judges_them(connect: Connect) -> None:
    jobs = listed(page(connect, JOBS)).set_index("id")
    assert set(jobs.index) == ALL
    assert (jobs["distance from best"].dropna() >= 1).all()
    assert jobs.loc[[JOB, *RUNNING], "possible gain"].notna().all()
    assert jobs.loc[sorted(NIGHTLY), "possible gain"].isna().all()
    assert jobs.loc["4713", "state"] == "▶ running"
    assert jobs.loc["4713", "job"] == "4713 · AI training · bob"
    assert set(str(jobs.loc["4713", "shares links with"]).split(", ")) == set(RUNNING) - {"4713"}
    assert (jobs.loc[sorted(NIGHTLY), "shares links with"] == "").all()
    with connect() as registry:
        advice = {one.job: one for one in registry.advices.list(CLUSTER)}
        placed = registry.placements.read(advice["4713"].present)
    assert placed.evaluation is not None
    bound = placed.evaluation.bounds["congestion_seconds"].value
    distance = placed.evaluation.congestion_seconds / bound
    assert jobs.loc["4713", "distance from best"] == pytest.approx(distance)
    assert jobs.loc["4713", "possible gain"] == pytest.approx(advice["4713"].gain)


def test_the_address_narrows_the_table_and_a_button_undoes_what_no_job_fits(connect: Connect) -> None:
    for given, expected in (
        *(({"state": "RUNNING"}, RUN), ({"state": "RUNNING", "cluster": CLUSTER}, set(RUNNING))),
        *(({"text": "471"}, {JOB, *RUNNING}), ({"text": "4712"}, {"4712"}), ({"since": LATELY}, RUN)),
    ):
        app = page(connect, JOBS, **given)
        assert set(listed(app)["id"]) == expected
        assert address(app) == given
    app = page(connect, JOBS, text="no such job")
    assert "No job matches this choice." in messages(app)
    app.button(key="all jobs").click().run()
    assert not app.exception
    assert len(listed(app)) == len(ALL)


def test_many_jobs_come_in_pages_and_wrong_ones_go(nothing: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.pages.jobs.ROWS", 2)
    jobs = tuple(Job(id=str(number), name="j", state="PENDING") for number in range(1, 6))
    with nothing() as registry:
        registry.save(Intake(cluster="c", jobs=jobs, source="test", observed_at=SCANNED))
    seen: list[str] = []
    app = page(nothing, JOBS)
    for number in (1, 2, 3):
        assert address(app).get("page", "1") == str(number)
        seen += listed(app)["id"].tolist()
        if number < 3:
            app.button(key="page on").click().run()
    assert sorted(seen) == ["1", "2", "3", "4", "5"]
    assert app.button(key="page on").disabled
    assert len(listed(page(nothing, JOBS, page="-3"))) == 2
    beyond = page(nothing, JOBS, page="99")
    beyond.button(key="page back").click().run()
    assert (address(beyond)["page"], len(listed(beyond))) == ("3", 1)


def test_the_file_holds_all_rows_and_none_computed(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    download = "dashboard.pages.jobs.st.download_button"
    monkeypatch.setattr(download, lambda label, data, **_: given.update(data=data))
    monkeypatch.setattr("dashboard.pages.jobs.ROWS", 1)
    page(filled.connect, JOBS)
    found = pd.read_csv(io.StringIO(given["data"]()), dtype={"job": str})
    assert set(found["job"]) == {"4711", "9"}
    assert "worst link (s)" in found.columns
    assert MARKUP in set(found["name"])


def test_own_jobs_alone_are_listed_and_a_pseudonym_finds_its_jobs(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.app.current", lambda access: Viewer(only="eve"))
    assert listed(page(filled.connect, JOBS))["id"].tolist() == ["9"]
    assert "There is no user 'demo'" in messages(page(filled.connect, JOBS, user="demo"))
    viewer = Viewer(key=b"secret")
    monkeypatch.setattr("dashboard.app.current", lambda access: viewer)
    app = page(filled.connect, JOBS, user=viewer.name("eve"))
    assert listed(app)["id"].tolist() == ["9"]
    assert viewer.name("eve") in listed(app)["job"].iloc[0]
    assert "There is no user" in messages(page(filled.connect, JOBS, user="eve"))


def test_running_jobs_are_set_against_the_links_they_share(connect: Connect) -> None:
    app = page(connect, INTERFERENCE)
    assert not app.error
    with connect() as registry:
        live = with_counters(registry, traffic(registry, CLUSTER))
    shown = numbers(app)
    assert shown["Running jobs"] == str(len(RUNNING))
    found = interference(live.shared)
    slow = table(app, "job", "slowdown").set_index("job")["slowdown"]
    expected = dict(zip((one.job for one in live.shared.jobs), found.slowdowns, strict=True))
    assert slow.to_dict() == pytest.approx(expected)
    assert not np.isnan(found.slowdowns).any()
    assert shown["Largest slowdown"] == f"{found.slowdowns.max():.3g} ×"
    row = busiest(live.shared, found, 1)[0]
    assert shown["Busiest of these links"] == f"{found.utilisation[row]:.0%} of its capacity"
    for links in ("shared", "odd"):
        assert len(table(page(connect, INTERFERENCE, links=links), "place", "link")) <= 20


def test_other_users_jobs_have_no_name_there(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect() as registry:
        users = {stored.job.user for stored in registry.jobs.list(CLUSTER)}
    monkeypatch.setattr("dashboard.app.current", lambda access: Viewer(only="nobody"))
    app = page(connect, INTERFERENCE)
    shown = captions(app)
    assert OTHERS in shown
    assert not any(f"job {job}" in shown for job in RUNNING)
    assert not any(user and f", {user})" in shown for user in users)
    assert table(app, "job", "slowdown").empty


def test_without_times_of_iterations_no_slowdown_is_shown(connect: Connect) -> None:
    """The optical cluster of the demonstration has no counters."""
    app = page(connect, INTERFERENCE, cluster=OPTICAL, links="all")
    assert "Largest slowdown" not in numbers(app)
    assert "almanac job attach JOB PROFILE --iteration-seconds SECONDS" in [code.value for code in app.code]
    assert numbers(app)["Busiest of these links"] == "unknown"
    assert "estimated share of a link" in captions(app)
    assert table(app, "job", "slowdown")["slowdown"].isna().all()


def test_a_fabric_without_running_jobs_or_before_its_first_scan_is_reported(filled: Filled) -> None:
    app = page(filled.connect, INTERFERENCE, cluster="tree")
    assert "No job was running then" in messages(app)
    assert "scontrol show jobs -d | almanac ingest --cluster tree -" in [code.value for code in app.code]
    app = page(filled.connect, INTERFERENCE, cluster="tree", at="2020-01-01T00:00")
    assert "was not observed at or before" in messages(app)
