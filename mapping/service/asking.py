"""Place, evaluate, compare and advise with the registry: read a case, have it answered, save the answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from mapping.checks.finding import Subject
from mapping.distances.background import Background
from mapping.placement.partition.cores import ALL
from mapping.routing.routes import ALL_CONNECTED
from mapping.service.answers.answer import Answer, Judgement
from mapping.service.answers.answering import judge as judge_case
from mapping.service.answers.answering import solve
from mapping.service.answers.case import Case, Search
from mapping.service.live import traffic
from registry.errors import InvalidValue, UnknownName
from registry.fabrics.fabrics import Snapshot
from registry.model import Allocation, Evaluation, HostOrder, Metrics, Placement
from registry.progress import Progress, silent
from registry.records.placements.placements import PlacementRecord
from registry.registry import Registry
from registry.version import code_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Search):
    """What is to be placed, where, and how long to search.

    Attributes
    ----------
    profile : str
        Name or id.
    job, cluster : str or None
        A job's hosts and slots; its cluster where two have a job of that id.
    hosts : tuple of str or None
        Instead of a job: hosts of `cluster`, in launch order.
    slots : int, tuple of int or None
        Ranks that each host takes; None: the job's, else 1.
    keep : str, HostOrder or None
        Present placement, saved (its id) or by hosts; without job and hosts its hosts are the allocation.
    background : tuple of (str, float or None)
        Saved placements of other jobs, and the seconds in which each sends its profile; None: in the
        same period as this one.
    running : bool
        Instead of `background`: the traffic of all other jobs that run at `at`.
    at : datetime or None
        On the fabric as of this time.
    """

    profile: str
    job: str | None = None
    cluster: str | None = None
    hosts: tuple[str, ...] | None = None
    slots: int | tuple[int, ...] | None = None
    keep: str | HostOrder | None = None
    background: tuple[tuple[str, float | None], ...] = ()
    running: bool = False
    at: datetime | None = None


def answer(registry: Registry, question: Question, progress: Progress = silent) -> Answer:
    """Find a placement, evaluate it beside its baselines, and save it.

    Ranks get cores on hosts whose layouts the registry knows, or the question gives.

    Raises
    ------
    UnknownName
        A profile, job, cluster, host, objective, routing or strategy that there is not.
    InfeasibleAllocation
        More ranks than slots.
    DisconnectedAllocation, UnreachablePair
    InvalidPlacement
        A pin or a present placement that does not fit.
    InvalidValue
        The job has no hosts yet, or the fabric lacks the tables that the routing needs.
    """
    case = case_of(registry, question)
    return save(registry, solve(case, _with_layouts(registry, question, case), progress))


def save(registry: Registry, found: Answer) -> Answer:
    """Save an answer; the same with its id."""
    case = found.case
    record = PlacementRecord(
        cluster=case.cluster,
        content=case.snapshot,
        routing=case.tables,
        profile=case.profile_id,
        job=case.job,
        placement=found.placement,
        evaluation=found.evaluation,
        in_order=Metrics.of(found.baseline),
        random=found.random,
        code_version=code_version(),
    )
    return replace(found, placement_id=registry.placements.save(record))


def subject_of(registry: Registry, cluster: str, at: datetime | None = None) -> Subject:
    """What `mapping.checks.catalog.check` looks at: a fabric, its tables, and its plan where there is one.

    Parameters
    ----------
    at : datetime, optional
        As of this time; the last observation unless told.

    Raises
    ------
    UnknownName
        No such cluster, or nothing seen of it until then.
    """
    fabric = registry.fabrics.read(cluster, at).fabric
    try:
        plan = registry.intended.read(cluster, at).wiring
    except UnknownName:
        plan = None
    return Subject(fabric=fabric, plan=plan)


def case_of(registry: Registry, question: Question) -> Case:
    """Read what a question is about.

    Raises
    ------
    UnknownName, InvalidValue, InvalidPlacement
    """
    stored = registry.profiles.read(question.profile)
    snapshot, allocation, job, present = _where(registry, question)
    return Case(
        profile=stored.profile,
        fabric=snapshot.fabric,
        allocation=allocation,
        present=present,
        background=_others(registry, question, snapshot, job),
        cluster=snapshot.cluster,
        snapshot=snapshot.id,
        tables=snapshot.routing,
        profile_id=stored.id,
        job=job,
    )


def judge(
    registry: Registry,
    profile: str,
    cluster: str,
    given: str | HostOrder,
    *,
    routing: str | None = None,
    rails: str = ALL_CONNECTED,
    at: datetime | None = None,
    search: Search | None = None,
    background: tuple[tuple[str, float | None], ...] = (),
) -> Judgement:
    """Evaluate a placement, saved (its id) or given by hosts, on a cluster as of a time; saves nothing.

    Parameters
    ----------
    search : Search, optional
        Instead of `routing` and `rails`: with a convention of distance, too.

    Raises
    ------
    UnknownName
    InvalidPlacement
        The placement has another number of ranks than the profile.
    DisconnectedAllocation, UnreachablePair
    """
    stored = registry.profiles.read(profile)
    snapshot = registry.fabrics.read(cluster, at)
    placement, name = placement_on(registry, given, snapshot)
    case = Case(
        profile=stored.profile,
        fabric=snapshot.fabric,
        allocation=placement.allocation,
        background=_background(registry, background, snapshot),
        cluster=snapshot.cluster,
        snapshot=snapshot.id,
        tables=snapshot.routing,
        profile_id=stored.id,
    )
    return judge_case(case, placement, name, search or Search(routing=routing, rails=rails))


def placement_on(registry: Registry, given: str | HostOrder, snapshot: Snapshot) -> tuple[Placement, str]:
    """A placement on the snapshot's fabric, and its name; a saved one is carried over by its hosts' names.

    Raises
    ------
    UnknownName
        No such placement, or a host that the fabric lacks.
    """
    fabric = snapshot.fabric
    if isinstance(given, HostOrder):
        return given.on(fabric), given.name or given.source
    stored = registry.placements.read(given)
    if stored.content == snapshot.id:
        return stored.placement, stored.id
    older = registry.fabrics.read_content(stored.content).fabric
    names = [older.names[host] for host in stored.placement.allocation.hosts]
    allocation = Allocation.of(fabric, names, stored.placement.allocation.slots)
    moved = replace(stored.placement, host_of_rank=fabric.vertices(stored.hosts), allocation=allocation)
    return moved, stored.id


def _with_layouts(registry: Registry, question: Question, case: Case) -> Question:
    """The question with the layouts of hosts that the registry knows; those of the question count first."""
    if ALL in question.layouts or not case.cluster:
        return question
    known = set(case.fabric.names)
    stored = {one.host: one.layout for one in registry.layouts.list(case.cluster, question.at)}
    stored = {host: layout for host, layout in stored.items() if host in known}
    return replace(question, layouts={**stored, **question.layouts}) if stored else question


def _where(
    registry: Registry, question: Question
) -> tuple[Snapshot, Allocation, str | None, Placement | None]:
    if question.job is not None:
        snapshot, allocation, job = _of_job(registry, question)
    elif question.cluster is None:
        raise InvalidValue("Question.hosts", "a job, or a cluster with hosts, is needed")
    else:
        snapshot, job = registry.fabrics.read(question.cluster, question.at), None
        slots = 1 if question.slots is None else question.slots
        if question.hosts:
            allocation = Allocation.of(snapshot.fabric, question.hosts, slots)
        elif question.keep is not None:
            allocation = placement_on(registry, question.keep, snapshot)[0].allocation
        else:
            raise InvalidValue("Question.hosts", "a job, or a cluster with hosts, is needed")
    present = None if question.keep is None else placement_on(registry, question.keep, snapshot)[0]
    return snapshot, allocation, job, present


def _of_job(registry: Registry, question: Question) -> tuple[Snapshot, Allocation, str]:
    assert question.job is not None
    stored = registry.jobs.read(question.job, question.cluster)
    if not stored.job.hosts:
        raise InvalidValue("Question.job", f"job {question.job!r} has no hosts: it is {stored.job.state}")
    snapshot = registry.fabrics.read(stored.cluster, question.at)
    given = stored.job.slots if question.slots is None else question.slots
    return snapshot, Allocation.of(snapshot.fabric, stored.job.hosts, given), stored.job.id


def _others(registry: Registry, question: Question, snapshot: Snapshot, job: str | None) -> Background | None:
    """The load of the placements that the question names, or of all other jobs that run.

    Raises
    ------
    UnknownName, InvalidValue
    """
    if not question.running:
        return _background(registry, question.background, snapshot)
    if question.background:
        raise InvalidValue("Question.running", "all running jobs are the background: name no other")
    live = traffic(registry, snapshot.cluster, question.at, routing=question.routing, rails=question.rails)
    if live.running.snapshot.id != snapshot.id:
        raise InvalidValue("Question.running", "the jobs run on another state of the fabric")
    return live.shared.background(job or "")


def _background(
    registry: Registry, others: tuple[tuple[str, float | None], ...], snapshot: Snapshot
) -> Background | None:
    """The load of saved placements, which must be of the same fabric.

    Raises
    ------
    InvalidValue
        One of another fabric, one that was not evaluated, or seconds for some and not for others.
    """
    if not others:
        return None
    found: list[Evaluation] = []
    for name, _ in others:
        stored = registry.placements.read(name)
        if stored.content != snapshot.id:
            raise InvalidValue(
                "Question.background", f"placement {stored.id} is on another state of the fabric"
            )
        if stored.evaluation is None:
            raise InvalidValue("Question.background", f"placement {stored.id} was not evaluated")
        found.append(stored.evaluation)
    seconds = [period for _, period in others if period is not None]
    if not seconds:
        return Background.added(found)
    if len(seconds) != len(others):
        raise InvalidValue("Question.background", "seconds are needed for all of the other jobs, or for none")
    return Background.reduced(found, np.asarray(seconds))
