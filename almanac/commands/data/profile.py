"""``almanac profile``: list, show, export and delete communication profiles."""

from __future__ import annotations

import click

from almanac.options.common import json_option, open_registry, output_option
from almanac.options.destructive import DEPENDENTS, Destructive, destructive_options
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
@output_option()
def export(profile: str, output: str | None) -> None:
    """Write CSV with the columns src,dst,bytes,messages and a row per ordered pair of ranks."""
    from ingest.formats.profiles.edge_csv import csv_text

    with open_registry() as registry:
        content = registry.profiles.read(profile).profile
    write_text(output, csv_text(content))
    if output is not None:
        note(f"{content.pairs} pairs of ranks written to {output}")


@command.command("delete")
@click.argument("profile")
@DEPENDENTS
@destructive_options
def delete(profile: str, with_dependents: bool, how: Destructive) -> None:
    """Delete a PROFILE, by name or id; its traces and all results with it are its dependents.

    Jobs that ran it stay, without a profile. If an older profile has the same name, the name is then its.
    """
    from registry.maintenance.deletion import Deletion, delete_profile

    def act(dry_run: bool) -> Deletion:
        with open_registry() as registry:
            return delete_profile(
                registry.database, profile, with_dependents=with_dependents, dry_run=dry_run
            )

    print_deletion(how.carry_out(f"Delete profile {profile}", act, deletion_lines), how)
