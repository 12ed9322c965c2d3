"""``almanac slurm install``: write the script by which Slurm places the tasks of srun."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import click

import almanac.running
from almanac.commands.placing.run import SECONDS
from almanac.output.printing import note, say, write_text
from registry.errors import ConfigError, InputError

SCRIPT = "cli_filter.lua"
"""Name under which Slurm looks for the script, beside its slurm.conf."""
_HEAD = "-- Fabric Almanac:"
_SETTINGS = 'local ALMANAC, SECONDS = "almanac", 5\n'
_PLUG_INS = re.compile(r"(?im)^\s*CliFilterPlugins\s*=\s*([^#\s]*)")


@click.group("slurm")
def command() -> None:
    """Let Slurm place the tasks of srun in jobs that opt in."""


@command.command("install")
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
    """Raise an error if another script is there, or it cannot be told."""
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
