"""Rules for what is kept of a history: all, one of each day or week, the newest, or nothing after an age.

A rule is one step or several, as in ``daily after 30 days, weekly after 365 days``. The last step
whose age is reached counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from registry.errors import InvalidValue

ALL, DAILY, WEEKLY, NONE, NEWEST = "all", "daily", "weekly", "none", "newest"
_STEP = re.compile(r"(?:(all|daily|weekly|none)|newest (\d{1,9}))(?: after (\d{1,6}) days?)?")
EXAMPLE = "all, newest 1000, daily after 30 days, none after 400 days"


class Step(NamedTuple):
    """A part of a rule."""

    keep: str
    """`ALL`, `DAILY`, `WEEKLY`, `NONE` or `NEWEST`."""
    after: timedelta
    """Age from which it counts."""
    number: int = 0
    """How many are kept by `NEWEST`."""


class Item(NamedTuple):
    """One item of a history."""

    id: str
    at: datetime
    group: tuple[str, ...] = ()
    """Only items of the same group replace each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """A rule; see the module."""

    steps: tuple[Step, ...] = ()
    """By age, ascending."""

    @classmethod
    def parse(cls, text: str) -> Keep:
        """Return the rule of a text.

        Raises:
            InvalidValue
        """
        steps = []
        for part in text.lower().split(","):
            found = _STEP.fullmatch(" ".join(part.split()))
            if found is None:
                raise InvalidValue("rule", f"{part.strip()!r} is not a rule such as {EXAMPLE}")
            word, count, days = found.groups()
            steps.append(Step(word or NEWEST, timedelta(days=int(days or 0)), int(count or 0)))
        if any(step.keep == NEWEST for step in steps) and len(steps) > 1:
            raise InvalidValue("rule", "'newest N' is a rule of its own: no other step goes with it")
        if any(step.keep == NEWEST and step.after for step in steps):
            raise InvalidValue("rule", "'newest N' counts from the newest: it goes with no age")
        ages = [step.after for step in steps]
        if ages != sorted(set(ages)):
            raise InvalidValue("rule", f"{text!r}: the ages of its steps must ascend")
        return cls(steps=tuple(steps))

    @property
    def keeps_all(self) -> bool:
        """True if nothing is ever deleted."""
        return all(step.keep == ALL for step in self.steps)

    def delete(self, items: Iterable[Item], now: datetime) -> set[str]:
        """Return the ids of the items that the rule does not keep; the newest of each group is kept.

        Ages are counted from `now`, or from the newest item if that is earlier, so that a wrong clock or a
        cluster that is switched off deletes nothing.
        """
        ordered = sorted(items, key=lambda item: item.at, reverse=True)
        if not ordered or self.keeps_all:
            return set()
        reference = min(now, ordered[0].at)
        groups: dict[tuple[str, ...], list[Item]] = {}
        for item in ordered:
            groups.setdefault(item.group, []).append(item)
        return {item.id for group in groups.values() for item in self._superfluous(group, reference)}

    def _superfluous(self, group: Sequence[Item], reference: datetime) -> list[Item]:
        """Return the items of a group that are not kept; the group is sorted, the newest first."""
        if self.steps[0].keep == NEWEST:
            return list(group[max(self.steps[0].number, 1) :])
        taken: set[tuple[int, ...]] = set()
        gone = []
        for index, item in enumerate(group):
            steps = [step.keep for step in self.steps if reference - item.at >= step.after]
            keep = steps[-1] if steps else ALL
            period = _period(keep, item.at)
            if index and (keep == NONE or period in taken):
                gone.append(item)
            if period:
                taken.add(period)
        return gone


def _period(keep: str, at: datetime) -> tuple[int, ...]:
    """Return the day or the week of a time, UTC; nothing if each item is kept or none."""
    if keep == DAILY:
        return at.year, at.month, at.day
    return tuple(at.isocalendar())[:2] if keep == WEEKLY else ()
