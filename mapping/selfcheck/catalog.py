"""The checks of the program itself: one line and one file each, with ``compare(subject)``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mapping.selfcheck.comparison import Comparison, Subject
from registry.catalog import Catalog, Entry
from registry.model import Fabric
from registry.progress import Progress, silent

SELF_CHECKS = Catalog(
    "self-check",
    (
        Entry(
            name="paths",
            target="mapping.selfcheck.paths:compare",
            about="loads of links, by the forwarding tables or all shortest paths, against enumerated paths",
        ),
        Entry(
            name="bytes",
            target="mapping.selfcheck.bytes_on_links:compare",
            about="bytes that enter every device against those that leave it",
        ),
        Entry(
            name="resistances",
            target="mapping.selfcheck.resistances:compare",
            about="equivalent distances against the resistance distances of networkx",
        ),
        Entry(
            name="small-optima",
            target="mapping.selfcheck.small_optima:compare",
            about="searches and lower bounds of small cases against all placements",
        ),
        Entry(
            name="waiting-times",
            target="mapping.selfcheck.waiting_times:compare",
            about="the simulator's M/D/1 queue against Lindley's recursion",
        ),
    ),
)
"""All checks."""


def run(
    fabric: Fabric,
    names: Sequence[str] = (),
    *,
    seconds: float = 40.0,
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[tuple[Entry, Comparison]]:
    """Run checks, each with an equal part of the time, and yield each with its result.

    Parameters
    ----------
    names : sequence of str
        Checks to run; default: all.
    seconds : float
        Time after which no comparison is started, without the first compilation of kernels.
    seed : int
        Seed by which hosts and traffic are drawn.

    Raises
    ------
    UnknownName
        There is no such check.
    """
    chosen = [SELF_CHECKS.find(name) for name in names] or list(SELF_CHECKS)
    for done, entry in enumerate(chosen):
        progress(f"checking {entry.name}", done, len(chosen))
        generator = np.random.default_rng(seed)
        subject = Subject(fabric=fabric, seconds=seconds / len(chosen), generator=generator)
        yield entry, entry.load()(subject)
    progress("checking", len(chosen), len(chosen))
