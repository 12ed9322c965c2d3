"""When facts were true: maximal validity intervals, from observations or edited by one more.

An observation at time *t* says which facts hold from *t* until the next observation. A fact's
intervals are the maximal half-open runs ``[start, end)`` of observations that agree on it; the last
one is open (`FOREVER`). Of two observations of one moment the later arrived counts.

`intervals` makes them from all observations. `edits` tells what one observation changes, wherever
it falls in time: only facts in which it differs from its predecessor, and only between the two
observations around it. Both give the same intervals, whatever the order of arrival.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, NamedTuple, TypeVar

from registry.errors import InconsistentGraph

FOREVER = datetime(9999, 12, 31, tzinfo=UTC)
"""End of an interval that is still open."""

Fact = TypeVar("Fact", bound=Hashable)


class Interval(NamedTuple):
    """Half-open, UTC."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits(Generic[Fact]):
    """What to do to stored intervals; an interval is named by its fact and its start.

    Attributes
    ----------
    removed : list of (fact, interval)
    moved : list of (fact, interval)
        Stored intervals that get a new end, given with that end.
    opened : list of (fact, interval)
    """

    removed: list[tuple[Fact, Interval]]
    moved: list[tuple[Fact, Interval]]
    opened: list[tuple[Fact, Interval]]


def intervals(observations: Iterable[tuple[datetime, Collection[Fact]]]) -> dict[Fact, list[Interval]]:
    """Intervals of each fact, ascending.

    Parameters
    ----------
    observations : iterable of (datetime, collection of facts)
        By time, those of one moment by arrival.
    """
    lasting = dict(observations)  # of one moment, the last
    found: dict[Fact, list[Interval]] = {}
    since: dict[Fact, datetime] = {}
    for at, facts in lasting.items():
        present = set(facts)
        for fact in [fact for fact in since if fact not in present]:
            found.setdefault(fact, []).append(Interval(since.pop(fact), at))
        for fact in present:
            since.setdefault(fact, at)
    for fact, start in since.items():
        found.setdefault(fact, []).append(Interval(start, FOREVER))
    return found


def edits(
    before: Collection[Fact],
    after: Collection[Fact],
    at: datetime,
    until: datetime,
    touching: Mapping[Fact, Sequence[Interval]],
) -> Edits[Fact]:
    """What an observation changes.

    Parameters
    ----------
    before : collection of facts
        Those of the observation before it: the last one at or before `at`; empty where it is the first.
    after : collection of facts
        Those it saw.
    at, until : datetime
        Its time, and that of the next later observation; `FOREVER` where there is none.
    touching : mapping of fact to intervals
        Stored intervals that overlap or touch ``[at, until]``, of the facts in which the two differ.

    Raises
    ------
    InconsistentGraph
        The stored intervals contradict the observations.
    """
    old, new = set(before), set(after)
    result: Edits[Fact] = Edits(removed=[], moved=[], opened=[])
    if at == until:
        return result
    for fact in before:
        if fact not in new:
            _take_out(result, fact, at, until, touching.get(fact, ()))
    for fact in after:
        if fact not in old:
            _put_in(result, fact, at, until, touching.get(fact, ()))
    return result


def _take_out(
    result: Edits[Fact], fact: Fact, at: datetime, until: datetime, stored: Sequence[Interval]
) -> None:
    whole = next((span for span in stored if span.start <= at and until <= span.end), None)
    if whole is None:
        raise InconsistentGraph(f"the graph tells nothing of {fact} at {at.isoformat()}: it must be rebuilt")
    if whole.start < at:
        result.moved.append((fact, Interval(whole.start, at)))
    else:
        result.removed.append((fact, whole))
    if until < whole.end:
        result.opened.append((fact, Interval(until, whole.end)))


def _put_in(
    result: Edits[Fact], fact: Fact, at: datetime, until: datetime, stored: Sequence[Interval]
) -> None:
    left = next((span for span in stored if span.end == at), None)
    right = next((span for span in stored if span.start == until), None)
    end = until if right is None else right.end
    if right is not None:
        result.removed.append((fact, right))
    if left is not None:
        result.moved.append((fact, Interval(left.start, end)))
    else:
        result.opened.append((fact, Interval(at, end)))
