"""``almanac generate``: fabrics, profiles and weights by formula, into files or the registry."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from almanac.options.common import open_registry
from almanac.output.printing import note, print_json, write_bytes

if TYPE_CHECKING:
    from ingest.generate.catalog import Generator, Parameter

OWN = ("output", "format_name", "save", "cluster", "name", "as_json")
"""Names of this command's own options, which no generator may have as a parameter."""


class Generators(click.Group):
    """A group with a subcommand for each generator of a kind, its options built from the signature."""

    kind = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the catalog."""
        from ingest.generate.catalog import GENERATORS

        return list(GENERATORS[self.kind].names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One generator's command; a usage error with the closest names where there is none."""
        from ingest.generate.catalog import GENERATORS
        from registry.errors import UnknownName

        try:
            return _command(GENERATORS[self.kind].find(cmd_name))
        except UnknownName as error:
            raise click.UsageError(error.reason, ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the generators from the catalog, none of them imported."""
        from ingest.generate.catalog import GENERATORS

        with formatter.section("Generators"):
            formatter.write_dl([(made.name, made.about) for made in GENERATORS[self.kind]])


class Fabrics(Generators):
    """The generators of fabrics."""

    kind = "fabric"


class Profiles(Generators):
    """The generators of profiles."""

    kind = "profile"


class Weights(Generators):
    """The generators of what ranks compute."""

    kind = "weights"


@click.group("generate")
def command() -> None:
    """Make fabrics, profiles and weights of ranks by formula.

    Without -o, --cluster or --save the file is printed; `almanac ingest -` reads it.
    """


@command.group("fabric", cls=Fabrics)
def fabric() -> None:
    """Interconnects: give --cluster to save one in the registry, -o to write a file."""


@command.group("profile", cls=Profiles)
def profile() -> None:
    """Communication profiles: give --save to keep one in the registry, -o to write a file."""


@command.group("weights", cls=Weights)
def weights() -> None:
    """What ranks compute, for `almanac reconfigure --weights`: give -o to write a file."""


def _command(generator: Generator) -> click.Command:
    """The subcommand of one generator."""
    options: list[click.Parameter] = [_option(parameter) for parameter in generator.parameters()]
    options.append(click.Option(["-o", "--output"], type=click.Path(dir_okay=False), help="Write this file."))
    options.append(click.Option(["--format", "format_name"], help="Format of the file (default: the first)."))
    if generator.kind == "fabric":
        options.append(click.Option(["--cluster"], help="Save it as this cluster, seen now."))
    elif generator.kind == "profile":
        options.append(click.Option(["--save"], is_flag=True, help="Save it in the registry."))
        options.append(click.Option(["--name"], help="Its name (default: the generator's)."))
    options.append(click.Option(["--json", "as_json"], is_flag=True, help="Tell as JSON what was made."))

    def run(**values: Any) -> None:
        from registry.errors import InvalidValue

        try:
            _run(generator, values)
        except InvalidValue as error:
            raise click.UsageError(str(error)) from error

    return click.Command(generator.name, params=options, callback=run, help=generator.explained())


def _option(parameter: Parameter) -> click.Option:
    """``--hosts-per-leaf`` of ``hosts_per_leaf``."""
    from ingest.generate.catalog import REQUIRED

    needed = parameter.default is REQUIRED
    told = "" if needed or parameter.default is None else f"default: {_shown(parameter.default)}"
    about = ". ".join(part for part in (parameter.about, told) if part)
    metavar = parameter.type.upper().replace(" ", "-")
    return click.Option(
        [f"--{parameter.name.replace('_', '-')}", parameter.name],
        required=needed,
        metavar=metavar,
        help=f"{about}." if about else None,
    )


def _shown(value: Any) -> str:
    return ",".join(map(_shown, value)) if isinstance(value, tuple | list) else str(value)


def _run(generator: Generator, values: dict[str, Any]) -> None:
    from dataclasses import replace

    from ingest.generate.catalog import make
    from ingest.writers.generated_files import as_fabric, write
    from registry.model import Profile

    own = {name: values.pop(name, None) for name in OWN}
    made = make(generator, {name: value for name, value in values.items() if value is not None})
    if isinstance(made, Profile):
        made = replace(made, name=own["name"] or made.name or generator.name, source="generated")
    saves = bool(own["save"] or own["cluster"])
    told = _told(as_fabric(made) if generator.kind == "fabric" else made, generator)
    if own["format_name"] and not own["output"] and (saves or own["as_json"]):
        raise click.UsageError("--format says how a file is written: give -o FILE")
    if own["output"] or not (saves or own["as_json"]):
        content = write(made, own["format_name"])
        if own["output"]:
            write_bytes(own["output"], content)
        else:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
            return
    if saves:
        told |= _save(made, generator, own["cluster"])
    if own["as_json"]:
        print_json(told)
    else:
        note(_line(told, own["output"]))


def _save(made: Any, generator: Generator, cluster: str | None) -> dict[str, Any]:
    from ingest.writers.generated_files import as_fabric
    from registry.model import Profile
    from registry.model.intake import Intake

    source = f"generate {generator.kind} {generator.name}"
    if isinstance(made, Profile):
        intake = Intake(profiles=(made,), source=source)
    else:
        intake = Intake(cluster=cluster, observed_at=datetime.now(UTC), fabric=as_fabric(made), source=source)
    with open_registry() as registry:
        receipt = registry.save(intake)
    return {"cluster": cluster, "profile_ids": list(receipt.profiles), "snapshot": receipt.snapshot}


def _told(made: Any, generator: Generator) -> dict[str, Any]:
    told: dict[str, Any] = {"generator": generator.name, "kind": generator.kind}
    if generator.kind == "profile":
        return told | {
            "name": made.name,
            "ranks": made.ranks,
            "pairs": made.pairs,
            "bytes": float(made.bytes.sum()),
        }
    if generator.kind == "weights":
        return told | {"ranks": len(made), "sum": float(made.sum()), "heaviest": float(made.max())}
    return told | {
        "hosts": len(made.hosts),
        "switches": len(made.switches),
        "cables": made.cable_count,
    }


def _line(told: dict[str, Any], output: str | None) -> str:
    if told["kind"] == "profile":
        what = f"profile {told['name']}: {told['ranks']} ranks, {told['pairs']} pairs"
    elif told["kind"] == "weights":
        what = f"weights of {told['ranks']} ranks"
    else:
        what = f"fabric: {told['hosts']} hosts, {told['switches']} switches, {told['cables']} cables"
    where = [f"written to {output}"] if output else []
    if "snapshot" in told:
        where.append(f"saved as cluster {told['cluster']}" if told["cluster"] else "saved")
    return f"{what}; {' and '.join(where)}" if where else what
