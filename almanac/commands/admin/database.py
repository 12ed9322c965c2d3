"""``almanac db``: the database - status, start, stop, dump, load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from almanac.options.common import json_option, open_registry
from almanac.output.printing import note, print_json, print_table, progress_bars
from almanac.settings import Settings, load_settings

if TYPE_CHECKING:
    from registry.database.driver import Database


@click.group("db")
def command() -> None:
    """The database: status, start, stop, migrate, dump, load."""


@command.command("status")
@json_option
def status(as_json: bool) -> None:
    """Which database is meant and whether it answers; starts nothing."""
    told = database_status(_settings())
    if as_json:
        print_json(told)
        return
    print_table("", ["", "database"], [[key, value] for key, value in told.items()])


@command.command("start")
@json_option
def start(as_json: bool) -> None:
    """Start the embedded server; does nothing where it runs."""
    from registry.database.local.server import ensure_server

    settings = _embedded(_settings())
    with progress_bars() as progress:
        address = ensure_server(settings.home, idle_seconds=settings.idle_seconds, progress=progress)
    if as_json:
        print_json({"uri": address.uri, "home": str(settings.home)})
        return
    click.echo(f"the embedded server answers at {address.uri}, its data are in {settings.home}")


@command.command("stop")
@json_option
def stop(as_json: bool) -> None:
    """Stop the embedded server."""
    from registry.database.local.server import stop as stop_server

    settings = _embedded(_settings())
    was_running = stop_server(settings.home)
    if as_json:
        print_json({"was_running": was_running, "home": str(settings.home)})
        return
    click.echo("stopped" if was_running else "no embedded server was running")


@command.command("migrate")
@json_option
def migrate(as_json: bool) -> None:
    """Bring a registry of an older version to this program's schema."""
    from registry.database.schema import current_version
    from registry.database.schema import migrate as bring_up

    with _database(_settings()) as database:
        before = current_version(database)
        bring_up(database)
        after = current_version(database)
    if as_json:
        print_json({"before": before, "after": after})
        return
    click.echo(f"schema version {after}" if before == after else f"schema version {before} -> {after}")


@command.command("dump")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def dump(file: Path) -> None:
    """Write the whole registry to FILE: the backup, and the way to another server."""
    from registry.database.dumps.transfer import dump as write_dump

    with open_registry() as registry, progress_bars() as progress:
        counts = write_dump(registry.database, file, progress)
    note(f"{counts.nodes} nodes and {counts.relationships} relationships written to {file}")


@command.command("load")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def load(file: Path) -> None:
    """Read a dump into an empty registry."""
    from registry.database.dumps.transfer import load as read_dump

    with open_registry() as registry, progress_bars() as progress:
        counts = read_dump(registry.database, file, progress)
    note(f"{counts.nodes} nodes and {counts.relationships} relationships read from {file}")


def database_status(settings: Settings) -> dict[str, Any]:
    """What `status` tells."""
    told: dict[str, Any] = {"kind": "embedded" if settings.db is None else "server", "uri": settings.db}
    if settings.db is None:
        from registry.database.local.server import status as server_status

        running = server_status(settings.home)
        told |= {"home": str(settings.home), "running": running is not None}
        if running is not None:
            told |= {
                "uri": running.address.uri,
                "pid": running.address.pid,
                "memory_bytes": running.memory_bytes,
                "idle_seconds": running.idle_seconds,
            }
        return told
    from registry.database.schema import current_version

    with _database(settings) as database:
        told |= {"running": True, "server": database.kind, "schema": current_version(database)}
    return told


def _database(settings: Settings) -> Database:
    """A connection without a look at the schema; the embedded server is started on demand."""
    from registry.database.driver import Database
    from registry.database.local.server import ensure_server

    if settings.db is None:
        return ensure_server(settings.home, idle_seconds=settings.idle_seconds).connect()
    return Database.connect(settings.db, user=settings.user, password=settings.password, name=settings.name)


def _settings() -> Settings:
    return load_settings(click.get_current_context().find_root().obj)


def _embedded(settings: Settings) -> Settings:
    if settings.db is not None:
        raise click.UsageError(f"the settings name a server, {settings.db}: it is not ours to start or stop")
    return settings
