"""Judge what is stored after a disturbed command, and after the command is repeated."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.faults.commands import Case, Outcome, run

LOG = "IngestRun"
"""Label of the log of ingests: it records every try."""
CHANGING = {"at", "as_of", "created_at", "recorded_at", "seconds", "wall_seconds", "seq"}
"""Properties that differ between two runs of a command."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Counts of equal lines of a backup, by their hash, without the log and without times of writing."""

    lines: Counter[str]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stored) and self.lines == other.lines


def stored(variables: Mapping[str, str], work: Path) -> Stored:
    """Return what is stored, from a backup.

    Raises:
        RuntimeError: The backup fails.
    """
    target = work / "stored"
    target.unlink(missing_ok=True)
    outcome = run(["db", "backup", str(target)], variables, work)
    if outcome.code:
        raise RuntimeError(outcome.said)
    return Stored(lines_of(target))


def lines_of(path: Path) -> Counter[str]:
    """Return the counted lines of a backup."""
    section, lines = "", Counter[str]()
    with gzip.open(path, "rt", encoding="utf-8") as file:
        next(file)
        for line in file:
            value: Any = json.loads(line)
            if isinstance(value, dict) and set(value) <= {"section", "end"}:
                section = value.get("section", "")
            elif LOG not in section.replace("-", ">").split(">"):
                plain = (
                    {k: v for k, v in value.items() if k not in CHANGING}
                    if isinstance(value, dict)
                    else value
                )
                text = json.dumps([section, plain], sort_keys=True)
                lines[hashlib.sha256(text.encode()).hexdigest()] += 1
    return lines


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """A command without faults: what is stored before and after, and how long it takes."""

    before: Stored
    after: Stored
    seconds: float


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial found."""

    case: str
    code: int
    left: str
    faults: tuple[str, ...]
    """else"""


def undisturbed(case: Case, variables: Mapping[str, str], files: Path, work: Path) -> Undisturbed:
    """Run a command without faults.

    Raises:
        RuntimeError: It fails.
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
