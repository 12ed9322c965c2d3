"""The spelling of exports: ``FORMAT=FILE``, as option ``--export`` or as argument of ``export``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Export(click.ParamType[tuple[str, str | None]]):
    """Type of an export: ``FORMAT=FILE``, or ``FORMAT`` alone for standard output.

    Parameters
    ----------
    names : callable
        Returns the names of the formats.
    needs_file : bool
        Whether ``FORMAT`` alone is an error.
    """

    name = "FORMAT=FILE"

    def __init__(self, names: Callable[[], Sequence[str]], *, needs_file: bool) -> None:
        self.names = names
        self.needs_file = needs_file

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str | None]:
        """Return the format and the file, or raise a usage error."""
        if isinstance(value, tuple):
            return value
        from registry.errors import UnknownName

        name, equals, path = str(value).partition("=")
        if name not in self.names():
            self.fail(UnknownName("format", name, self.names()).reason, param, ctx)
        if bool(equals) != bool(path) or (self.needs_file and not path):
            self.fail(f"{value!r} is not of the form FORMAT=FILE", param, ctx)
        return name, path or None


def export_option(names: Callable[[], Sequence[str]], help: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--export FORMAT=FILE`` to a command, which gets ``exports``."""
    kind = Export(names, needs_file=True)
    return click.option("--export", "exports", type=kind, metavar="FORMAT=FILE", multiple=True, help=help)


def export_argument(names: Callable[[], Sequence[str]], default: str | None = None) -> Callable[[F], F]:
    """Return a decorator that adds arguments ``FORMAT[=FILE]`` to a command, which gets ``exports``."""
    shown = "FORMAT[=FILE]..." if default is None else "[FORMAT[=FILE]...]"
    kind = Export(names, needs_file=False)
    options: dict[str, Any] = {"required": True} if default is None else {"default": ((default, None),)}
    return click.argument("exports", type=kind, nargs=-1, metavar=shown, **options)
