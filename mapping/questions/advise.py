"""Search a better placement for each running job, with the traffic of the others, and save what is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mapping.cluster import Cluster
from mapping.cost.metrics import evaluate_on
from mapping.cost.report import PlacementReport, report_given, with_baselines
from mapping.placement.case import PlacementCase
from mapping.placement.moves import find_curve
from mapping.placement.objective import SAME, better, parse_objective, score
from mapping.placement.place import find_placement
from mapping.placement.relinking import nearest
from mapping.placement.search import SearchOptions
from mapping.questions.live import Live, Unloaded
from mapping.questions.place import measured_worse, save
from registry.errors import AlmanacError, ClusterError, DatabaseError
from registry.model import Allocation, Evaluation, Fabric, Job, Placement
from registry.model.views import one_line
from registry.progress import Progress, silent
from registry.registry import Registry
from registry.store.placement_rows import PRESENT
from registry.store.running_jobs import AdviceRecord


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Advised:
    """Advice that was saved for one running job."""

    advice: AdviceRecord
    before: Evaluation
    after: Evaluation
    """All metrics of the present and of the proposed placement; the same if none is proposed."""
    user: str
    application: str | None
    complete: bool
    """False if the search was interrupted; then the best placement until then is saved."""

    __repr__ = one_line


def advise_all(
    registry: Registry,
    live: Live,
    options: SearchOptions,
    progress: Progress = silent,
    cluster: Cluster | None = None,
) -> Iterator[Advised | Unloaded]:
    """Search a better placement for each running job; yield each piece of advice after it is saved.

    The job whose worst link is busiest comes first. All other jobs are assumed to stay where they are. A job
    that cannot be searched is yielded with the reason. After an interrupt the best placement so far is
    saved, and no further job is searched.

    Args:
        live: From `mapping.questions.live`.
        options: Limit, seed and threads for each job, and `moves`, the most ranks of a job that may move.
        cluster: Search all jobs there at the same time; advice is yielded as it is found.

    Raises:
        InvalidValue: Seconds, steps or moves out of range.
        DatabaseError
    """
    order = np.argsort(-live.shared.together_seconds(), kind="stable").tolist()
    if cluster is not None:
        yield from _advise_on_cluster(registry, live, order, options, progress, cluster)
        return
    for done, number in enumerate(order):
        progress("jobs", done, len(order))
        try:
            search = _prepare(registry, live, number, options)
            advised = _save(registry, live, search, _better(search.case, progress) if search.sends else None)
        except DatabaseError:
            raise
        except AlmanacError as error:
            yield _unloaded(live, number, error)
            continue
        yield advised
        if not advised.complete:
            return
    progress("jobs", len(order), len(order))


class _JobSearch(NamedTuple):
    """The search for one job: its number, its case, and the present placement with its evaluation."""

    number: int
    case: PlacementCase
    present: PlacementReport
    sends: bool


def _advise_on_cluster(
    registry: Registry,
    live: Live,
    order: list[int],
    options: SearchOptions,
    progress: Progress,
    cluster: Cluster,
) -> Iterator[Advised | Unloaded]:
    """Search all jobs on a cluster, and yield the advice for each as it ends."""
    searches: list[_JobSearch] = []
    for number in order:
        try:
            search = _prepare(registry, live, number, options.for_task(cluster, len(order)))
            if search.sends:
                searches.append(search)
            else:
                yield _save(registry, live, search, None)
        except DatabaseError:
            raise
        except AlmanacError as error:
            yield _unloaded(live, number, error)
    cluster.share(live.fabric)
    # copies: without the routes, which are built again faster than they are sent
    tasks = [(replace(search.case),) for search in searches]
    for index, result in cluster.run(_better, tasks, "jobs", progress):
        search = searches[index]
        try:
            yield _save(registry, live, search, result.result())
        except (DatabaseError, ClusterError):
            raise
        except AlmanacError as error:
            yield _unloaded(live, search.number, error)


def _unloaded(live: Live, number: int, error: AlmanacError) -> Unloaded:
    return Unloaded(job=live.job(live.shared.jobs[number].job), reason=error.reason)


def _prepare(registry: Registry, live: Live, number: int, options: SearchOptions) -> _JobSearch:
    """Return the search for one job, with its present placement evaluated."""
    case = _case(registry, live, number, options)
    assert case.present is not None
    sends = len(live.shared.jobs[number].loads.link) > 0
    return _JobSearch(number, case, report_given(case, case.present), sends)


def _save(registry: Registry, live: Live, search: _JobSearch, placement: Placement | None) -> Advised:
    """Save the placement that was found for a job with the advice; None: nothing was searched."""
    case, present, load = search.case, search.present, live.shared.jobs[search.number]
    found = present
    if placement is not None:
        found = replace(
            present, placement=placement, evaluation=evaluate_on(present.case, placement, present.bounds)
        )
    now, then = present.evaluation.congestion_seconds, found.evaluation.congestion_seconds
    gains = then < now * (1.0 - SAME) and not measured_worse(registry, case, found.placement)
    advice = AdviceRecord(
        cluster=case.cluster,
        job=load.job,
        at=live.running.at,
        present=_present_id(registry, live, load.job, present),
        proposed=save(registry, with_baselines(found)).record_id if gains else None,
        present_seconds=now,
        proposed_seconds=then if gains else now,
        in_background=0 if case.costs.background is None else case.costs.background.jobs,
        moved=int((found.placement.host_of_rank != present.placement.host_of_rank).sum()) if gains else 0,
    )
    registry.advices.save([advice])
    return Advised(
        advice=advice,
        before=present.evaluation,
        after=found.evaluation if gains else present.evaluation,
        user=load.user,
        application=load.application,
        complete=found.placement.complete,
    )


def _case(registry: Registry, live: Live, number: int, options: SearchOptions) -> PlacementCase:
    """Return the case of a running job, with the traffic of the other jobs as background."""
    snapshot, job = live.running.snapshot, live.shared.jobs[number].job
    stored = live.job(job).stored
    assert stored.profile is not None
    allocation, present = _allocation(live.fabric, stored.job, live.placements[number])
    return PlacementCase(
        profile=registry.profiles.read_many([stored.profile])[stored.profile].profile,
        fabric=live.fabric,
        allocation=allocation,
        costs=replace(live.costs, background=live.shared.background(job)),
        options=options,
        present=present,
        cluster=snapshot.cluster,
        snapshot=snapshot.id,
        tables=snapshot.routing,
        profile_id=stored.profile,
        job=job,
    )


def _allocation(fabric: Fabric, job: Job, present: Placement) -> tuple[Allocation, Placement]:
    """Return the allocation and the present placement on it.

    The allocation is the scheduler's; if the ranks do not fit it, the hosts and slots that they use.
    """
    try:
        allocation = Allocation.of(fabric, job.hosts, job.slots)
        return allocation, replace(present, allocation=allocation)
    except AlmanacError:
        return present.allocation, present


def _better(case: PlacementCase, progress: Progress = silent) -> Placement:
    """Return the best placement found; never worse than the present one."""
    if case.options.moves is not None:
        curve = find_curve(case, progress)
        return replace(curve.points[-1].placement, complete=curve.complete)
    found = find_placement(case, progress)
    return _with_fewest_moves(case, found) if found.complete else found


def _with_fewest_moves(case: PlacementCase, found: Placement) -> Placement:
    """Return, of the placements equal to the one found, the one that leaves most ranks where they are."""
    assert case.present is not None
    objective, problem = parse_objective(case.options.objective), case.problem()
    now, target = case.host_indices(case.present), case.host_indices(found)
    alike = nearest(problem, now, target)
    if better(objective, score(problem, target), score(problem, alike)):
        return found  # alike as to distance, not as to load
    return replace(
        found,
        host_of_rank=case.allocation.hosts[alike],
        parameters={**found.parameters, "nearest": True},
    )


def _present_id(registry: Registry, live: Live, job: str, present: PlacementReport) -> str:
    """Return the id of the present placement; it is saved if it was not for this fabric and routing."""
    stored = live.job(job).present
    if stored is not None and job not in live.evaluated:
        return stored.id
    return save(registry, with_baselines(present), PRESENT).record_id
