"""Options of commands that delete or move stored data: rehearsal, confirmation and JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import click

from almanac.options.common import add_options, json_option
from almanac.output.printing import note

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

DEPENDENTS = click.option(
    "--with-dependents", is_flag=True, help="Delete what depends on it too: placements, simulations, ..."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destructive:
    """Choices of the user of a command that deletes.

    Attributes
    ----------
    dry_run : bool
        True to change nothing.
    yes : bool
        True to ask nothing.
    as_json : bool
        True to print JSON.
    """

    dry_run: bool
    yes: bool
    as_json: bool

    def carry_out(self, what: str, act: Callable[[bool], T], lines: Callable[[T], Iterable[str]]) -> T:
        """Return the result of a change, or of its rehearsal; ask before the change.

        Parameters
        ----------
        what : str
            The change as a question: ``Delete cluster hpc1``.
        act : callable
            Does it, or only returns what would be done if its argument is True.
        lines : callable
            Returns a description of the result.
        """
        if self.dry_run or self.yes:
            return act(self.dry_run)
        if not sys.stdin.isatty():
            raise click.UsageError(
                "no terminal to ask for confirmation: add --yes, or --dry-run to list what would change"
            )
        for line in lines(act(True)):
            note(line)
        if not click.confirm(f"{what}?", err=True):
            note("nothing was changed")
            click.get_current_context().exit(1)
        return act(False)


def destructive_options(function: F) -> F:
    """Add ``--dry-run``, ``--yes`` and ``--json`` to a command, which gets them as `Destructive`."""

    @wraps(function)
    def command(dry_run: bool, yes: bool, as_json: bool, **others: Any) -> Any:
        return function(how=Destructive(dry_run=dry_run, yes=yes, as_json=as_json), **others)

    options = (
        click.option("--dry-run", is_flag=True, help="Change nothing, print what would be changed."),
        click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation."),
        json_option,
    )
    return cast(F, add_options(command, options))
