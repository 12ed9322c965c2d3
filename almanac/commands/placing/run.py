"""``almanac run``: start a launcher with its ranks placed, and measure the run."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from almanac.running.run import Run

SECONDS = 5.0
"""Default of the longest time that a placement may take: the job waits for it."""


class Pattern(click.ParamType[re.Pattern[bytes]]):
    """Type of an option that takes a regular expression."""

    name = "PATTERN"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> re.Pattern[bytes]:
        """Return the expression, or raise a usage error if the text is none."""
        try:
            return re.compile(os.fsencode(value))
        except re.error as error:
            self.fail(f"{value!r} is not a regular expression: {error}", param, ctx)


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--profile",
    help="What the application sends: name or id of a profile (default: the newest one of the application "
    "with as many ranks).",
)
@click.option("--name", help="Name of the application (default: that of the profile, else of the program).")
@click.option("--cluster", help="Cluster of the job (default: that of the environment, or the only one).")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=SECONDS,
    show_default=True,
    help="Longest time until the launcher starts.",
)
@click.option("--in-order", is_flag=True, help="Keep the order of the ranks: a run to compare with.")
@click.option("--record", is_flag=True, help="Record the profile again; the ranks run in order.")
@click.option(
    "--step",
    type=Pattern(),
    help="Measure steps: regular expression of a line that the program prints once per step; its first "
    "group, if it has one, is the time in seconds.",
)
@click.option("--no-measure", is_flag=True, help="Do not measure: this process becomes the launcher.")
@click.option(
    "--dry-run", is_flag=True, help="Print the command, and why the ranks are not placed; start nothing."
)
@click.option("--explain", is_flag=True, help="Print what was found and how it is applied.")
@click.argument("words", metavar="LAUNCHER ...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    seconds: float,
    step: re.Pattern[bytes] | None,
    no_measure: bool,
    dry_run: bool,
    explain: bool,
    words: tuple[str, ...],
    **wanted: Any,
) -> None:
    """Start LAUNCHER, such as mpirun, srun or deepspeed, so that each rank runs where it is placed.

    Signals, exit code and output are the launcher's. If the ranks cannot be placed, one line says why, and
    the job runs in its own order. A placement is searched once for a profile, hosts and a fabric; later runs
    use it. An application without a profile is recorded by its first run, if its MPI library counts messages.
    The wall time is stored, see `almanac history measured`. The first run of a launcher on a cluster starts a
    small program before, which shows whether each rank runs where it should.
    """
    from almanac.running.guarded import PreparedChild

    for given, name in ((wanted["profile"], "--profile"), (no_measure, "--no-measure")):
        if wanted["record"] and given:
            raise click.UsageError(f"give either --record or {name}")
    try:
        with PreparedChild(_import_modules) as child:  # what is imported here need not be waited for
            from almanac.options.common import current_settings
            from almanac.running.order import Wanted
            from almanac.running.run import prepare_run

            verify = not (no_measure or dry_run)
            run = prepare_run(child, current_settings(), Wanted(**wanted), seconds, words, verify=verify)
    except Exception as error:  # whatever it is, the job runs
        from almanac.running.run import NOT_RECORDED, unplaced_run

        _warn(f"{NOT_RECORDED if wanted['record'] else 'not placed'}: {_reason(error)}")
        run = unplaced_run(words)
    from almanac.running.run import WARNINGS

    unplaced = [reason for reason in run.reasons if not reason.startswith(WARNINGS)]
    if dry_run and unplaced and not (explain or run.placed):
        _warn(f"not placed: {'; '.join(unplaced)}")
    for reason in run.reasons:
        if explain or reason.startswith(WARNINGS):
            _warn(reason)
    if (dry_run or no_measure) and run.recording is not None:
        run.recording.delete()
        run = replace(run, environment={}, recording=None)
    if dry_run:
        from almanac.output.printing import say

        variables = [f"{name}={shlex.quote(value)}" for name, value in run.environment.items()]
        say(" ".join([*variables, shlex.join(run.words)]))
        return
    try:
        _start(run, step, no_measure, explain)
    except OSError as error:
        _warn(f"{run.words[0]}: {error.strerror}")
        click.get_current_context().exit(127 if isinstance(error, FileNotFoundError) else 126)


def _import_modules() -> None:
    """Import what a known placement needs, in the child process: that takes longer than all else it does."""
    from almanac.running.order import import_modules

    import_modules()


def _start(run: Run, step: re.Pattern[bytes] | None, no_measure: bool, explain: bool) -> None:
    """Become the launcher, or run it, save what was measured and end as it ended."""
    from almanac.options.common import current_settings
    from almanac.running.attended import Steps, become, end_as
    from almanac.running.run import NOT_RECORDED, measure_run, save_run

    if no_measure or not (run.described or run.recording):
        become(run.words, {**os.environ, **run.environment})
    for name in (signal.SIGTERM, signal.SIGHUP):  # after the launcher's end they only stop the saving
        if signal.getsignal(name) == signal.SIG_DFL:
            signal.signal(name, signal.default_int_handler)
    code, measured = measure_run(run, None if step is None else Steps(step))
    try:
        identity, lost = save_run(current_settings(), code, measured, run.recording)
        if lost is not None:
            _warn(f"{NOT_RECORDED}: {lost}")
        if explain and identity is not None:
            _warn(f"measured run {identity}")
    except (Exception, KeyboardInterrupt) as error:
        kept = "" if run.recording is None else f"; the recording is in {run.recording.folder}"
        _warn(f"not stored: {_reason(error)}{kept}")
    end_as(code)


def _warn(text: str) -> None:
    """Print a line on standard error, if that is possible: the job does not depend on it."""
    from almanac.output.printing import note

    with contextlib.suppress(OSError):
        note(text)


def _reason(error: BaseException) -> str:
    """Return why something failed; an error that nobody foresaw is named with its type."""
    from registry.errors import AlmanacError

    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return str(error) if isinstance(error, AlmanacError) else f"{type(error).__name__}: {error}"
