"""``almanac query``: run a read-only Cypher statement."""

from __future__ import annotations

from typing import Any

import click

from almanac.options.common import json_option, open_registry
from almanac.output.printing import csv_text, print_json, print_table


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
def command(statement: str, parameters: tuple[str, ...], as_csv: bool, as_json: bool) -> None:
    """Run a read-only Cypher statement; statements that write are rejected."""
    given = _parameters(parameters)
    with open_registry() as registry:
        columns, rows = registry.database.query(statement, **given)
    plain = [[_plain(value) for value in row] for row in rows]
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in plain])
    elif as_csv:
        click.echo(csv_text(columns, plain), nl=False)
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

    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
