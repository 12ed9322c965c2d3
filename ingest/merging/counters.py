"""Sweeps of counters and plans of wiring, from all sources of one call."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from registry.errors import InputError
from registry.model import CounterSweep, IntendedWiring

SAME_SWEEP = timedelta(minutes=1)
"""Files that are so close in time and tell different counters are one sweep."""


def join_sweeps(sweeps: Sequence[CounterSweep | None]) -> tuple[CounterSweep, ...]:
    """The sweeps in order of time; those that complete each other made one.

    Tools print traffic and errors apart, port by port: such files are one sweep. Two that tell the same
    counter of a port are two sweeps, however close they are.
    """
    found: list[CounterSweep] = []
    for sweep in sorted((one for one in sweeps if one is not None), key=lambda one: one.at):
        joined = found[-1].joined(sweep) if found and sweep.at - found[-1].at <= SAME_SWEEP else None
        if joined is None:
            found.append(sweep)
        else:
            found[-1] = joined
    return tuple(found)


def only_plan(plans: Sequence[tuple[str, IntendedWiring | None]]) -> IntendedWiring | None:
    """The one plan of all sources, given with their paths; None where there is none.

    Raises
    ------
    InputError
        There are two.
    """
    found = [(path, plan) for path, plan in plans if plan is not None]
    if len(found) > 1:
        reason = f"two plans of wiring in one call, the other from {found[0][0]}: ingest them one by one"
        raise InputError(reason, path=found[1][0])
    return found[0][1] if found else None
