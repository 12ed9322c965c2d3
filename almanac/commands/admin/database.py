"""``almanac db`` and ``almanac query``: manage the database, and run read-only Cypher statements."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from almanac.commands.admin.prune import prune
from almanac.commands.admin.verify import verify
from almanac.options.common import current_settings, json_option, open_registry
from almanac.output.printing import (
    note,
    print_fields,
    print_json,
    print_table,
    progress_bars,
    say,
    write_text,
)
from almanac.settings import Settings
from registry.csv_text import csv_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.database.driver import Database
    from registry.upkeep.backup import Transferred


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
