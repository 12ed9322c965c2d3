"""The checks of a fabric: one line each.

Each is a function that takes a `Subject` and yields findings; none if the subject lacks what the check needs
(forwarding tables, ports, intended wiring).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mapping.checks.finding import Finding, Severity, Subject
from registry.catalog import Catalog, Entry, PlugIns
from registry.errors import shorten
from registry.progress import Progress, silent


def _check(name: str, function: str, about: str) -> Entry:
    return Entry(name=name, target=f"mapping.checks.{function}", about=about)


CHECKS = Catalog(
    "check",
    (
        _check("vanished", "vanished:find", "switches, hosts and cables that earlier scans showed"),
        _check(
            "slow-links",
            "slow_links:find",
            "cables slower than both of their ends allow, or than nearly all similar cables",
        ),
        _check("link-errors", "link_errors:find", "ports whose error counters grow beyond their limits"),
        _check("flapping-links", "flapping_links:find", "cables that went down several times in a day"),
        _check("down-ports", "down_ports:find", "ports without a working link, if the source lists them"),
        _check(
            "rails",
            "cable_counts:find_rails",
            "hosts with fewer working cables than most hosts of their kind",
        ),
        _check(
            "uplinks",
            "cable_counts:find_uplinks",
            "leaf switches with fewer cables to other switches than nearly all have",
        ),
        _check(
            "wiring",
            "wiring.findings:find",
            "cables that are missing, unexpected, in a wrong port or at a wrong speed by the intended wiring",
        ),
        _check("identities", "identities:find", "names, GUIDs or LIDs that several devices share"),
        _check(
            "reachability",
            "forwarding_tables:find_unreachable",
            "broken routes of the forwarding tables: no entry, a wrong port, or a loop",
        ),
        _check(
            "credit-loops",
            "forwarding_tables:find_credit_loops",
            "cables that may wait for each other in a cycle (deadlock)",
        ),
    ),
    PlugIns(group="checks", entry=Entry),
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
        findings += [replace(finding, check=one.name) for finding in _findings(one, subject)]
    progress("checking", len(chosen), len(chosen))
    return tuple(sorted(findings, key=lambda finding: -finding.severity))


def _findings(entry: Entry, subject: Subject) -> list[Finding]:
    """Return what a check finds; of a plug-in that fails its error."""
    try:
        return list(entry.load()(subject))
    except Exception as error:
        if not entry.package:
            raise
        text = f"the check {entry.name} of {entry.package} failed: {type(error).__name__}: {error}"
        return [Finding(Severity.WARNING, entry.name, shorten(text))]


def worst(findings: Sequence[Finding]) -> Severity | None:
    """Return the highest severity, or None if there are no findings."""
    return max((finding.severity for finding in findings), default=None)
