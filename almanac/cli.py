"""The `almanac` command: runs a subcommand and turns errors into messages and exit codes.

Exit codes: 0 ok, 1 failed, 2 usage error, 3 database unreachable, 4 problems found (`cluster check`, `today`,
`history regressions`, `selfcheck`), 5 ingested, but the fabric lacks some of the hosts or devices, 130
interrupted. The module of a subcommand is imported only when the subcommand runs, so ``almanac --help``
needs no library but click.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence

import click

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Collect": {
        "ingest": ("ingest", "Load files of fabric tools, schedulers and MPI libraries."),
        "spool": ("ingest:spool", "List and apply ingests that wait for the database."),
        "cluster": (
            "cluster",
            "List, show, rename, merge and delete clusters; list changes and problems.",
        ),
        "observation": ("profile:observation", "List and delete observations of a fabric."),
        "profile": ("profile", "List, show, export and delete communication profiles."),
        "job": ("job", "List, show, export and delete jobs; attach the profile of a job."),
        "ingest-run": ("ingest:ingest_run", "List ingest runs, and delete failed ones."),
    },
    "Watch": {
        "today": ("today", "Show what changed, what is broken, and what to do first."),
        "congestion": ("today:congestion", "Show the busiest links now, and which jobs load them."),
        "ports": ("today:ports", "Show ports with errors, the busiest ones, and the jobs on them."),
        "whatif": ("whatif", "Predict how a change of the fabric affects running jobs."),
        "history": ("history", "List stored placements and their quality."),
        "metrics": (
            "status:metrics",
            "Print ages, problems, busiest links and placement quality for Prometheus.",
        ),
        "dashboard": ("serve:dashboard", "Open the web pages in a browser."),
    },
    "Place": {
        "map": ("map", "Find a good placement of a job's ranks on its hosts."),
        "batch": ("batch", "Find many placements, here, on a Dask cluster or with Slurm."),
        "run": ("run", "Start a launcher with its ranks placed."),
        "slurm": ("run:slurm", "Let Slurm place the tasks of srun in jobs that opt in."),
        "advise": ("advise", "Report whether moving ranks of running jobs pays off."),
        "evaluate": ("evaluate:evaluate", "Compute congestion and hop-bytes of a placement."),
        "compare": ("evaluate:compare", "Compare placements link by link."),
        "export": ("evaluate:export", "Write a placement as a launcher's file."),
    },
    "Research": {
        "generate": ("generate", "Generate fabrics and communication profiles by formula."),
        "simulate": ("simulate", "Replay an application's messages for one or more placements."),
        "reconfigure": ("reconfigure", "Plan the circuits of an optical switch."),
        "query": ("database:query", "Run a read-only Cypher statement."),
        "selfcheck": (
            "status:selfcheck",
            "Compare what the program computes with slow, simple computations.",
        ),
    },
    "Administer": {
        "db": (
            "database:db",
            "Database: status, start, stop, migrate, backup, restore, verify, prune, compact.",
        ),
        "serve": ("serve", "Run collectors, ingest, and serve metrics and a JSON API over HTTP."),
        "doctor": ("status:doctor", "Check the installation, the database and its data."),
        "config": ("status:config", "Show the settings in use and where each comes from."),
        "demo": ("serve:demo", "Run every step once on the sample data that is included."),
    },
}
"""Subcommands by task, as ``almanac --help`` lists them.

For each: its module under `almanac.commands` and the name in it (default: `command`), and its help.
"""
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
"""The same without sections."""

EXIT_FAILED, EXIT_USAGE, EXIT_UNREACHABLE, EXIT_INTERRUPTED = 1, 2, 3, 130


class LazyGroup(click.Group):
    """A command group that imports a subcommand when it runs, not when it is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a subcommand, or return None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(f"almanac.commands.{module}"), name or "command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand that the words name; an unknown name is an error with the closest names."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=COMMANDS, ctx=ctx
            ) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands by task, without importing them."""
        for task, commands in SECTIONS.items():
            with formatter.section(task):
                formatter.write_dl([(name, about) for name, (_, about) in commands.items()])


@click.group(cls=LazyGroup)
@click.version_option(package_name="fabric-almanac", prog_name="almanac")
@click.option(
    "--db",
    metavar="URI",
    help="Database, such as bolt://host:7687 (default: $ALMANAC_DB, the configuration file, or the embedded "
    "server).",
)
@click.pass_context
def cli(ctx: click.Context, db: str | None) -> None:
    """Record cluster interconnects in a graph database and analyse them."""
    ctx.obj = db
    if ctx.invoked_subcommand != "run":  # its job waits, and only a search needs kernels
        from almanac.kernel_cache import choose_kernel_cache

        choose_kernel_cache()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit the process.

    Args:
        arguments: Words after ``almanac``; default: those of the process.
    """
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
            _print_json_error("UsageError", error.format_message())
        else:
            error.show()
        code = error.exit_code if isinstance(error, click.UsageError) else EXIT_FAILED
    except BrokenPipeError:
        # The reader of the pipe (head, less) ended: no error, but Python must not flush into the pipe again.
        sys.stdout = sys.stderr
        code = 0
    except Exception as error:
        code = _report(error, given)
    sys.exit(code if isinstance(code, int) else 0)


def _report(error: Exception, words: Sequence[str]) -> int:
    """Print an error of the program or of a file and return its exit code; raise any other error again."""
    from almanac.options import option_of
    from almanac.output.printing import note
    from registry.errors import AlmanacError, DatabaseUnavailable, InputError, InvalidValue

    if isinstance(error, OSError) and error.filename is not None:
        error = InputError(error.strerror or "cannot be used", path=str(error.filename))
    if not isinstance(error, AlmanacError):
        raise error
    if isinstance(error, InvalidValue):
        error.reason = error.named(option_of(error.field, (word.partition("=")[0] for word in words)))
    if "--json" in words:
        _print_json_error(type(error).__name__, error.reason, error.path, error.line, error.text)
    else:
        note(f"almanac: {error}")
    return EXIT_UNREACHABLE if isinstance(error, DatabaseUnavailable) else EXIT_FAILED


def _print_json_error(
    error: str, reason: str, path: str | None = None, line: int | None = None, text: str | None = None
) -> None:
    """Print an error as one JSON object on standard error."""
    fields = {"error": error, "path": path, "line": line, "text": text, "reason": reason}
    click.echo(json.dumps(fields), err=True)
