"""``almanac doctor``, ``metrics`` and ``config``: state of the installation and of the data.

``almanac selfcheck``: compare fast computations with slow and simple ones on this machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import click

from almanac.commands.cluster import EXIT_PROBLEMS
from almanac.options import (
    current_settings,
    current_spool,
    json_option,
    open_registry,
    require_cluster,
    seed_option,
    top_option,
)
from almanac.output.printing import label, note, print_json, print_table, progress_bars, write_text
from almanac.output.stored_data import self_check_to_json

if TYPE_CHECKING:
    from mapping.selfcheck.oracles import Comparison
    from registry.model import Fabric
    from registry.registry import Registry


LOW_BYTES = 2e9
"""Free space on the disk of the embedded server below which there is a warning."""
LARGE_BYTES = 1e9
"""Size of the embedded server's files above which much more than the data's is a warning."""


FILES = "files of the database"
"""Check of the embedded server's files; listed only if some are damaged."""


class Check(NamedTuple):
    """A check: its name, ``ok``, ``warning`` or ``failed``, and what was found."""

    check: str
    state: str
    seen: str


@click.command("doctor")
@click.option(
    "--launchers",
    is_flag=True,
    help="Inside a job: start each launcher that is installed, and compare where its ranks run with a random "
    "order; `almanac run` then knows.",
)
@click.option("--cluster", help="Cluster of the job (default: that of the environment, or the only one).")
@click.option(
    "--warm", is_flag=True, help="Compile all kernels now, on all cores, so that no later command has to."
)
@json_option
def doctor(as_json: bool, launchers: bool, cluster: str | None, warm: bool) -> None:
    """Check the installation, the database and its data.

    Exit with 1 if a check failed, with 3 if no database answers.
    """
    from almanac.cli import EXIT_FAILED, EXIT_UNREACHABLE
    from registry.errors import DatabaseError, DatabaseUnavailable

    if cluster and not launchers:
        raise click.UsageError("--cluster is for --launchers")
    if warm and launchers:
        raise click.UsageError("give either --warm or --launchers")
    if warm or launchers:
        if cluster:
            with open_registry() as registry:
                require_cluster(registry, cluster)
        checks = [_kernels()] if warm else list(_launchers(cluster))
        _print_checks(checks, as_json)
        if any(check.state == "failed" for check in checks):
            click.get_current_context().exit(EXIT_FAILED)
        return
    checks, unreachable = [_python(), *_packages(), *_plug_ins(), _settings(), _spool()], False
    try:
        with open_registry() as registry:
            checks += _database(registry)
            checks += [*_files(), *_records(registry), *_data(registry)]
    except DatabaseError as error:
        checks.append(Check("database", "failed", str(error)))
        unreachable = isinstance(error, DatabaseUnavailable)
        if not any(check.check == FILES for check in checks):
            checks += _files()
    _print_checks(checks, as_json)
    if any(check.state == "failed" for check in checks):
        click.get_current_context().exit(EXIT_UNREACHABLE if unreachable else EXIT_FAILED)


def _print_checks(checks: list[Check], as_json: bool) -> None:
    if as_json:
        print_json([check._asdict() for check in checks])
    else:
        print_table("", [label(name) for name in Check._fields], checks)


def _kernels() -> Check:
    """Compile all kernels."""
    from almanac.output.printing import progress_bars
    from almanac.precompile import PARTS, warm

    with progress_bars() as progress:
        failed = warm(progress)
    if failed:
        return Check("kernels", "failed", f"not all compiled: {', '.join(failed)}")
    return Check("kernels", "ok", f"compiled: {', '.join(part.__name__ for part in PARTS)}")


def _launchers(cluster: str | None) -> Iterator[Check]:
    """Try each launcher on the hosts of the present job, and store what was seen."""
    from almanac.job_environment import read_environment
    from almanac.running.checks import check_launchers, measured_check
    from almanac.running.order import FOLDER, cluster_of
    from registry.errors import AlmanacError, ConfigError

    try:
        job = read_environment()
    except ConfigError:
        yield Check("job", "failed", "no job is found in the environment: start this command inside one")
        return
    for check in check_launchers(job, current_settings().home / FOLDER):
        if isinstance(check.found, str):
            yield Check(check.launcher, "warning", f"not tried: {check.found}")
            continue
        wrong = check.found.misplaced
        seen = f"{len(wrong)} ranks elsewhere: {wrong[0]}" if wrong else "each rank ran where it should"
        yield Check(check.launcher, "failed" if wrong else "ok", f"{seen}, says {check.found.by}")
        try:
            with open_registry() as registry:
                measured = measured_check(check, job, cluster_of(registry, cluster, job))
                if measured is not None:
                    registry.measured_runs.save(measured)
        except AlmanacError as error:
            yield Check(check.launcher, "warning", f"not stored: {error}")


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    return Check("python", "ok" if sys.version_info >= (3, 11) else "failed", found)


