"""``almanac serve``: what it refuses before it starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from almanac.service.api import listen
from registry.errors import MissingExtra
from registry.installation import install_command
from tests.almanac.conftest import Almanac


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: Almanac) -> Path:
    """A configuration file that the command reads, with all data in this folder."""
    path = tmp_path / "serve.toml"
    monkeypatch.setenv("ALMANAC_CONFIG", str(path))
    monkeypatch.setenv("ALMANAC_HOME", str(tmp_path / "home"))
    path.write_text("[serve]\n")
    return path


def test_a_configuration_is_checked_without_a_start(config: Path, offline: Almanac) -> None:
    checked = offline("serve", "--check")
    assert (checked.code, checked.err) == (0, f"{config}: 0 tasks; no errors\n")
    config.write_text('[serve]\ncolectors = "x"\n')
    wrong = offline("serve", "--check")
    assert wrong.code == 1
    assert f"{config}: setting serve.colectors: is not a known setting" in wrong.err


def test_a_token_that_others_can_read_prevents_the_start(config: Path, offline: Almanac) -> None:
    token = config.with_name("token")
    token.write_text("0123456789abcdef")
    token.chmod(0o644)
    config.write_text(f'[serve]\ntoken_file = "{token}"\n')
    refused = offline("serve")
    assert refused.code == 1
    assert f"run: chmod 600 {token}" in refused.err


def test_a_port_in_use_is_an_error_in_one_line(config: Path, offline: Almanac) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        refused = offline("serve", "--port", port)
    assert refused.code == 1
    assert refused.err == (
        f"almanac: setting serve.port: 127.0.0.1:{port} cannot be used: Address already in use\n"
    )


def test_without_its_libraries_the_remedy_is_named(
    config: Path, offline: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    refused = offline("serve")
    assert refused.code == 1
    assert refused.err == f"almanac: {MissingExtra('fastapi', install_command('serve'))}\n"
