"""The command reference, docs/commands.md, written from the commands themselves: ``make docs``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from almanac.cli import COMMANDS, cli

_HEAD = """# Commands

Written by `make docs` from the commands themselves. Every reading command takes `--json`: one document on
standard output, its keys in [json.md](json.md); an error is then one JSON object on standard error
with `error`, `path`, `line`, `text` and `reason`. Progress goes to standard error.
Exit codes: 0 ok, 1 failed, 2 usage, 3 database unreachable, 130 interrupted with the best result so far kept.
"""


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with the words that call it, groups before their members."""
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", one) for sub, one in command.commands.items())


def reference() -> str:
    """The whole page as Markdown."""
    parts = [_HEAD]
    for words, command in commands():
        context = click.Context(
            command, info_name=f"almanac {words}", terminal_width=100, max_content_width=100
        )
        depth = "##" if " " not in words else "###"
        parts.append(f"{depth} almanac {words}\n\n```\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    click.echo(reference(), nl=False)