def _packages() -> Iterator[Check]:
    """Check that the driver and its compiled part have the same version; list the optional parts."""
    from importlib.metadata import version

    from registry.installation import install_command, optional_parts, origin
    from registry.units import code_version

    yield Check("program", "ok", f"{code_version()} from {origin()}")
    driver, rust = version("neo4j"), version("neo4j-rust-ext")
    same = rust.startswith(driver)
    yield Check("neo4j driver", "ok" if same else "warning", f"{driver}, neo4j-rust-ext {rust}")
    for extra, packages in optional_parts():
        found = ", ".join(f"{name} {number}" for name, number in packages.items())
        seen = f"not installed: {install_command(extra)}" if None in packages.values() else found
        yield Check(f"{extra} (optional)", "ok", seen)


def _plug_ins() -> Iterator[Check]:
    """List the plug-ins of other packages, and those that cannot be used."""
    from almanac.conformance import CATALOGS

    for catalog in CATALOGS:
        for one in catalog.plug_ins:
            kind = "refiner" if getattr(one, "refines", False) else catalog.kind
            yield Check(f"{kind} {one.name}", "ok", f"{one.about}; of {one.package}")
        for broken in catalog.broken:
            seen = f"{broken.reason}; of {broken.package}: update or remove it"
            yield Check(f"{catalog.kind} {broken.name}", "warning", seen)


def _spool() -> Check:
    """Check whether ingests wait for the database or were rejected."""
    from registry.errors import ConfigError
    from registry.store.ingest_runs import age_text

    if not current_settings().spool.is_dir():
        return Check("spool", "ok", "0 ingests wait")
    try:
        spool = current_spool()
    except ConfigError as error:
        return Check("spool", "warning", str(error))
    waiting, rejected = spool.waiting(), spool.rejected()
    seen = f"{len(waiting)} ingests wait, {len(rejected)} rejected"
    if waiting:
        age = datetime.now(UTC) - datetime.fromtimestamp(int(waiting[0].name) / 1e9, UTC)
        seen += f"; the oldest waits since {age_text(age)}"
    return Check("spool", "warning" if waiting or rejected else "ok", seen)


def _settings() -> Check:
    settings = current_settings()
    return Check("settings", "ok", f"database {settings.db or 'embedded'}, data in {settings.home}")


def _database(registry: Registry) -> Iterator[Check]:
    """Check that the database answers, and report its schema version."""
    from registry.database.schema import current_version

    database = registry.database
    begin = time.perf_counter()
    version = current_version(database)
    answer = time.perf_counter() - begin
    yield Check("database", "ok", f"{database.kind} at {database.uri}, answers in {answer * 1e3:.1f} ms")
    yield Check("schema", "ok", f"version {version}")


def _records(registry: Registry) -> Iterator[Check]:
    """Check whether all that is counted can be read."""
    from registry.database.embedded_files import REMEDY
    from registry.errors import RegistryBusy
    from registry.upkeep.verify import count_records

    try:
        count, lost = count_records(registry.database)
    except RegistryBusy as error:
        yield Check("records", "warning", error.reason)
        return
    remedy = REMEDY if registry.database.folder is not None else "almanac db verify reads all"
    seen = f"{'; '.join(lost[:3])}: {remedy}" if lost else f"{count:,} can be read"
    yield Check("records", "failed" if lost else "ok", seen)


def _files() -> Iterator[Check]:
    """Check whether files of the embedded server were damaged."""
    from registry.database.embedded_files import REMEDY, present_damage

    settings = current_settings()
    found = present_damage(settings.home) if settings.db is None else ()
    if found:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield Check(FILES, "failed", f"{found[0]}{more}: {REMEDY}")


def _data(registry: Registry) -> Iterator[Check]:
    """Check the age and the routes of each cluster, and count profiles and placements."""
    from mapping.routing.catalog import choose_routing
    from registry.store.ingest_runs import STALE, age_text

    clusters = registry.fabrics.clusters()
    if not clusters:
        yield Check("clusters", "warning", "none: almanac ingest --cluster NAME FILE..., or almanac demo")
    for info in clusters:
        age = datetime.now(UTC) - info.last_observed_at
        yield Check(
            f"cluster {info.name}", "ok" if age <= STALE else "warning", f"observed {age_text(age)} ago"
        )
        snapshot = registry.fabrics.read(info.name)
        name, why = choose_routing(snapshot.fabric)
        state = "warning" if snapshot.fabric.tables is not None and name != "tables" else "ok"
        yield Check(f"routes of {info.name}", state, f"{name}: {why}")
    yield from _sources(registry)
    yield from _sizes(registry)
    yield Check("profiles", "ok", str(len(registry.profiles.list())))
    yield Check("placements", "ok", str(registry.placements.count()))


