"""What a registry stores, as lines that two runs of the same command have in common."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.faults.commands import run

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

    Raises
    ------
    RuntimeError
        The backup fails.
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
