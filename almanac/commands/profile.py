"""``almanac profile``: list, show, export and delete communication profiles.

``almanac observation``: list and delete observations of a cluster's fabric.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from almanac.options import (
    DEPENDENTS,
    Destructive,
    destructive_options,
    export_argument,
    json_option,
    open_registry,
    print_deletion,
)
from almanac.output.printing import note, print_fields, print_json, print_table, write_text
from almanac.output.stored_data import (
    deletion_lines,
    observation_to_json,
    profile_info_to_json,
    profile_to_json,
)
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


@click.group("observation")
def observation() -> None:
    """List and delete observations: what one ingest saw of a fabric at one time."""


@observation.command("list")
@click.argument("cluster")
@json_option
def list_observations(cluster: str, as_json: bool) -> None:
    """List the observations of CLUSTER with their ids, sizes and files, the oldest first."""
    with open_registry() as registry:
        files = registry.runs.scanned_files(cluster)
        rows = [
            observation_to_json(cluster, one, files.get(one.digest, ()))
            for one in registry.fabrics.observations(cluster)
        ]
    if as_json:
        print_json(rows)
        return
    columns = {
        "observation": "observation",
        "observed_at": "observed at",
        "host_count": "hosts",
        "unnamed_adapter_count": "unnamed adapters",
        "switch_count": "switches",
        "cable_count": "cables",
        "files": "file",
        "routing_id": "forwarding tables",
        "origin": "origin",
        "snapshot": "snapshot",
    }
    shown = [row | {"files": _first(row["files"])} for row in rows]
    print_table("", list(columns.values()), [[row[column] for column in columns] for row in shown])


def _first(files: Sequence[str]) -> str:
    """Return the first path, and how many more there are."""
    return "".join(files[:1]) + (f" and {len(files) - 1:,} more" if len(files) > 1 else "")


@observation.command("delete")
@click.argument("observation")
@DEPENDENTS
@destructive_options
def delete_observation(observation: str, with_dependents: bool, how: Destructive) -> None:
    """Delete an OBSERVATION, by its id or the beginning of it, as if it had never been made.

    The cluster is then as the other observations saw it. Snapshot and forwarding tables that no other
    observation saw are deleted too; placements and simulations on them are its dependents.
    """
    from registry.upkeep.deletion import Deletion, delete_observation

    def act(dry_run: bool) -> Deletion:
        with open_registry() as registry:
            return delete_observation(
                registry.database, observation, with_dependents=with_dependents, dry_run=dry_run
            )

    print_deletion(how.carry_out(f"Delete observation {observation}", act, deletion_lines), how)
