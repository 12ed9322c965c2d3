"""The checks of a fabric: one line a check, one file each.

Its module offers ``find(subject) -> Iterator[Finding]`` and is imported when it is needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from mapping.checks.finding import Finding, Severity, Subject
from registry.errors import UnknownName
from registry.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the catalog.

    Attributes
    ----------
    name, module, about : str
    """

    name: str
    module: str
    about: str


CHECKS: tuple[Check, ...] = (
    Check(
        name="slow-links",
        module="mapping.checks.slow_links",
        about="cables slower than both ends could be, or than nearly all cables like them",
    ),
    Check(
        name="down-ports",
        module="mapping.checks.down_ports",
        about="ports without a working link, where the source lists them",
    ),
    Check(
        name="rails",
        module="mapping.checks.rails",
        about="hosts with fewer cables up than most of their kind",
    ),
    Check(
        name="uplinks",
        module="mapping.checks.uplinks",
        about="leaf switches with fewer cables to other switches than nearly all have",
    ),
    Check(
        name="wiring",
        module="mapping.checks.wiring",
        about="cables that are missing, extra, swapped or in the wrong port against the intended wiring",
    ),
    Check(
        name="identities",
        module="mapping.checks.identities",
        about="names, GUIDs or LIDs that several devices have",
    ),
    Check(
        name="reachability",
        module="mapping.checks.reachability",
        about="ways along the forwarding tables that do not arrive, or loop",
    ),
    Check(
        name="credit-loops",
        module="mapping.checks.credit_loops",
        about="cables that may wait for each other in a circle",
    ),
)


def check(
    subject: Subject, names: Sequence[str] | None = None, progress: Progress = silent
) -> tuple[Finding, ...]:
    """Everything that the checks find, worst first, then in the order of the catalog.

    Parameters
    ----------
    subject : Subject
    names : sequence of str, optional
        Checks to run; all unless told.

    Raises
    ------
    UnknownName
    """
    known = {one.name: one for one in CHECKS}
    for name in names or ():
        if name not in known:
            raise UnknownName("check", name, known)
    chosen = [known[name] for name in names] if names else list(CHECKS)
    found: list[Finding] = []
    for done, one in enumerate(chosen):
        progress(f"checking {one.name}", done, len(chosen))
        found += _finder(one)(subject)
    progress("checking", len(chosen), len(chosen))
    return tuple(sorted(found, key=lambda finding: -finding.severity))


def worst(findings: Sequence[Finding]) -> Severity | None:
    """The highest severity; None of nothing."""
    return max((finding.severity for finding in findings), default=None)


def _finder(one: Check) -> Callable[[Subject], Iterator[Finding]]:
    return cast(Callable[[Subject], Iterator[Finding]], importlib.import_module(one.module).find)
