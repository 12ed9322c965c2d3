"""What remapping each running job would give, the others' traffic as background; saved as it is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mapping.placement.moves.relinking import nearest
from mapping.placement.problem.objective import SAME, better, parse_objective, score
from mapping.placement.search.posing import check_budget, start_indices
from mapping.service.answers.answering import present_curve, search_in
from mapping.service.answers.case import Case, Posed, Search
from mapping.service.live import Live, Unloaded
from registry.errors import AlmanacError, DatabaseError
from registry.model import Allocation, Evaluation, Fabric, Job, Metrics, Placement
from registry.progress import Progress, silent
from registry.records.placements.placements import PlacementRecord
from registry.registry import Registry
from registry.running.advice import AdviceRecord
from registry.version import code_version


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Advised:
    """What was found and saved for one running job.

    Attributes
    ----------
    advice : AdviceRecord
    user : str
    application : str or None
    complete : bool
        False where the search was interrupted: then the best that it had found is saved.
    """

    advice: AdviceRecord
    user: str
    application: str | None
    complete: bool


def advise_all(
    registry: Registry,
    live: Live,
    *,
    seconds: float = 5.0,
    steps: int | None = None,
    moves: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress = silent,
) -> Iterator[Advised | Unloaded]:
    """Look for a better placement of each running job; each is saved before it is given.

    The job whose worst link is busiest comes first. All others are taken to stay where they are. A job that
    cannot be searched is given with the reason. After an interrupt of a search what it had found is saved,
    and no further job is looked at.

    Parameters
    ----------
    live : Live
        From `mapping.service.traffic`.
    seconds : float
        To search for each job.
    steps : int, optional
        Proposals for each job instead of seconds.
    moves : int, optional
        Most ranks of a job that may move; unless told, any.
    seed, workers
        As in `mapping.place`.

    Raises
    ------
    InvalidValue
        Seconds, steps or moves that make no sense.
    DatabaseError
    """
    check_budget(seconds, steps)
    search = Search(
        routing=live.routing,
        rails=live.rails,
        seconds=seconds,
        steps=steps,
        seed=seed,
        workers=workers,
        moves=moves,
    )
    order = np.argsort(-live.shared.together_seconds(), kind="stable").tolist()
    for done, number in enumerate(order):
        progress("jobs", done, len(order))
        try:
            advised = _advise(registry, live, number, search, progress)
        except DatabaseError:
            raise
        except AlmanacError as error:
            yield Unloaded(job=live.job(live.shared.jobs[number].job), reason=error.reason)
            continue
        yield advised
        if not advised.complete:
            return
    progress("jobs", len(order), len(order))


def _advise(registry: Registry, live: Live, number: int, search: Search, progress: Progress) -> Advised:
    case = _case(registry, live, number)
    load, present = live.shared.jobs[number], case.present
    assert present is not None
    posed = case.posed(search)
    now = posed.judge.evaluate(present, bounds=True)
    found, after = present, now
    if len(load.loads.link):
        found = _better(case, search, posed, progress)
        after = posed.judge.evaluate(found, bounds=True)
    gains = after.congestion_seconds < now.congestion_seconds * (1.0 - SAME)
    advice = AdviceRecord(
        cluster=case.cluster,
        job=load.job,
        at=live.running.at,
        present=_present_id(registry, live, load.job, case, posed, now),
        proposed=_save(registry, case, posed, found, after, "proposed") if gains else None,
        present_seconds=now.congestion_seconds,
        proposed_seconds=after.congestion_seconds if gains else now.congestion_seconds,
        in_background=0 if case.background is None else case.background.jobs,
        moved=int((found.host_of_rank != present.host_of_rank).sum()) if gains else 0,
    )
    registry.advices.save([advice])
    return Advised(advice=advice, user=load.user, application=load.application, complete=found.complete)


def _case(registry: Registry, live: Live, number: int) -> Case:
    snapshot, job = live.running.snapshot, live.shared.jobs[number].job
    stored = live.job(job).stored
    assert stored.profile is not None
    allocation, present = _allocation(live.fabric, stored.job, live.placements[number])
    return Case(
        profile=registry.profiles.read_many([stored.profile])[stored.profile].profile,
        fabric=live.fabric,
        allocation=allocation,
        present=present,
        background=live.shared.background(job),
        cluster=snapshot.cluster,
        snapshot=snapshot.id,
        tables=snapshot.routing,
        profile_id=stored.profile,
        job=job,
    )


def _allocation(fabric: Fabric, job: Job, present: Placement) -> tuple[Allocation, Placement]:
    """Where ranks may sit, and the present placement there.

    As the scheduler told it; where the ranks do not sit so, on the hosts and in the numbers that they do.
    """
    try:
        allocation = Allocation.of(fabric, job.hosts, job.slots)
        return allocation, replace(present, allocation=allocation)
    except AlmanacError:
        return present.allocation, present


def _better(case: Case, search: Search, posed: Posed, progress: Progress) -> Placement:
    """The best that is found; never worse than the present placement."""
    if search.moves is not None:
        curve = present_curve(case, search, progress)
        return replace(curve.points[-1].placement, complete=curve.complete)
    found = search_in(case, search, posed.setting, progress)
    return _alike(case, search, posed, found) if found.complete else found


def _alike(case: Case, search: Search, posed: Posed, found: Placement) -> Placement:
    """Of placements that are equal to what was found, the one that leaves most ranks where they are."""
    assert case.present is not None
    objective = parse_objective(search.objective)
    problem = posed.setting.problem(case.fabric, case.profile, case.allocation, objective)
    now, target = (
        start_indices(case.profile, case.allocation, placement) for placement in (case.present, found)
    )
    alike = nearest(problem, now, target)
    if better(objective, score(problem, target), score(problem, alike)):
        return found  # alike as to distance, not as to load
    return replace(
        found,
        host_of_rank=case.allocation.hosts[alike],
        parameters={**found.parameters, "nearest": True},
    )


def _present_id(
    registry: Registry, live: Live, job: str, case: Case, posed: Posed, evaluation: Evaluation
) -> str:
    """Of the present placement as it was saved for this fabric and routing, or is saved now."""
    stored = live.job(job).present
    if stored is not None and job not in live.evaluated:
        return stored.id
    assert case.present is not None
    return _save(registry, case, posed, case.present, evaluation, "present")


def _save(
    registry: Registry,
    case: Case,
    posed: Posed,
    placement: Placement,
    evaluation: Evaluation,
    role: str,
) -> str:
    record = PlacementRecord(
        cluster=case.cluster,
        content=case.snapshot,
        routing=case.tables,
        profile=case.profile_id,
        job=case.job,
        placement=placement,
        evaluation=evaluation,
        in_order=Metrics.of(posed.judge.in_order()),
        random=posed.judge.at_random(),
        code_version=code_version(),
        role=role,
    )
    return registry.placements.save(record)
