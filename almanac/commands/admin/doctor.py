"""``almanac doctor``: check the installation, the database and its data."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import click

from almanac.options.common import json_option, open_registry
from almanac.output.printing import print_json, print_table
from almanac.settings import load_settings

if TYPE_CHECKING:
    from registry.registry import Registry

STALE_DAYS = 7.0
"""A fabric that was not seen for so long is reported as stale."""


class Finding(NamedTuple):
    """One check: its name, ``ok``, ``warning`` or ``failed``, and what was seen."""

    check: str
    state: str
    seen: str


@click.command("doctor")
@json_option
def command(as_json: bool) -> None:
    """Check the installation, the database and its data; exit 1 where a check failed."""
    findings = [_python(), *_packages(), _settings()]
    with open_registry() as registry:
        findings += [*_database(registry), *_data(registry)]
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        print_table("", list(Finding._fields), findings)
    if any(finding.state == "failed" for finding in findings):
        click.get_current_context().exit(1)


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", "ok" if sys.version_info >= (3, 11) else "failed", found)


def _packages() -> Iterator[Finding]:
    """The driver and its compiled half must be of one version; py2neo is optional."""
    from importlib.metadata import PackageNotFoundError, version

    driver, rust = version("neo4j"), version("neo4j-rust-ext")
    same = rust.startswith(driver)
    yield Finding("neo4j driver", "ok" if same else "warning", f"{driver}, neo4j-rust-ext {rust}")
    try:
        yield Finding("py2neo (optional)", "ok", version("py2neo"))
    except PackageNotFoundError:
        yield Finding("py2neo (optional)", "ok", "not installed: pip install 'fabric-almanac[py2neo]'")


def _settings() -> Finding:
    settings = load_settings(click.get_current_context().find_root().obj)
    return Finding("settings", "ok", f"database {settings.db or 'embedded'}, data in {settings.home}")


def _database(registry: Registry) -> Iterator[Finding]:
    from registry.database.schema import current_version

    database = registry.database
    answer = _timed(lambda: current_version(database))
    yield Finding("database", "ok", f"{database.kind} at {database.uri}, answers in {answer * 1e3:.1f} ms")
    yield Finding("schema", "ok", f"version {current_version(database)}")


def _data(registry: Registry) -> Iterator[Finding]:
    """Each cluster's age and the state of its routes."""
    from mapping.routing.catalog import choose_routing

    clusters = registry.fabrics.clusters()
    if not clusters:
        yield Finding("clusters", "warning", "none: almanac ingest --cluster NAME FILE..., or almanac demo")
    for info in clusters:
        age = (datetime.now(UTC) - info.last_observed_at).total_seconds() / 86400
        state = "ok" if age <= STALE_DAYS else "warning"
        yield Finding(f"cluster {info.name}", state, f"last seen {age:.1f} days ago")
        snapshot = registry.fabrics.read(info.name)
        name, why = choose_routing(snapshot.fabric)
        state = "warning" if snapshot.fabric.tables is not None and name != "tables" else "ok"
        yield Finding(f"routes of {info.name}", state, f"{name}: {why}")
    yield from _sources(registry)
    yield Finding("profiles", "ok", str(len(registry.profiles.list())))
    yield Finding("placements", "ok", str(registry.placements.count()))


def _sources(registry: Registry) -> Iterator[Finding]:
    """Age of the last good ingest of each source, and whether its last one failed."""
    from registry.ingest_runs.freshness import FRESH, freshness

    now = datetime.now(UTC)
    for source in registry.runs.sources():
        name = f"source {source.cluster or '-'} {source.format or 'of no known format'}"
        state, words = freshness(source, now)
        yield Finding(name, "ok" if state == FRESH else "warning", words)


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
