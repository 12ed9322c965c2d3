"""``almanac run``: start a launcher with its ranks placed, and measure the run.

``almanac slurm install``: write the script by which Slurm places the tasks of srun.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import almanac.running
from almanac.output.printing import note, say, write_text
from registry.errors import ConfigError, InputError

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
    from almanac.running.processes import PreparedChild

    for given, name in ((wanted["profile"], "--profile"), (no_measure, "--no-measure")):
        if wanted["record"] and given:
            raise click.UsageError(f"give either --record or {name}")
    try:
        with PreparedChild(_import_modules) as child:  # what is imported here need not be waited for
            from almanac.options import current_settings
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
    from almanac.options import current_settings
    from almanac.running.processes import Steps, become, end_as
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


SCRIPT = "cli_filter.lua"
"""Name under which Slurm looks for the script, beside its slurm.conf."""
_HEAD = "-- Fabric Almanac:"
_SETTINGS = 'local ALMANAC, SECONDS = "almanac", 5\n'
_PLUG_INS = re.compile(r"(?im)^\s*CliFilterPlugins\s*=\s*([^#\s]*)")


@click.group("slurm")
def slurm() -> None:
    """Let Slurm place the tasks of srun in jobs that opt in."""


@slurm.command("install")
@click.option("--to", type=click.Path(path_type=Path), help=f"File (default: {SCRIPT} beside slurm.conf).")
@click.option(
    "--program",
    metavar="PATH",
    help="The almanac command on the hosts where srun starts (default: this one).",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=SECONDS,
    show_default=True,
    help="Longest time for a placement; srun waits for it, and 5 s longer at most.",
)
@click.option("--dry-run", is_flag=True, help="Print the script, write nothing.")
def install(to: Path | None, program: str | None, seconds: float, dry_run: bool) -> None:
    """Write the script that runs srun with its tasks placed, in jobs with --comment=almanac:APPLICATION.

    A script that is not of this program is never overwritten. slurm.conf is not changed: what it needs is
    printed.
    """
    conf = Path(os.environ.get("SLURM_CONF") or "/etc/slurm/slurm.conf")
    target = to or conf.parent / SCRIPT
    text = _script(program or _this_program(), seconds)
    _require_own(target)
    if dry_run:
        say(text.removesuffix("\n"))
        note(f"would be written to {target}")
    else:
        write_text(str(target), text)
        target.chmod(0o644)
        note(f"written to {target}")
    for step in _steps(target, conf):
        note(step)


def _script(program: str, seconds: float) -> str:
    """Return the script, which calls a program with a time limit."""
    text = (Path(almanac.running.__file__).parent / SCRIPT).read_text("utf-8")
    assert text.count(_SETTINGS) == 1
    quoted = json.dumps(program, ensure_ascii=False)
    return text.replace(_SETTINGS, f"local ALMANAC, SECONDS = {quoted}, {seconds:g}\n")


def _this_program() -> str:
    """Return the path of the command; raises `ConfigError` if it is not installed."""
    folder = str(Path(sys.executable).parent)
    found = shutil.which("almanac", path=folder) or shutil.which("almanac")
    if found is None:
        raise ConfigError("--program", "the almanac command is not found: give --program PATH")
    return os.path.abspath(found)


def _require_own(target: Path) -> None:
    """Raise an error if another script is there, or whose it is cannot be seen."""
    try:
        present = target.read_text("utf-8", "replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=target) from error
    if not present.startswith(_HEAD):
        reason = "is a script of your own: choose another file by --to"
        raise InputError(f'{reason}, and put dofile("FILE") before the last line of {SCRIPT}', path=target)


def _steps(target: Path, conf: Path) -> list[str]:
    """Return what is left to do, as sentences."""
    try:
        found = _PLUG_INS.findall(conf.read_text("utf-8", "replace"))
    except OSError:
        found = []
    named = found[-1].split(",") if found else []
    steps = [
        "copy it to the same place on all hosts where srun or sbatch start: without it, they fail once "
        "slurm.conf names it"
    ]
    if target.name != SCRIPT:
        return [*steps, f'then put dofile("{target}") before the last line of {SCRIPT}']
    if "lua" in named:
        return [*steps, f"{conf} has CliFilterPlugins={found[-1]} already"]
    return [*steps, f"then put CliFilterPlugins={','.join([*filter(None, named), 'lua'])} into {conf}"]
