"""The reference pages and man pages of commands and settings are those of the program."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from almanac.cli import cli
from almanac.man_pages import man_page, write_man_pages
from almanac.reference import commands, reference
from almanac.settings import load_settings
from tests.support import paths

ROOT = paths.ROOT


def test_every_command_and_option_is_described() -> None:
    for words, command in commands():
        assert command.help, words
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.name not in ("objective", "seed", "port"):
                assert parameter.help or parameter.required, f"almanac {words}: --{parameter.name}"


def test_the_written_reference_is_that_of_the_commands() -> None:
    written = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    assert written == reference(), "run: make docs"


def test_the_page_of_settings_has_every_setting_with_its_default(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    written = {
        key: default.strip("` ") for key, default in re.findall(r"^\| `(\w+)` \|([^|]*)\|", page, re.M)
    }
    (tmp_path / "empty.toml").touch()
    values = load_settings(environment={"ALMANAC_CONFIG": str(tmp_path / "empty.toml")}).values()
    assert set(written) == {*values, "db_password_file", "dashboard_secret_file"}
    for key in set(values) - {"home", "spool_folder", "error_limits"}:
        value = values[key]
        shown = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        assert written[key].lower() == shown.lower(), key


def test_the_page_of_settings_shows_a_file_that_can_be_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)
    password = tmp_path / "password"
    password.write_text("secret")
    password.chmod(0o600)
    file = tmp_path / "config.toml"
    file.write_text(example.replace("/etc/almanac/password", str(password)))
    settings = load_settings(environment={"ALMANAC_CONFIG": str(file)})
    assert (settings.user, settings.password, settings.limits) == ("neo4j", "secret", {"link_downed": 5})


def test_every_command_has_a_page_with_all_options(tmp_path: Path) -> None:
    write_man_pages(tmp_path / "man")
    for words, command in commands():
        page = (tmp_path / "man" / f"almanac-{words.replace(' ', '-')}.1").read_text("utf-8")
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.opts[0].replace("-", "\\-") in page, words
    program = (tmp_path / "man" / "almanac.1").read_text("utf-8")
    assert "\n.B \\&almanac cluster\n" in program
    assert "almanac map" in man_page("", cli)
    assert len(list((tmp_path / "man").iterdir())) == 1 + len(list(commands()))


@pytest.mark.parametrize("text", [".so /etc/passwd", "'request", "a \\ backslash"])
def test_text_of_help_is_no_request_of_roff(text: str) -> None:
    command = click.Command("odd", help=text)
    lines = man_page("odd", command).splitlines()
    assert not any(line.startswith((".so", "'")) for line in lines)
    assert "\\&" + text.replace("\\", "\\e") in lines
