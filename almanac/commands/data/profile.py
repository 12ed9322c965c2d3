"""``almanac profile``: list, show, export and delete communication profiles."""

from __future__ import annotations

import click

from almanac.options.common import json_option, open_registry
from almanac.options.destructive import DEPENDENTS, Destructive, destructive_options
from almanac.options.exports import export_argument
from almanac.output.json.stored_data import profile_info_to_json, profile_to_json
from almanac.output.maintenance import deletion_lines, print_deletion
from almanac.output.printing import note, print_fields, print_json, print_table, write_text
from registry import units


@click.group("profile")
def command() -> None:
    """List, show and export communication profiles."""


@command.command("list")
@json_option
def list_profiles(as_json: bool) -> None:
    """List all profiles, newest first."""
    with open_registry() as registry:
        rows = [profile_info_to_json(info) for info in registry.profiles.list()]
    if as_json:
        print_json(rows)
        return
    columns = ["profile", "id", "application", "ranks", "pairs", "bytes", "recorded at"]
    print_table("", columns, [list(row.values()) for row in rows])


@command.command("show")
@click.argument("profile")
@json_option
def show(profile: str, as_json: bool) -> None:
    """Show a profile, by name or id."""
    with open_registry() as registry:
        stored = registry.profiles.read(profile)
        traces = [trace.id for trace in registry.traces.list(stored.id)]
    fields = profile_to_json(stored, traces)
    if as_json:
        print_json(fields)
        return
    fields["bytes"] = f"{fields['bytes']} ({units.text(float(fields['bytes']), units.BYTES)})"
    print_fields(profile, fields)


@command.command("export")
@click.argument("profile")
@export_argument(lambda: ["csv"], "csv")
def export(profile: str, exports: tuple[tuple[str, str | None], ...]) -> None:
    """Write CSV with the columns src,dst,bytes,messages and a row per ordered pair of ranks."""
    from ingest.formats.profiles.edges import csv_text

    with open_registry() as registry:
        content = registry.profiles.read(profile).profile
    for _, path in exports:
        write_text(path, csv_text(content))
        if path is not None:
            note(f"{content.pairs} pairs of ranks written to {path}")


@command.command("delete")
@click.argument("profile")
@DEPENDENTS
@destructive_options
def delete(profile: str, with_dependents: bool, how: Destructive) -> None:
    """Delete a PROFILE, by name or id; its traces and all results with it are its dependents.

    Jobs that ran it stay, without a profile. If an older profile has the same name, the name is then its.
    """
    from registry.upkeep.deletion import Deletion, delete_profile

    def act(dry_run: bool) -> Deletion:
        with open_registry() as registry:
            return delete_profile(
                registry.database, profile, with_dependents=with_dependents, dry_run=dry_run
            )

    print_deletion(how.carry_out(f"Delete profile {profile}", act, deletion_lines), how)
