"""Jobs page by page, what there is to choose from, and one job with all of its placements."""

from __future__ import annotations

import pytest

from registry.errors import UnknownName
from registry.pages.jobs import JobFilter
from registry.registry import Registry
from tests.support.busy_cluster import PROPOSED, advise, at, fill, job, place, statements_of

EVERY = JobFilter()


def ids(registry: Registry, asked: JobFilter = EVERY, **where: int) -> list[str]:
    return [row.stored.job.id for row in registry.job_pages.page(asked, **where).rows]


@pytest.fixture
def busy(registry: Registry) -> Registry:
    """Four jobs of two users; one never started."""
    fill(
        registry,
        job("71", 2, 6, user="ada", state="COMPLETED", title="Weather <b>"),
        job("72", 4, user="bao", state="RUNNING", title="cfd"),
        job("8", 5, user="ada", state="RUNNING"),
        job("9", None, user="ada", state="PENDING", submitted_at=at(3)),
    )
    registry.jobs.attach("71", "ring")
    registry.jobs.attach("72", "pair")
    return registry


def test_jobs_are_listed_the_latest_started_first_and_the_waiting_last(busy: Registry) -> None:
    page = busy.job_pages.page(EVERY)
    assert [row.stored.job.id for row in page.rows] == ["8", "72", "71", "9"]
    assert page.total == 4
    assert [row.stored for row in page.rows] == [busy.jobs.read(name) for name in ("8", "72", "71", "9")]
    assert [row.application for row in page.rows] == [None, "ft", "cg", None]


def test_pages_follow_each_other_and_have_the_total(busy: Registry) -> None:
    assert [ids(busy, limit=2, offset=start) for start in (0, 2, 3, 4)] == [
        ["8", "72"],
        ["71", "9"],
        ["9"],
        [],
    ]
    assert [busy.job_pages.page(EVERY, limit=2, offset=start).total for start in (0, 3, 4)] == [4, 4, 4]
    assert busy.job_pages.page(JobFilter(user="nobody")).total == 0


@pytest.mark.parametrize("cluster", [None, "toy"])
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"user": "ada"}, ["8", "71", "9"]),
        ({"users": ("bao", "cem")}, ["72"]),
        ({"users": ()}, []),
        ({"state": "RUNNING"}, ["8", "72"]),
        ({"state": "RUNNING", "user": "ada"}, ["8"]),
        ({"application": "cg"}, ["71"]),
        ({"text": "7"}, ["72", "71"]),
        ({"text": "1"}, []),
        ({"text": "wEATHER"}, ["71"]),
        ({"text": "<b>"}, ["71"]),
        ({"since": at(6)}, ["8", "72", "9"]),
        ({"since": at(5.5)}, ["8", "72", "71", "9"]),
        ({"until": at(4)}, ["71", "9"]),
        ({"since": at(6), "until": at(5)}, ["72", "9"]),
    ],
)
def test_jobs_are_filtered(
    busy: Registry, cluster: str | None, asked: dict[str, object], found: list[str]
) -> None:
    assert ids(busy, JobFilter(cluster=cluster, **asked)) == found  # type: ignore[arg-type]


def test_jobs_of_other_clusters_are_left_out_if_one_is_chosen(busy: Registry) -> None:
    fill(busy, job("72", 7), cluster="two")
    assert ids(busy) == ["72", "8", "72", "71", "9"]
    assert ids(busy, JobFilter(cluster="two")) == ["72"]
    assert ids(busy, JobFilter(cluster="none")) == []


def test_a_row_has_the_newest_evaluated_placement_present_ones_first(busy: Registry) -> None:
    place(busy, "71", ranks=(0, 1, 0))
    present = place(busy, "71", ranks=(1, 0, 0))
    place(busy, "71", role=PROPOSED, seconds=2.0)
    place(busy, "71", ranks=(1, 1, 0), evaluated=False)
    proposed = place(busy, "8", role=PROPOSED)
    found = {row.stored.job.id: row.placement for row in busy.job_pages.page(EVERY).rows}
    assert found["72"] is None
    assert found["71"] is not None
    assert found["8"] is not None
    assert (found["71"].id, found["71"].role, found["8"].id) == (present, "present", proposed)
    history = {info.id: info for info in busy.placements.history()}
    assert found["71"] == history[present]
    assert found["8"] == history[proposed]


