"""Questions answered in memory: a case is placed or judged; nothing is read or saved."""

from __future__ import annotations

from dataclasses import replace

from mapping.placement.moves.moving import Curve, keep
from mapping.placement.partition.cores import Seating, layouts_on, with_cores
from mapping.placement.search.placing import place_in
from mapping.placement.search.posing import Setting
from mapping.placement.search.trading import pareto
from mapping.service.answers.answer import Answer, Judgement
from mapping.service.answers.case import Case, Posed, Search
from registry.errors import InvalidValue
from registry.model import Placement
from registry.progress import Progress, silent


def solve(case: Case, search: Search, progress: Progress = silent) -> Answer:
    """Find a placement; from the present one by moving few ranks, where there is one.

    Raises
    ------
    InfeasibleAllocation, InvalidPlacement, InvalidValue, UnknownName
    DisconnectedAllocation, UnreachablePair
    """
    case.allocation.require(case.profile.ranks)
    layouts_on(case.fabric, case.allocation, search.layouts)  # a wrong name is told before the search
    posed = case.posed(search)
    placement, curve = _placement(case, search, posed.setting, progress)
    (found,) = _answers(case, search, posed, (placement,))
    return replace(found, curve=curve)


def trade(case: Case, search: Search, progress: Progress = silent) -> tuple[Answer, ...]:
    """The Pareto set of congestion against hop-bytes.

    Raises
    ------
    As `solve`.
    """
    posed = case.posed(search)
    found = pareto(
        case.fabric,
        case.profile,
        case.allocation,
        setting=posed.setting,
        seconds=search.seconds,
        steps=search.steps,
        seed=search.seed,
        workers=search.workers,
        start=case.present,
        progress=progress,
    )
    return _answers(case, search, posed, found)


def _answers(
    case: Case, search: Search, posed: Posed, placements: tuple[Placement, ...]
) -> tuple[Answer, ...]:
    """Placements beside the baselines and bounds, all on the routes of the search."""
    judge = posed.judge
    baseline, random = judge.in_order(), judge.at_random()
    return tuple(
        Answer(
            case=case,
            routing_because=posed.because,
            placement=seated,
            evaluation=judge.evaluate(placement, bounds=True),
            baseline=baseline,
            random=random,
            seating=seating,
        )
        for placement in placements
        for seated, seating in (_seated(case, search, placement),)
    )


def _seated(case: Case, search: Search, placement: Placement) -> tuple[Placement, Seating | None]:
    """With cores where any layout is known."""
    if not search.layouts:
        return placement, None
    layouts = layouts_on(case.fabric, case.allocation, search.layouts)
    return with_cores(case.profile, placement, layouts)


def judge(case: Case, placement: Placement, name: str, search: Search) -> Judgement:
    """Evaluate a placement with bounds for the case's allocation.

    Raises
    ------
    As `solve`.
    """
    posed = case.posed(search)
    return Judgement(
        case=case,
        placement_name=name,
        routing_because=posed.because,
        placement=placement,
        evaluation=posed.judge.evaluate(placement, bounds=True),
    )


def _placement(
    case: Case, search: Search, setting: Setting, progress: Progress
) -> tuple[Placement, Curve | None]:
    if case.present is not None:
        if search.strategies is not None:
            raise InvalidValue("Search.strategies", "has no effect where a placement is kept")
        curve = _curve(case, search, setting, progress)
        point = curve.chosen() if search.moves is None else curve.within(search.moves)
        return point.placement, curve
    return search_in(case, search, setting, progress), None


def search_in(case: Case, search: Search, setting: Setting, progress: Progress = silent) -> Placement:
    """The best placement that is found; never worse than the present one, where there is one.

    Raises
    ------
    As `solve`.
    """
    return place_in(
        setting,
        case.fabric,
        case.profile,
        case.allocation,
        objective=search.objective,
        strategies=search.strategies,
        seconds=search.seconds,
        steps=search.steps,
        seed=search.seed,
        workers=search.workers,
        start=case.present,
        progress=progress,
    )


def present_curve(case: Case, search: Search, progress: Progress = silent) -> Curve:
    """Moved ranks against the objective, from the case's present placement.

    Raises
    ------
    InvalidValue
        The case has none.
    """
    return _curve(case, search, case.posed(search).setting, progress)


def _curve(case: Case, search: Search, setting: Setting, progress: Progress) -> Curve:
    if case.present is None:
        raise InvalidValue("Case.present", "a present placement is needed")
    return keep(
        case.fabric,
        case.profile,
        case.allocation,
        case.present,
        moves=search.moves,
        objective=search.objective,
        setting=setting,
        seconds=search.seconds,
        steps=search.steps,
        seed=search.seed,
        workers=search.workers,
        progress=progress,
    )
