"""The table of all jobs, and who shares links with whom, on the demo: one job that ended, those that run."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from almanac.demo.fill import CLUSTER, JOB, ON_CIRCUITS, RUNNING
from almanac.demo.history import NIGHTS
from dashboard.state.viewer import OTHERS, Viewer
from mapping.service.live import traffic
from registry.model import Job
from registry.model.intake import Intake
from registry.registry import Registry
from tests.dashboard.conftest import MARKUP, SCANNED, Connect, Filled
from tests.dashboard.test_app import INTERFERENCE, JOBS, address, messages, nothing, page
from tests.dashboard.views.test_job import table

__all__ = ["nothing"]

RUN = {*RUNNING, *ON_CIRCUITS}
"""Jobs that run, on both clusters of the demo."""
NIGHTLY = {str(int(JOB) - night) for night in NIGHTS}
"""Jobs that ended before `JOB`."""
ALL = {*NIGHTLY, JOB, *RUN}
LATELY = f"{datetime.now(UTC) - timedelta(minutes=30):%Y-%m-%dT%H:%M}"
"""After all jobs that ended."""


@pytest.fixture(scope="module")
def connect(demonstration: Path) -> Connect:
    return lambda: Registry.open(home=demonstration, idle_seconds=120)


def listed(app: AppTest) -> pd.DataFrame:
    return table(app, "job", "state", "possible gain")


def test_all_jobs_are_listed_with_what_judges_them(connect: Connect) -> None:
    jobs = listed(page(connect, JOBS)).set_index("job")
    assert set(jobs.index) == ALL
    assert (jobs["fragmentation"].dropna() >= 1).all()
    assert jobs.loc[["4711", *RUNNING], "fragmentation"].notna().all()
    assert (jobs["over the bound"].dropna() >= 1).all()
    assert jobs.loc[[JOB, *RUNNING], "possible gain"].notna().all()
    assert jobs.loc[sorted(NIGHTLY), "possible gain"].isna().all()
    assert jobs["name"].str.startswith("demo-").all()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"state": "RUNNING"}, RUN),
        ({"state": "RUNNING", "cluster": CLUSTER}, set(RUNNING)),
        ({"text": "471"}, {JOB, *RUNNING}),
        ({"text": "4712"}, {"4712"}),
        ({"since": LATELY}, RUN),
    ],
)
def test_the_address_narrows_the_table(connect: Connect, given: dict[str, str], expected: set[str]) -> None:
    app = page(connect, JOBS, **given)
    assert set(listed(app)["job"]) == expected
    assert address(app) == given


def test_a_choice_that_no_job_fits_is_reported_and_undone_by_a_button(connect: Connect) -> None:
    app = page(connect, JOBS, text="no such job")
    assert "No job matches this choice." in messages(app)
    app.button(key="all jobs").click().run()
    assert not app.exception
    assert len(listed(app)) == len(ALL)


def test_a_filter_is_kept_in_the_address_and_begins_at_the_first_page(connect: Connect) -> None:
    app = page(connect, JOBS, page="1")
    app.selectbox(key="choose state").set_value("COMPLETED").run()
    assert address(app) == {"state": "COMPLETED"}
    app.text_input(key="write text").set_value(" 47 ").run()
    assert address(app) == {"state": "COMPLETED", "text": "47"}
    app.number_input(key="number over").set_value(1.5).run()
    assert address(app) == {"state": "COMPLETED", "text": "47", "over": "1.5"}
    app.number_input(key="number over").set_value(None).run()
    assert "over" not in address(app)


def test_invalid_numbers_and_pages_are_reported_or_ignored(connect: Connect) -> None:
    assert "is not a number of 1 or more" in messages(page(connect, JOBS, gain="much"))
    assert len(listed(page(connect, JOBS, page="-3"))) == len(ALL)
    beyond = page(connect, JOBS, page="99")
    beyond.button(key="page back").click().run()
    assert "page" not in address(beyond)
    assert len(listed(beyond)) == len(ALL)


def test_a_job_can_be_opened_by_the_keyboard(connect: Connect) -> None:
    app = page(connect, JOBS, state="RUNNING")
    chooser = app.selectbox(key="open None")
    assert len(chooser.options) == len(RUN)
    chooser.set_value(0).run()
    assert not app.exception


def test_many_jobs_come_page_by_page(nothing: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.views.jobs.ROWS", 2)
    jobs = tuple(Job(id=str(number), name="j", state="PENDING") for number in range(1, 6))
    with nothing() as registry:
        registry.save(Intake(cluster="c", jobs=jobs, source="test", observed_at=SCANNED))
    seen: list[str] = []
    app = page(nothing, JOBS)
    for number in (1, 2, 3):
        assert address(app).get("page", "1") == str(number)
        seen += listed(app)["job"].tolist()
        if number < 3:
            app.button(key="page on").click().run()
    assert sorted(seen) == ["1", "2", "3", "4", "5"]
    assert app.button(key="page on").disabled


def test_the_file_holds_all_rows_and_nothing_that_is_computed(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(
        "dashboard.views.jobs.st.download_button", lambda label, data, **_: given.update(data=data)
    )
    monkeypatch.setattr("dashboard.views.jobs.ROWS", 1)
    page(filled.connect, JOBS)
    found = pd.read_csv(io.StringIO(given["data"]()), dtype={"job": str})
    assert set(found["job"]) == {"4711", "9"}
    assert "worst link (s)" in found.columns
    assert MARKUP in set(found["name"])


def test_only_ones_own_jobs_are_listed(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.app.current", lambda access: Viewer(only="eve"))
    assert listed(page(filled.connect, JOBS))["job"].tolist() == ["9"]
    assert "There is no user 'demo'" in messages(page(filled.connect, JOBS, user="demo"))


def test_a_pseudonym_in_the_address_finds_the_users_jobs(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = Viewer(key=b"secret")
    monkeypatch.setattr("dashboard.app.current", lambda access: viewer)
    app = page(filled.connect, JOBS, user=viewer.name("eve"))
    assert listed(app)["job"].tolist() == ["9"]
    assert listed(app)["user"].tolist() == [viewer.name("eve")]
    assert "There is no user" in messages(page(filled.connect, JOBS, user="eve"))


def test_running_jobs_are_set_against_the_links_they_share(connect: Connect) -> None:
    app = page(connect, INTERFERENCE)
    assert not app.error
    with connect() as registry:
        live = traffic(registry, CLUSTER)
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Running jobs"] == str(len(RUNNING))
    slow = table(app, "job", "slowdown").set_index("job")["slowdown"]
    expected = dict(zip((one.job for one in live.shared.jobs), live.shared.slowdowns(), strict=True))
    assert slow.to_dict() == pytest.approx(expected)
    pair = live.shared.worst_shared_link()
    assert pair is not None
    told = messages(app)
    assert f"job {pair.users[0].job}" in told
    assert f"job {pair.users[1].job}" in told


@pytest.mark.parametrize("kind", ["shared", "network", "all", "odd"])
def test_every_choice_of_links_is_drawn(connect: Connect, kind: str) -> None:
    app = page(connect, INTERFERENCE, cluster=CLUSTER, links=kind, count="20")
    assert not app.error
    assert len(table(app, "place", "link")) <= 20


def test_other_users_jobs_have_no_name_there(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect() as registry:
        users = {stored.job.user for stored in registry.jobs.list(CLUSTER)}
    monkeypatch.setattr("dashboard.app.current", lambda access: Viewer(only="nobody"))
    app = page(connect, INTERFERENCE)
    told = messages(app)
    assert OTHERS in told
    assert not any(f"job {job}" in told for job in RUNNING)
    assert not any(user and f", {user})" in told for user in users)
    assert table(app, "job", "slowdown").empty


def test_a_fabric_without_running_jobs_shows_how_to_ingest_jobs(filled: Filled) -> None:
    app = page(filled.connect, INTERFERENCE, cluster="tree")
    assert "No job was running then" in messages(app)
    assert "scontrol show jobs -d | almanac ingest --cluster tree -" in [code.value for code in app.code]


def test_a_time_before_the_first_scan_is_reported(filled: Filled) -> None:
    app = page(filled.connect, INTERFERENCE, cluster="tree", at="2020-01-01T00:00")
    assert "was not observed at or before" in messages(app)
