"""The table of all jobs, and who shares links with whom, on the demo: one job that ended, those that run."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from almanac.demo.fill import CLUSTER, JOB, ON_CIRCUITS, OPTICAL, RUNNING
from almanac.demo.history import NIGHTS
from dashboard.state.viewer import OTHERS, Viewer
from dashboard.tables.sharing import busiest
from mapping.service.iterations import with_counters
from mapping.service.live import traffic
from mapping.traffic.interference import interference
from registry.model import Job
from registry.model.intake import Intake
from tests.dashboard.conftest import MARKUP, SCANNED, Connect, Filled
from tests.support.apps import INTERFERENCE, JOBS, address, captions, messages, numbers, page, table

RUN = {*RUNNING, *ON_CIRCUITS}
"""Jobs that run, on both clusters of the demo."""
NIGHTLY = {str(int(JOB) - night) for night in NIGHTS}
"""Jobs that ended before `JOB`."""
ALL = {*NIGHTLY, JOB, *RUN}
LATELY = f"{datetime.now(UTC) - timedelta(minutes=30):%Y-%m-%dT%H:%M}"
"""After all jobs that ended."""


def listed(app: AppTest) -> pd.DataFrame:
    """The table of jobs, with the id of each as a column."""
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
    assert set(listed(app)["id"]) == expected
    assert address(app) == given


def test_a_choice_that_no_job_fits_is_reported_and_undone_by_a_button(connect: Connect) -> None:
    app = page(connect, JOBS, text="no such job")
    assert "No job matches this choice." in messages(app)
    app.button(key="all jobs").click().run()
    assert not app.exception
    assert len(listed(app)) == len(ALL)


def test_many_jobs_come_page_by_page_and_invalid_pages_are_ignored(
    nothing: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.views.jobs.ROWS", 2)
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
    assert address(beyond)["page"] == "3"
    assert len(listed(beyond)) == 1


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
    assert listed(page(filled.connect, JOBS))["id"].tolist() == ["9"]
    assert "There is no user 'demo'" in messages(page(filled.connect, JOBS, user="demo"))


def test_a_pseudonym_in_the_address_finds_the_users_jobs(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_without_times_of_iterations_no_slowdown_is_shown(connect: Connect) -> None:
    """The optical cluster of the demonstration has no counters."""
    app = page(connect, INTERFERENCE, cluster=OPTICAL, links="all")
    assert "Largest slowdown" not in numbers(app)
    assert "almanac job attach JOB PROFILE --iteration-seconds SECONDS" in [code.value for code in app.code]
    assert numbers(app)["Busiest of these links"] == "unknown"
    assert "estimated share of a link" in captions(app)
    assert table(app, "job", "slowdown")["slowdown"].isna().all()


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


def test_a_fabric_without_running_jobs_or_before_its_first_scan_is_reported(filled: Filled) -> None:
    app = page(filled.connect, INTERFERENCE, cluster="tree")
    assert "No job was running then" in messages(app)
    assert "scontrol show jobs -d | almanac ingest --cluster tree -" in [code.value for code in app.code]
    app = page(filled.connect, INTERFERENCE, cluster="tree", at="2020-01-01T00:00")
    assert "was not observed at or before" in messages(app)
