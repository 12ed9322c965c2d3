"""A man page of every command, with every option."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from almanac.cli import cli
from almanac.man_pages import man_page, write_man_pages
from almanac.reference import commands


def test_every_command_has_a_page_with_all_options(tmp_path: Path) -> None:
    write_man_pages(tmp_path / "man")
    for words, command in commands():
        page = (tmp_path / "man" / f"almanac-{words.replace(' ', '-')}.1").read_text("utf-8")
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.opts[0].replace("-", "\\-") in page, words
    program = (tmp_path / "man" / "almanac.1").read_text("utf-8")
    assert "\n.B \\&almanac cluster\n" in program
    assert len(list((tmp_path / "man").iterdir())) == 1 + len(list(commands()))


@pytest.mark.parametrize("text", [".so /etc/passwd", "'request", "a \\ backslash"])
def test_text_of_help_is_no_request_of_roff(text: str) -> None:
    command = click.Command("odd", help=text)
    lines = man_page("odd", command).splitlines()
    assert not any(line.startswith((".so", "'")) for line in lines)
    assert "\\&" + text.replace("\\", "\\e") in lines


def test_a_group_lists_its_commands() -> None:
    assert "almanac map" in man_page("", cli)
