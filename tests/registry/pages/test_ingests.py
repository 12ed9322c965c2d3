"""The runs of each source by days, against the lists of runs and sources."""

from __future__ import annotations

from dataclasses import replace

from registry.errors import InputError
from registry.ingest_runs.runs import Attempt
from registry.model import Job
from registry.model.intake import Intake
from registry.pages.ingests import SourceDay, read_ingests
from registry.registry import Registry
from tests.support.fat_tree import at, fat_tree

DAY = 24 * 60


def test_runs_are_counted_by_days_and_failures_hold_no_data(registry: Registry) -> None:
    scan = Intake(cluster="toy", fabric=fat_tree(), observed_at=at(-60), source="scan", files=("s",))
    registry.save(replace(scan, started_at=at(0)))
    registry.save(replace(scan, observed_at=at(DAY), started_at=at(DAY + 1)))
    registry.save(replace(scan, observed_at=at(DAY + 5), started_at=at(DAY + 6)))
    registry.save(replace(scan, observed_at=at(DAY - 5), started_at=at(DAY + 7)))  # an older one, later
    registry.failed(Attempt(started_at=at(DAY + 7), cluster="toy", formats=("scan",)), InputError("cut"))
    registry.failed(Attempt(started_at=at(2 * DAY), cluster="toy", formats=("scan",)), InputError("late"))
    job = Job(id="1", hosts=("node00",), slots=(1,))
    registry.save(Intake(cluster="toy", jobs=(job,), source="jobs", files=("j",), started_at=at(2 * DAY)))
    starts = [at(DAY), at(2 * DAY), at(3 * DAY)]
    found = read_ingests(registry.database, starts, ["toy"])
    assert found.sources == registry.runs.sources()
    assert [one.error for one in found.sources] == ["", "late"]

    def day(format: str, number: int, runs: int, failed: int, minute: float | None) -> SourceDay:
        time = None if minute is None else at(minute)
        return SourceDay(cluster="toy", format=format, day=number, runs=runs, failed=failed, observed_at=time)

    assert found.days == (
        day("jobs", 2, 1, 0, 2 * DAY),  # without a time of its own: that of the run
        day("scan", 0, 2, 0, DAY - 5),
        day("scan", 1, 3, 1, DAY + 5),
        day("scan", 2, 1, 1, None),
    )


def test_an_empty_registry_has_no_days(registry: Registry) -> None:
    found = read_ingests(registry.database, [at(0)], [])
    assert (found.sources, found.days) == ((), ())
