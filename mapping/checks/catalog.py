"""The checks of a fabric: one line each.

Each is a function that takes a `Subject` and yields findings; none if the subject lacks what the check needs
(forwarding tables, ports, intended wiring).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mapping.checks.finding import Finding, Severity, Subject
from registry.catalog import Catalog, Entry
from registry.progress import Progress, silent

CHECKS = Catalog(
    "check",
    (
        Entry(
            name="slow-links",
            target="mapping.checks.slow_links:find",
            about="cables slower than both of their ends allow, or than nearly all similar cables",
        ),
        Entry(
            name="down-ports",
            target="mapping.checks.down_ports:find",
            about="ports without a working link, if the source lists them",
        ),
        Entry(
            name="rails",
            target="mapping.checks.cable_counts:find_rails",
            about="hosts with fewer working cables than most hosts of their kind",
        ),
        Entry(
            name="uplinks",
            target="mapping.checks.cable_counts:find_uplinks",
            about="leaf switches with fewer cables to other switches than nearly all have",
        ),
        Entry(
            name="wiring",
            target="mapping.checks.wiring:find",
            about="cables that are missing, extra, swapped or in the wrong port against the intended wiring",
        ),
        Entry(
            name="identities",
            target="mapping.checks.identities:find",
            about="names, GUIDs or LIDs that several devices share",
        ),
        Entry(
            name="reachability",
            target="mapping.checks.forwarding_tables:find_unreachable",
            about="paths of the forwarding tables that do not arrive, or loop",
        ),
        Entry(
            name="credit-loops",
            target="mapping.checks.forwarding_tables:find_credit_loops",
            about="cables that may wait for each other in a cycle (deadlock)",
        ),
    ),
)
"""All checks."""


def check(
    subject: Subject, names: Sequence[str] | None = None, progress: Progress = silent
) -> tuple[Finding, ...]:
    """Run checks and return their findings, worst first, then in the order of the catalog.

    Parameters
    ----------
    names : sequence of str, optional
        Checks to run; default: all. An unknown one raises `UnknownName`.
    """
    chosen = [CHECKS.find(name) for name in names] if names else list(CHECKS)
    findings: list[Finding] = []
    for done, one in enumerate(chosen):
        progress(f"checking {one.name}", done, len(chosen))
        findings += [replace(finding, check=one.name) for finding in one.load()(subject)]
    progress("checking", len(chosen), len(chosen))
    return tuple(sorted(findings, key=lambda finding: -finding.severity))


def worst(findings: Sequence[Finding]) -> Severity | None:
    """Return the highest severity, or None if there are no findings."""
    return max((finding.severity for finding in findings), default=None)
