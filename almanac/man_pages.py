"""Write a man page of every command into a folder: ``make docs``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from almanac.cli import cli
from almanac.reference import commands


def man_page(words: str, command: click.Command) -> str:
    """Return the man page of a command in the language of roff.

    Parameters
    ----------
    words : str
        The words that call the command, without ``almanac``; empty for the program itself.
    """
    name = " ".join(["almanac", *words.split()])
    context = click.Context(command, info_name=name)
    about, *more = [_text(part) for part in (command.help or "").split("\n\n")]
    page = [
        f'.TH "{name.replace(" ", "-").upper()}" 1',
        f".SH NAME\n{name.replace(' ', '-')} \\- {about}",
        f".SH SYNOPSIS\n{_text(command.get_usage(context).removeprefix('Usage: '))}",
        "\n.PP\n".join([f".SH DESCRIPTION\n{about}", *more]),
        ".SH OPTIONS",
    ]
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    page += [_item(*record) for record in records if record and record[1]]
    if isinstance(command, click.Group):
        members = [(one, command.get_command(context, one)) for one in command.list_commands(context)]
        page.append(".SH COMMANDS")
        page += [_item(f"{name} {one}", member.get_short_help_str(100)) for one, member in members if member]
    return "\n".join([*page, ""])


def _item(term: str, text: str) -> str:
    return f".TP\n.B {_text(term)}\n{_text(text)}"


def _text(text: str) -> str:
    """Return text of help on one line, so that roff reads none of it as a request."""
    return "\\&" + " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")


def write_man_pages(folder: Path) -> None:
    """Write ``almanac.1`` and ``almanac-COMMAND.1`` of all commands into a folder; create it if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    for words, command in [("", cli), *commands()]:
        name = "-".join(["almanac", *words.split()])
        (folder / f"{name}.1").write_text(man_page(words, command), "utf-8")


if __name__ == "__main__":
    write_man_pages(Path(sys.argv[1]))