def _sizes(registry: Registry) -> Iterator[Check]:
    """Report what is stored of each cluster, and check the free space of the embedded server's disk."""
    from registry.units import BYTES, text
    from registry.upkeep.retention import file_bytes, free_bytes, stored_sizes

    stored = stored_sizes(registry.database)
    for cluster, sizes in groupby(stored, key=lambda one: one.cluster):
        words = ", ".join(f"{one.count:,} {one.kind} ({text(one.bytes, BYTES)})" for one in sizes)
        yield Check(f"size of {cluster}", "ok", words)
    free, folder = free_bytes(registry.database), registry.database.folder
    if free is not None:
        state = "ok" if free >= LOW_BYTES else "warning"
        yield Check("disk", state, f"{text(free, BYTES)} free for {folder}")
    files = file_bytes(registry.database)
    if files is not None:
        wasted = files > LARGE_BYTES + 3 * sum(one.bytes for one in stored)
        advice = ", most of it of deleted data: run almanac db compact" if wasted else ""
        yield Check("files", "warning" if wasted else "ok", text(files, BYTES) + advice)


def _sources(registry: Registry) -> Iterator[Check]:
    """Check each source: age of its latest data, and whether the last ingest failed."""
    from registry.errors import shorten
    from registry.store.ingest_runs import NO_ALARM, freshness

    now = datetime.now(UTC)
    for source in registry.runs.sources():
        name = f"source {source.cluster or '-'} {source.format or 'of unknown format'}"
        state, words = freshness(source, now)
        yield Check(name, "ok" if state in NO_ALARM else "warning", shorten(words))


@click.command("metrics")
@top_option(10, "Busiest links, ports with most errors and flapping cables to include per cluster.", least=0)
@click.option(
    "--output",
    "-o",
    type=click.Path(),
    metavar="FILE",
    help="File, written completely or not at all (default: standard output).",
)
def metrics(top: int, output: str | None) -> None:
    """Print ages of sources, problems, errors, use of links and placement quality in Prometheus' text format.

    For the textfile collector of the node exporter: `almanac metrics -o .../almanac.prom`.
    """
    from almanac.prometheus import read_gauges

    limits = current_settings().error_limits()
    with open_registry() as registry:
        content = read_gauges(registry, top, limits).text()
    write_text(output, content)


@click.group("config", invoke_without_command=True)
@click.pass_context
def config(context: click.Context) -> None:
    """Show the settings in use and where each comes from."""
    if context.invoked_subcommand is None:
        context.invoke(show)


@config.command("show")
@json_option
def show(as_json: bool) -> None:
    """Show each setting, its value and where it comes from; passwords and secrets are not shown."""
    settings = current_settings()
    values = {key: None if value == "" else value for key, value in settings.values().items()}
    values |= {key: "(set)" for key in ("db_password", "dashboard_secret") if values[key] is not None}
    rows = [{"setting": key, "value": value, "from": settings.origin[key]} for key, value in values.items()]
    if as_json:
        print_json({"config_file": str(settings.config_path), "settings": rows})
        return
    print_table(
        f"configuration file: {settings.config_path}",
        ["setting", "value", "from"],
        [list(row.values()) for row in rows],
    )


SHOWN = 5
"""Differences printed for each check."""


@click.command("selfcheck")
@click.argument("cluster", required=False)
@click.option(
    "--fabric",
    "files",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="Use a scan with its forwarding tables instead of the database (repeat; default: the sample scan).",
)
@click.option("--only", multiple=True, metavar="CHECK", help="Run only this check (repeat).")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.0, min_open=True),
    default=40.0,
    show_default=True,
    help="Time after which no comparison is started.",
)
@seed_option
@json_option
def selfcheck(
    cluster: str | None,
    files: tuple[str, ...],
    only: tuple[str, ...],
    seconds: float,
    seed: int,
    as_json: bool,
) -> None:
    """Compare what the program computes with slow and simple computations of the same.

    Uses CLUSTER's fabric, a scan, or the sample scan. Exits with 4 if values differ.
    """
    from mapping.selfcheck.checks import run

    if cluster and files:
        raise click.UsageError("give either a cluster of the database, or files with --fabric")
    fabric = _fabric(cluster, files)
    with progress_bars() as progress:
        results = [
            (entry.name, entry.about, comparison)
            for entry, comparison in run(fabric, only, seconds=seconds, seed=seed, progress=progress)
        ]
    if as_json:
        print_json({"checks": [self_check_to_json(*result) for result in results]})
    else:
        _show(results)
    if not all(comparison.agrees for _, _, comparison in results):
        click.get_current_context().exit(EXIT_PROBLEMS)


def _fabric(cluster: str | None, files: tuple[str, ...]) -> Fabric:
    """Return the fabric of a cluster, of files, or of the sample data."""
    if cluster is not None:
        with open_registry() as registry:
            return registry.fabrics.read(cluster).fabric
    from almanac.demo.demo import SCAN
    from almanac.options import read_fabric

    return read_fabric(files or tuple(str(path) for path in SCAN))


def _show(results: list[tuple[str, str, Comparison]]) -> None:
    """Print a row per check, and the first differences."""
    rows = [
        [name, _verdict(one), f"{one.compared} {one.unit}", one.largest_difference, about]
        for name, about, one in results
    ]
    print_table("", ["check", "result", "compared", "largest difference (relative)", "what"], rows)
    for name, _, one in results:
        for text in one.differences[:SHOWN]:
            note(f"{name}: {text}")


def _verdict(one: Comparison) -> str:
    if one.differences:
        return f"{len(one.differences)} differ"
    return "agrees" if one.compared else "nothing to compare"
