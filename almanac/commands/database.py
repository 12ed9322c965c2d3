"""``almanac db`` and ``almanac query``: manage the database, and run read-only Cypher statements.

``almanac db prune``: delete what the settings do not keep.

``almanac db verify``: compare what is stored with its ids, and the derived graph with the observations.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from almanac.options import Destructive, current_settings, destructive_options, json_option, open_registry
from almanac.output.printing import (
    note,
    print_fields,
    print_json,
    print_table,
    progress_bars,
    say,
    write_text,
)
from almanac.output.stored_data import pruned_lines, pruned_to_json, repair_lines, verification_to_json
from almanac.settings import Settings
from registry.csv_text import csv_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.database.driver import Database
    from registry.upkeep.backup import Transferred
    from registry.upkeep.verify import Verification


@click.command("prune")
@destructive_options
def prune(how: Destructive) -> None:
    """Delete old observations, counters, placements and ingest runs by the rules of the settings.

    The settings are keep_observations, keep_counters, keep_placements and keep_runs; by default all is kept.
    Ctrl-C is safe: the next call continues.
    """
    from registry.upkeep.retention import Pruned
    from registry.upkeep.retention import prune as delete_old

    settings = current_settings()
    rules = settings.retention()

    def act(dry_run: bool) -> Pruned:
        with open_registry() as registry, progress_bars() as progress:
            return delete_old(registry.database, rules, datetime.now(UTC), dry_run=dry_run, progress=progress)

    pruned = how.carry_out("Delete these", act, pruned_lines)
    if how.as_json:
        print_json(pruned_to_json(pruned, settings.keep, how.dry_run))
        return
    if all(rule == "all" for rule in settings.keep.values()):
        note("the settings keep all: see keep_observations, keep_counters, keep_placements, keep_runs")
    for line in pruned_lines(pruned):
        say(f"would delete: {line}" if how.dry_run and pruned.deleted else line)


EXIT_PROBLEMS = 4
"""Exit code if problems are left, or something was lost."""


@click.command("verify")
@click.option(
    "--repair",
    "with_repair",
    is_flag=True,
    help="Restore what can be computed, rebuild derived graphs, delete what cannot be read; see "
    "docs/how-to/stored-data.md.",
)
@json_option
def verify(with_repair: bool, as_json: bool) -> None:
    """Read everything that is stored and report what is damaged.

    Every record with an id that is made from its content is compared with it, and the graph of each cluster
    with the one that its observations give. Files of the embedded server are compared with their digests at
    each start. Exit with 4 if something is damaged, or was deleted.
    """
    from registry.upkeep.deletion import NAMES
    from registry.upkeep.verify import repair
    from registry.upkeep.verify import verify as read_all

    first, done = _without_records(), None
    if first is None:
        with open_registry() as registry, progress_bars() as progress:
            first = last = read_all(registry.database, progress)
            if with_repair and first.damaged and not first.has_damaged_files:
                done = repair(registry.database, first.findings)
                last = read_all(registry.database, progress)
    else:
        last = first
    if as_json:
        print_json(verification_to_json(first, last, done))
    else:
        rows = [[one.problem, one.kind, one.id, one.reason] for one in first.findings]
        if rows:
            print_table("", ["problem", "of", "id", "found"], rows, least=("problem",))
        for line in repair_lines(done) if done is not None else ():
            say(line)
        checked = sum(first.checked.values())
        kinds = ", ".join(f"{count:,} {NAMES[label]}" for label, count in sorted(first.checked.items()))
        nothing = "no record can be read" if first.has_damaged_files else "nothing is stored"
        say(f"{checked:,} records compared with their content: {kinds}" if checked else nothing)
        say(_summary(last, done is not None))
    if last.damaged or (done is not None and done.deleted):
        click.get_current_context().exit(EXIT_PROBLEMS)


def _without_records() -> Verification | None:
    """Return the damage of files with which the embedded server does not start; None if it starts."""
    from registry.errors import DatabaseError
    from registry.upkeep.verify import Verification, file_findings

    settings = current_settings()
    try:
        with progress_bars() as progress:
            settings.open_registry(progress).close()
    except DatabaseError:
        found = file_findings(settings.home) if settings.db is None else ()
        if not found:
            raise
        return Verification(checked={}, findings=found)
    return None


def _summary(found: Verification, repaired: bool) -> str:
    """Return the last line."""
    left = len(found.findings)
    if not left:
        return "no problems are left" if repaired else "no problems found"
    if found.has_damaged_files:
        from registry.database.embedded_files import REMEDY

        return f"{left} problems found, which --repair cannot repair as files are damaged: {REMEDY}"
    if not found.damaged:
        return f"{left} ids differ without damage: their cluster was renamed, or an early version saved them"
    remedy = (
        "restore a backup" if repaired else "almanac db verify --repair repairs them, or restore a backup"
    )
    return f"{left} problems {'are left' if repaired else 'found'}: {remedy}"


@click.group("db")
def db() -> None:
    """Database: status, start, stop, migrate, backup, restore, verify, prune, compact."""


db.add_command(prune)
db.add_command(verify)


@db.command("status")
@json_option
def status(as_json: bool) -> None:
    """Show which database the settings name and whether it answers; starts nothing."""
    fields = _status(current_settings())
    if as_json:
        print_json(fields)
        return
    print_fields("database", fields)


@db.command("start")
@json_option
def start(as_json: bool) -> None:
    """Start the embedded server if it is not running."""
    from registry.database.embedded_server import ensure_server

    settings = _embedded(current_settings())
    with progress_bars() as progress:
        address = ensure_server(settings.home, idle_seconds=settings.idle_seconds, progress=progress)
    if as_json:
        print_json({"uri": address.uri, "home": str(settings.home)})
        return
    say(f"the embedded server answers at {address.uri}; its data is in {settings.home}")


@db.command("stop")
@json_option
def stop(as_json: bool) -> None:
    """Stop the embedded server."""
    from registry.database.embedded_server import stop as stop_server

    settings = _embedded(current_settings())
    was_running = stop_server(settings.home)
    if as_json:
        print_json({"was_running": was_running, "home": str(settings.home)})
        return
    say("stopped" if was_running else "the embedded server was not running")


@db.command("migrate")
@json_option
def migrate(as_json: bool) -> None:
    """Convert a registry written by an older version to the schema of this version."""
    from registry.database.schema import current_version
    from registry.database.schema import migrate as migrate_schema

    with _database(current_settings()) as database:
        before = current_version(database)
        migrate_schema(database)
        after = current_version(database)
    if as_json:
        print_json({"version_before": before, "version_after": after})
        return
    say(f"schema version {after}" if before == after else f"schema version {before} -> {after}")


@db.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path) -> None:
    """Write the whole registry to FILE, while others read and write it.

    The file holds one moment, is complete or not there, can be read by its owner only, and can be restored on
    either server. If a writer comes in between, writers wait while the registry is read again.
    """
    from registry.upkeep.backup import backup as write_backup

    with open_registry() as registry, progress_bars() as progress:
        counts = write_backup(registry.database, file, progress)
    note(f"{counts.nodes} nodes and {counts.relationships} relationships written to {file}")


@db.command("restore")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--replace", is_flag=True, help="Replace what the registry holds; it is first saved to FILE.previous."
)
@click.option(
    "--accept-damaged", is_flag=True, help="Restore records that do not match their ids too, see db verify."
)
def restore(file: Path, replace: bool, accept_damaged: bool) -> None:
    """Fill an empty registry from a backup, also one of an earlier version.

    FILE is read to its end before anything is written, and every record is compared with its id. A registry
    whose restore was interrupted cannot be used until a restore has finished. With --replace the embedded
    server gets new files, which are checked first; the old ones, damaged or not, are kept in the data folder.
    """
    from registry.upkeep.restore import restore as read_backup
    from registry.upkeep.verify import require_intact

    check = None if accept_damaged else partial(require_intact, path=str(file))
    settings = current_settings()
    if replace and settings.db is None:
        counts = _replace(settings, file, check)
    else:
        with _database(settings) as database, progress_bars() as progress:
            counts = read_backup(database, file, progress, replace=replace, check=check)
    note(f"{counts.nodes} nodes and {counts.relationships} relationships restored from {file}")


def _replace(settings: Settings, file: Path, check: Callable[[Any], None] | None) -> Transferred:
    """Replace the files of the embedded server by a backup; print where the old ones are."""
    from registry.upkeep.restore import replace

    with progress_bars() as progress:
        done = replace(settings.home, file, progress, check=check)
    if done.unsaved:
        note(f"the content before was not saved to {file}.previous: {done.unsaved}")
    if done.kept is not None:
        note(f"the files before are in {done.kept}: delete them when you need them no more")
    return done.restored


@db.command("compact")
@json_option
def compact(as_json: bool) -> None:
    """Write the embedded server's files anew, without the space of deleted data.

    Others may read meanwhile; writers wait; at the end the server is started again. If it fails or is
    interrupted, the registry stays as it was. The disk needs room for the new files. Neo4j uses the space of
    deleted data by itself.
    """
    from registry.units import BYTES, text
    from registry.upkeep.restore import compact as write_anew

    settings = _embedded(current_settings())
    with progress_bars() as progress:
        done = write_anew(settings.home, progress, idle_seconds=settings.idle_seconds)
    if as_json:
        print_json({"bytes_before": done.before, "bytes_after": done.after})
        return
    say(f"the files had {text(done.before, BYTES)} and have {text(done.after, BYTES)}")


def _status(settings: Settings) -> dict[str, Any]:
    """Return the document of ``almanac db status``."""
    fields: dict[str, Any] = {"database": "embedded" if settings.db is None else "server", "uri": settings.db}
    if settings.db is None:
        from registry.database.embedded_server import status as server_status

        running = server_status(settings.home)
        fields |= {"home": str(settings.home), "running": running is not None}
        if running is not None:
            fields |= {
                "uri": running.address.uri,
                "pid": running.address.pid,
                "memory_bytes": running.memory_bytes,
                "idle_seconds": running.idle_seconds,
            }
        return fields
    from registry.database.schema import current_version

    with _database(settings) as database:
        fields |= {"running": True, "server": database.kind, "schema": current_version(database)}
    return fields


def _database(settings: Settings) -> Database:
    """Connect without checking the schema; start the embedded server if needed."""
    from registry.database.driver import Database
    from registry.database.embedded_server import ensure_server

    if settings.db is None:
        return ensure_server(settings.home, idle_seconds=settings.idle_seconds).connect()
    return Database.connect(settings.db, user=settings.user, password=settings.password, name=settings.name)


def _embedded(settings: Settings) -> Settings:
    """Return the settings, or raise a usage error if they name a server that is not embedded."""
    if settings.db is not None:
        raise click.UsageError(
            f"the settings name the server {settings.db}: this command is only for the embedded server"
        )
    return settings


@click.command("query")
@click.argument("statement")
@click.option(
    "--param",
    "-p",
    "parameters",
    metavar="NAME=VALUE",
    multiple=True,
    help="Value of $NAME in the statement, as JSON or text (repeat).",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@json_option
def query(statement: str, parameters: tuple[str, ...], as_csv: bool, as_json: bool) -> None:
    """Run a read-only Cypher statement; statements that write are rejected."""
    given = _parameters(parameters)
    with open_registry() as registry:
        columns, rows = registry.database.query(statement, **given)
    plain = [[_plain(value) for value in row] for row in rows]
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in plain])
    elif as_csv:
        write_text(None, csv_text(columns, plain))
    else:
        print_table("", columns, plain)


def _parameters(given: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of ``NAME=VALUE`` by name; a value that is no JSON is text."""
    import json

    values = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name.isidentifier():
            raise click.BadParameter(f"{item!r} is not NAME=VALUE", param_hint="--param")
        try:
            values[name] = json.loads(value)
        except json.JSONDecodeError:
            values[name] = value
    return values


def _plain(value: Any) -> Any:
    """Return a value of the database as one that JSON can represent."""
    from datetime import datetime

    from almanac.output.printing import time_text

    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value if value is None or isinstance(value, str | int | float) else str(value)
