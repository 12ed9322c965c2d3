"""Judge what is stored after a disturbed command, and after the command is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.faults.commands import Case, Outcome, run
from bench.faults.stored import Stored, stored


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """A command without faults: what is stored before and after, and how long it takes."""

    before: Stored
    after: Stored
    seconds: float


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial found.

    Attributes
    ----------
    case : name of the command
    code : exit code of the disturbed command; negative: the signal that ended it
    left : what was stored after the fault: ``before``, ``after`` or ``part``
    faults : what is wrong: a traceback, a half stored result, a repetition that fails or stores something
        else
    """

    case: str
    code: int
    left: str
    faults: tuple[str, ...]


def undisturbed(case: Case, variables: Mapping[str, str], files: Path, work: Path) -> Undisturbed:
    """Run a command without faults.

    Raises
    ------
    RuntimeError
        It fails.
    """
    before = stored(variables, work)
    outcome = run(case.words(files, work), variables, work)
    if outcome.code:
        raise RuntimeError(outcome.said)
    return Undisturbed(before, stored(variables, work), outcome.seconds)


def judge(
    case: Case, plain: Undisturbed, outcome: Outcome, variables: Mapping[str, str], files: Path, work: Path
) -> Trial:
    """Compare what is stored after a fault, and after a repetition, with the undisturbed command."""
    faults = ["traceback"] if outcome.crashed else []
    now = stored(variables, work)
    left = "before" if now == plain.before else "after" if now == plain.after else "part"
    if left == "part" and case.whole:
        faults.append("half stored")
    if left == "before" and outcome.code == 0 and not outcome.unsaved and plain.before != plain.after:
        faults.append("lost, with exit code 0")
    faults += _verify(variables, work)
    again = run(case.words(files, work), variables, work)
    gone = left == "after" and again.code == 1  # what is deleted already cannot be deleted again
    if again.crashed or (again.code and not gone):
        faults.append(f"repeated: exit code {again.code}: {again.said[-200:]}")
    if stored(variables, work) != plain.after:
        faults.append("repeated: something else is stored")
    return Trial(case.name, outcome.code, left, tuple(faults))


def _verify(variables: Mapping[str, str], work: Path) -> list[str]:
    outcome = run(["db", "verify"], variables, work)
    return [f"db verify: {outcome.said[-200:]}"] if outcome.code else []
