"""The command reference: every command and option is described."""

from __future__ import annotations

import click
import pytest

from almanac.reference import commands, reference
from tests.support import paths

ROOT = paths.ROOT


@pytest.mark.parametrize(
    ("words", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_and_option_is_described(words: str, command: click.Command) -> None:
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name not in ("objective", "seed", "port"):
            assert parameter.help or parameter.required, f"almanac {words}: --{parameter.name}"


def test_the_written_reference_is_that_of_the_commands() -> None:
    written = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    assert written == reference(), "run: make docs"
