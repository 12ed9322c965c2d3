"""``almanac generate``: generate fabrics, profiles and weights by formula, into files or the registry."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from almanac.options import OUTPUT, open_registry, option_of
from almanac.output.printing import note, print_json, write_bytes
from almanac.output.stored_data import generated_to_json

if TYPE_CHECKING:
    from ingest.generate.catalog import Generator, Parameter

OWN = ("output", "format_name", "save", "cluster", "name", "as_json")
"""Options of this command; no generator may have a parameter of these names."""


_COUNTED = {"host": "hosts", "switch": "switches", "cable": "cables"}


class Generators(click.Group):
    """A command group with one subcommand per generator of a kind; its options are the parameters."""

    def __init__(self, *words: Any, kind: str, **settings: Any) -> None:
        super().__init__(*words, **settings)
        self.kind = kind

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the generators in the order of the catalog."""
        from ingest.generate.catalog import GENERATORS

        return list(GENERATORS[self.kind].names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a generator; raise a usage error with the closest names if there is none."""
        from ingest.generate.catalog import GENERATORS
        from registry.errors import UnknownName

        try:
            return _command(GENERATORS[self.kind].find(cmd_name))
        except UnknownName as error:
            raise click.UsageError(error.reason, ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the generators without importing them."""
        from ingest.generate.catalog import GENERATORS

        with formatter.section("Generators"):
            formatter.write_dl([(one.name, one.about) for one in GENERATORS[self.kind]])


@click.group("generate")
def command() -> None:
    """Generate fabrics, profiles and weights of ranks by formula.

    Without -o, --cluster or --save the file is printed on standard output; `almanac ingest -` reads it.
    """


@command.group("fabric", cls=Generators, kind="fabric")
def fabric() -> None:
    """Generate an interconnect: --cluster saves it in the registry, -o writes a file."""


@command.group("profile", cls=Generators, kind="profile")
def profile() -> None:
    """Generate a communication profile: --save saves it in the registry, -o writes a file."""


@command.group("weights", cls=Generators, kind="weights")
def weights() -> None:
    """Generate what each rank computes, for `almanac reconfigure --weights`: -o writes a file."""


def _command(generator: Generator) -> click.Command:
    """Return the subcommand of a generator."""
    about = "Format of the file (default: the first of this kind)."
    options: list[click.Parameter] = [
        *(_option(parameter) for parameter in generator.parameters()),
        click.Option(["-o", "--output"], type=OUTPUT, help="Write to this file."),
        click.Option(["--format", "format_name"], help=about),
    ]
    if generator.kind == "fabric":
        options.append(click.Option(["--cluster"], help="Save the fabric as this cluster, observed now."))
    elif generator.kind == "profile":
        options.append(click.Option(["--save"], is_flag=True, help="Save the profile in the registry."))
        options.append(click.Option(["--name"], help="Name of the profile (default: that of the generator)."))
    options.append(click.Option(["--json", "as_json"], is_flag=True, help="Print a summary as JSON."))

    def run(**values: Any) -> None:
        from registry.errors import InvalidValue

        try:
            _run(generator, values)
        except InvalidValue as error:
            given = [option for parameter in options for option in parameter.opts]
            raise click.UsageError(error.named(option_of(error.field, given))) from error

    return click.Command(generator.name, params=options, callback=run, help=generator.explained())


def _option(parameter: Parameter) -> click.Option:
    """Return the option of a parameter, such as ``--hosts-per-leaf`` of ``hosts_per_leaf``."""
    from ingest.generate.catalog import REQUIRED

    needed = parameter.default is REQUIRED
    default = "" if needed or parameter.default is None else f"default: {_value_text(parameter.default)}"
    about = ". ".join(part for part in (parameter.about, default) if part)
    metavar = parameter.type.upper().replace(" ", "-")
    return click.Option(
        [f"--{parameter.name.replace('_', '-')}", parameter.name],
        required=needed,
        metavar=metavar,
        help=f"{about}." if about else None,
    )


def _value_text(value: Any) -> str:
    return ",".join(map(_value_text, value)) if isinstance(value, tuple | list) else str(value)


def _run(generator: Generator, values: dict[str, Any]) -> None:
    """Generate, write, save and print what the options of the command ask for."""
    from dataclasses import replace

    from ingest.generate.catalog import make
    from ingest.writers import as_fabric, write
    from registry.model import Profile

    own = {name: values.pop(name, None) for name in OWN}
    made = make(generator, {name: value for name, value in values.items() if value is not None})
    if isinstance(made, Profile):
        made = replace(made, name=own["name"] or made.name or generator.name, source="generated")
    saves = bool(own["save"] or own["cluster"])
    fields = generated_to_json(as_fabric(made) if generator.kind == "fabric" else made, generator)
    if own["format_name"] and not own["output"] and (saves or own["as_json"]):
        raise click.UsageError("--format is the format of a file: give -o FILE, too")
    if own["output"] or not (saves or own["as_json"]):
        content = write(made, own["format_name"])
        if own["output"]:
            write_bytes(own["output"], content)
        else:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
            return
    if saves:
        fields |= _save(made, generator, own["cluster"])
    if own["as_json"]:
        print_json(fields)
    else:
        note(_summary(fields, own["output"]))


def _save(made: Any, generator: Generator, cluster: str | None) -> dict[str, Any]:
    """Save a generated fabric or profile, and return the keys to add to the JSON document."""
    from ingest.writers import as_fabric
    from registry.model import Profile
    from registry.model.intake import Intake

    source = f"generate {generator.kind} {generator.name}"
    if isinstance(made, Profile):
        intake = Intake(profiles=(made,), source=source)
    else:
        intake = Intake(cluster=cluster, observed_at=datetime.now(UTC), fabric=as_fabric(made), source=source)
    with open_registry() as registry:
        receipt = registry.save(intake)
    return {"cluster": cluster, "profile_ids": list(receipt.ids("profiles")), "snapshot": receipt.snapshot}


def _summary(fields: dict[str, Any], output: str | None) -> str:
    """Return one line on what was generated, written and saved."""
    if fields["kind"] == "profile":
        made = f"profile {fields['profile']}: {fields['ranks']} ranks, {fields['pairs']} pairs"
    elif fields["kind"] == "weights":
        made = f"weights of {fields['ranks']} ranks"
    else:
        counts = (f"{fields[f'{name}_count']} {many}" for name, many in _COUNTED.items())
        made = f"fabric: {', '.join(counts)}"
    done = [f"written to {output}"] if output else []
    if "snapshot" in fields:
        done.append(f"saved as cluster {fields['cluster']}" if fields["cluster"] else "saved")
    return f"{made}; {' and '.join(done)}" if done else made
