"""One format fuzzed in a process of its own, within limits of time and memory, and without writing a file."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.fuzz.cases import Case, beginnings, check, damage, extreme, keep, name_of, where
from tests.fuzz.fence import Coverage, Fence, TooSlow, Wrote
from tests.fuzz.mutations import HUGE
from tests.fuzz.samples import of_format

MOST_FAILURES = 20
"""Different failures of a format that are kept; then its run ends."""
COSTLY = 0.04
"""Share of the cases of 10 MB and the like."""
CORPUS = 400
"""Cases that reached new lines and are damaged further, the newest ones."""


class Task(NamedTuple):
    """What a worker does."""

    format: str
    seed: int
    mutants: int
    """Cases at most; 0: as many as there is time for."""
    seconds: float
    """Wall-clock time at most."""
    guided: bool
    """Damage further what reached new lines, and begin with the costly cases."""
    folder: Path
    """Where failures are kept, and the case that the worker is at, should it end there."""

    @property
    def current(self) -> Path:
        """File of the case that the worker is at, pickled, as it is written for each of them."""
        return self.folder / ".current"


class Failure(NamedTuple):
    """What went wrong, and the folder that holds the case."""

    what: str
    place: Path


class Outcome(NamedTuple):
    """What became of a task: cases in all and read, and lines of `ingest` reached where it was guided."""

    format: str
    cases: int
    read: int
    lines: int
    failures: tuple[Failure, ...]


def work(task: Task) -> Outcome:
    """Fuzz one format, of which there must be a sample; the process is of no other use afterwards."""
    corpus = beginnings(task.format)
    originals = len(corpus)
    if not corpus:
        raise LookupError(
            f"no sample of {task.format}: keep a file below tests/data, or tests/fuzz/samples.py"
        )
    random = Random(f"{task.seed} {task.format}")
    coverage, failures = Coverage(), dict[str, Failure]()
    until, cases, read, lines = time.monotonic() + task.seconds, 0, 0, 0
    fence = Fence()
    for case in _cases(task, random, corpus):
        if time.monotonic() > until or len(failures) >= MOST_FAILURES or 0 < task.mutants <= cases:
            break
        cases += 1
        task.current.write_bytes(pickle.dumps(case))
        small = sum(len(item.data) for item in case.files) < HUGE // 2  # tracing a large one takes its time
        try:
            with fence, coverage if task.guided and small else nullcontext():
                read += check(case, everybody=cases % 16 == 1 or len(case.files[0].data) >= HUGE)
        except (Exception, TooSlow, Wrote) as error:  # whatever it is, it is what is looked for
            place = where(error)
            if place not in failures:
                failures[place] = _kept(case, task.folder, f"{place}: {str(error)[:300]}")
        lines += coverage.new if small else 0
        if coverage.new and cases > originals and small:
            corpus[originals:] = [*corpus[originals:], case][-CORPUS:]
    fence.close()
    return Outcome(task.format, cases, read, lines, tuple(failures.values()))


def _kept(case: Case, folder: Path, what: str) -> Failure:
    place = folder / name_of(case)
    keep(case, place, what)
    return Failure(what, place)


def _cases(task: Task, random: Random, corpus: list[Case]) -> Iterator[Case]:
    """The samples as they are, then damaged ones for ever; where there is time, now and then a costly one."""
    samples, originals = of_format(task.format), list(corpus)
    yield from originals
    while True:
        if task.guided and random.random() < COSTLY:
            yield extreme(random, task.format, samples)
        # Half of them from the samples: what was found last is not all that is worth damaging.
        chosen = random.choice(corpus if random.random() < 0.5 else originals)
        yield damage(random, chosen, samples)