def test_jobs_are_filtered_by_what_may_be_gained(busy: Registry) -> None:
    present = place(busy, "71")
    advise(busy, "71", present, present, proposed_seconds=2.0)
    advise(busy, "72", present, present, when=at(9), proposed_seconds=1.0)
    advise(busy, "72", present, present, when=at(10), proposed_seconds=3.0)
    rows = {row.stored.job.id: row.advice for row in busy.job_pages.page(EVERY).rows}
    assert rows["72"] is not None
    assert (rows["8"], rows["72"].gain) == (None, 4 / 3)
    assert ids(busy, JobFilter(minimum_gain=1.0)) == ["72", "71"]
    assert ids(busy, JobFilter(minimum_gain=1.5)) == ["71"]


@pytest.mark.parametrize("cluster", [None, "toy"])
def test_jobs_are_filtered_by_how_far_they_are_from_their_bound(busy: Registry, cluster: str | None) -> None:
    place(busy, "71", seconds=4.0, bound=1.0)
    place(busy, "72", seconds=4.0, bound=3.0)
    place(busy, "72", seconds=9.0, bound=1.0, role=PROPOSED)
    found = busy.job_pages.page(JobFilter(cluster=cluster, minimum_ratio=2.0))
    assert ([row.stored.job.id for row in found.rows], found.total) == (["71"], 1)
    assert ids(busy, JobFilter(cluster=cluster, minimum_ratio=1.0)) == ["72", "71"]


def test_the_choices_of_the_filters(busy: Registry) -> None:
    fill(busy, job("1", 7, user="cem", state="FAILED"), cluster="two")
    every, toy = busy.job_pages.choices(), busy.job_pages.choices("toy")
    assert every.users == ("ada", "bao", "cem")
    assert every.states == ("COMPLETED", "FAILED", "PENDING", "RUNNING")
    assert (toy.users, toy.states) == (("ada", "bao"), ("COMPLETED", "PENDING", "RUNNING"))
    assert toy.applications == ("cg", "ft")
    assert dict(toy.clusters) == {info.name: info.snapshot for info in busy.fabrics.clusters()}


def test_an_empty_database_offers_nothing(registry: Registry) -> None:
    found = registry.job_pages.choices()
    assert (found.users, found.states, found.applications, dict(found.clusters)) == ((), (), (), {})
    assert registry.job_pages.page(EVERY).rows == ()


def test_a_job_is_opened_with_all_its_placements(busy: Registry) -> None:
    first = place(busy, "71")
    second = place(busy, "71", role=PROPOSED, seconds=2.0)
    place(busy, "8")
    advise(busy, "71", first, second)
    found = busy.job_pages.open("71")
    assert found.stored == busy.jobs.read("71")
    assert found.placements == busy.placements.history(job="71")
    assert [info.id for info in found.placements] == [second, first]
    assert found.application == "cg"
    assert found.advice is not None
    assert found.advice.proposed == second
    assert busy.job_pages.open("toy/71").stored == found.stored
    assert busy.job_pages.open("72").placements == ()


def test_an_unknown_job_is_an_error_with_the_closest(busy: Registry) -> None:
    with pytest.raises(UnknownName, match="no job '711'; closest: 71"):
        busy.job_pages.open("711")
    with pytest.raises(UnknownName, match="there is no cluster 'two'; closest: toy"):
        busy.job_pages.open("71", "two")
    fill(busy, job("71", 7), cluster="two")
    with pytest.raises(UnknownName, match="is in clusters toy and two; add --cluster NAME"):
        busy.job_pages.open("71")
    assert busy.job_pages.open("71", "two").stored.cluster == "two"


def test_each_takes_one_statement(busy: Registry) -> None:
    place(busy, "71")
    assert statements_of(busy, lambda counted: counted.job_pages.page(JobFilter(cluster="toy"))) == 1
    assert statements_of(busy, lambda counted: counted.job_pages.page(JobFilter(minimum_ratio=1.0))) == 1
    assert statements_of(busy, lambda counted: counted.job_pages.choices("toy")) == 1
    assert statements_of(busy, lambda counted: counted.job_pages.open("71")) == 1
