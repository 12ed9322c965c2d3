"""The `almanac` command: finds a subcommand, runs it, turns errors into messages and exit codes.

Exit codes: 0 ok, 1 failed, 2 usage, 3 database unreachable,
4 what was looked for was found (`cluster check`), 130 interrupted. A subcommand's module is
imported only when it runs, so that ``almanac --help`` needs click and nothing else.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence

import click

COMMANDS: dict[str, tuple[str, str]] = {
    "ingest": ("almanac.commands.ingest", "Load files of fabric tools, schedulers and MPI libraries."),
    "cluster": ("almanac.commands.cluster", "Machines: list them, show one, what changed, what is wrong."),
    "generate": ("almanac.commands.generate", "Make fabrics and profiles by formula."),
    "profile": ("almanac.commands.profile", "Communication profiles: list, show, export."),
    "job": ("almanac.commands.job", "Jobs: list, show, attach the profile that one ran."),
    "map": ("almanac.commands.map", "Find where a job's ranks should sit."),
    "evaluate": ("almanac.commands.evaluate", "Congestion and hop-bytes of a placement."),
    "simulate": ("almanac.commands.simulate", "Replay an application's messages, placement by placement."),
    "compare": ("almanac.commands.compare", "Placements beside each other, link by link."),
    "congestion": ("almanac.commands.congestion", "What is hot now, and whose traffic it is."),
    "whatif": ("almanac.commands.whatif", "Running jobs before and after a change of the fabric."),
    "advise": ("almanac.commands.advise", "Should running jobs' ranks move?"),
    "reconfigure": ("almanac.commands.reconfigure", "Circuits of an optical switch for an application."),
    "history": ("almanac.commands.history", "Placements made so far and their quality."),
    "export": ("almanac.commands.export", "Write a placement as a launcher's file."),
    "metrics": ("almanac.commands.metrics", "Prometheus text: ages, findings, hottest links, placements."),
    "dashboard": ("almanac.commands.dashboard", "Open the pages in a browser."),
    "db": ("almanac.commands.db", "The database: status, start, stop, migrate, dump, load."),
    "query": ("almanac.commands.query", "Run a read-only Cypher statement."),
    "doctor": ("almanac.commands.doctor", "Check the installation, the database and its data."),
    "config": ("almanac.commands.config", "Show the settings in force and where each comes from."),
    "demo": ("almanac.commands.demo", "The whole way once, on sample data that is shipped."),
}
"""Subcommand: (module whose `command` it is, one line of help)."""

EXIT_FAILED, EXIT_USAGE, EXIT_UNREACHABLE, EXIT_INTERRUPTED = 1, 2, 3, 130


class LazyGroup(click.Group):
    """A group that imports a subcommand when it is run, not when it is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one subcommand."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


@click.group(cls=LazyGroup)
@click.version_option(package_name="fabric-almanac", prog_name="almanac")
@click.option(
    "--db",
    metavar="URI",
    help="Database, such as bolt://host:7687 (default: $ALMANAC_DB, the config file, the embedded one).",
)
@click.pass_context
def cli(ctx: click.Context, db: str | None) -> None:
    """A registry of cluster interconnects, and analytics on it."""
    ctx.obj = db


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; the only place that does."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    try:
        code = cli.main(args=given, prog_name="almanac", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = EXIT_INTERRUPTED
    except click.ClickException as error:
        if as_json:
            _say_json("UsageError", error.format_message())
        else:
            error.show()
        code = error.exit_code if isinstance(error, click.UsageError) else EXIT_FAILED
    except BrokenPipeError:
        # The reader (head, less) went away: no error, but the interpreter must not flush into it again.
        sys.stdout = sys.stderr
        code = 0
    except Exception as error:
        code = _report(error, as_json)
    sys.exit(code if isinstance(code, int) else 0)


def _report(error: Exception, as_json: bool) -> int:
    from registry.errors import AlmanacError, DatabaseUnavailable

    if not isinstance(error, AlmanacError):
        raise error
    if as_json:
        _say_json(type(error).__name__, error.reason, error.path, error.line, error.text)
    else:
        click.echo(f"almanac: {error}", err=True)
    return EXIT_UNREACHABLE if isinstance(error, DatabaseUnavailable) else EXIT_FAILED


def _say_json(
    error: str, reason: str, path: str | None = None, line: int | None = None, text: str | None = None
) -> None:
    told = {"error": error, "path": path, "line": line, "text": text, "reason": reason}
    click.echo(json.dumps(told), err=True)
