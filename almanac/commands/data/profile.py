"""``almanac profile``: list, show and export communication profiles."""

from __future__ import annotations

import click

from almanac.options.common import json_option, open_registry
from almanac.output.printing import note, print_json, print_table
from registry import units


@click.group("profile")
def command() -> None:
    """Communication profiles: list, show, export."""


@command.command("list")
@json_option
def list_profiles(as_json: bool) -> None:
    """All profiles, the newest first."""
    with open_registry() as registry:
        infos = registry.profiles.list()
    rows = [
        {
            "profile": info.name,
            "id": info.id,
            "application": info.application,
            "ranks": info.ranks,
            "pairs": info.pairs,
            "bytes": info.bytes,
            "recorded_at": info.recorded_at,
        }
        for info in infos
    ]
    if as_json:
        print_json(rows)
        return
    columns = ["profile", "id", "application", "ranks", "pairs", "bytes", "recorded at"]
    print_table("", columns, [list(row.values()) for row in rows])


@command.command("show")
@click.argument("profile")
@json_option
def show(profile: str, as_json: bool) -> None:
    """One profile by name or id."""
    with open_registry() as registry:
        stored = registry.profiles.read(profile)
        traces = registry.traces.list(stored.id)
    content = stored.profile
    told = {
        "profile": content.name,
        "id": stored.id,
        "application": content.application,
        "source": content.source,
        "recorded_at": stored.recorded_at,
        "ranks": content.ranks,
        "pairs": content.pairs,
        "bytes": whole(float(content.bytes.sum())),
        "messages": int(content.messages.sum()),
        "missing_ranks": list(content.missing_ranks),
        "self_edges": content.self_edges,
        "self_bytes": whole(content.self_bytes),
        "traces": [trace.id for trace in traces],
    }
    if as_json:
        print_json(told)
        return
    told["bytes"] = f"{told['bytes']} ({units.text(float(content.bytes.sum()), units.BYTES)})"
    print_table("", ["", profile], [[key, value] for key, value in told.items()])


@command.command("export")
@click.argument("profile")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, writable=True), help="Default: standard output."
)
def export(profile: str, output: str | None) -> None:
    """Write ``src,dst,bytes,messages``, a row an ordered pair of ranks that talks."""
    from almanac.output.printing import write_text
    from ingest.formats.profiles.edge_csv import csv_text

    with open_registry() as registry:
        content = registry.profiles.read(profile).profile
    write_text(output, csv_text(content))
    if output is not None:
        note(f"{content.pairs} pairs written to {output}")


def whole(value: float) -> int | float:
    """An integer where the value is one: bytes are, unless a source gave fractions."""
    return int(value) if value.is_integer() else value
