"""The table [serve] of the configuration file: its meaning, and errors that name key and file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from almanac.service.configuration import ServiceSettings, read_service
from almanac.settings import load_settings
from registry.errors import ConfigError

SCAN = """
[[serve.collectors]]
name = "scan"
command = ["ibnetdiscover", "-C", "mlx5_0"]
cluster = "hpc1"
interval_seconds = 900
"""
ADVISE = """
[[serve.commands]]
name = "advise"
arguments = ["advise", "jobs", "hpc1"]
interval_seconds = 3600
timeout_seconds = 60
jitter_seconds = 5
"""


def service(folder: Path, text: str, **options: Any) -> ServiceSettings:
    path = folder / "config.toml"
    path.write_text(f'home = "{folder}"\n{text}')
    return read_service(load_settings(None, {"ALMANAC_CONFIG": str(path)}), **options)


def test_an_empty_configuration_has_defaults_and_a_token_of_its_own(tmp_path: Path) -> None:
    first = service(tmp_path, "")
    assert (first.address, first.port, first.tasks) == ("127.0.0.1", 8600, ())
    assert len(first.token) >= 32
    assert first.token_file.stat().st_mode & 0o777 == 0o600
    assert service(tmp_path, "").token == first.token
    assert service(tmp_path, "[serve]\nport = 1\n", address="::1", port=7).port == 7


def test_tasks_are_read(tmp_path: Path) -> None:
    scan, advise = service(tmp_path, SCAN + 'format = "ibnetdiscover"\nrate = 1e9\n' + ADVISE).tasks
    assert scan.command == ("ibnetdiscover", "-C", "mlx5_0")
    assert (scan.interval, scan.timeout, scan.jitter) == (900, 900, 0)
    assert scan.options is not None
    assert (scan.options.cluster, scan.options.format, scan.options.rate) == ("hpc1", "ibnetdiscover", 1e9)
    assert (advise.command, advise.timeout, advise.jitter) == (("advise", "jobs", "hpc1"), 60, 5)
    assert advise.options is None


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("serve = 3\n", "serve", "write \\[serve\\]"),
        ("[serve]\nprot = 1\n", "serve.prot", "known: address, port"),
        ('[serve]\nport = "x"\n', "serve.port", "is not a number from 0 to 65535"),
        ("[serve]\nport = 65536\n", "serve.port", "from 0 to 65535"),
        ("[serve]\nport = true\n", "serve.port", "from 0 to 65535"),
        ("[serve]\nport = nan\n", "serve.port", "from 0 to 65535"),
        ("[serve]\naddress = 1\n", "serve.address", "is not a text"),
        ("[serve]\ncollectors = 1\n", "serve.collectors", "write \\[\\[serve.collectors\\]\\]"),
        (SCAN.replace('name = "scan"\n', ""), "serve.collectors[0].name", "is missing"),
        (SCAN.replace('"scan"', '"../scan"'), "serve.collectors[0].name", "is not a name"),
        (SCAN + SCAN, "serve.name", "'scan' is given twice"),
        (SCAN.replace('["ibnetdiscover", "-C", "mlx5_0"]', '"ls"'), "serve.collectors[0].command", "list"),
        (SCAN.replace('["ibnetdiscover", "-C", "mlx5_0"]', "[]"), "serve.collectors[0].command", "list"),
        (SCAN.replace('cluster = "hpc1"\n', ""), "serve.collectors[0].cluster", "is missing"),
        (SCAN.replace("= 900", "= 0"), "serve.collectors[0].interval_seconds", "from 1 to"),
        (SCAN.replace("interval_seconds = 900", ""), "serve.collectors[0].interval_seconds", "is missing"),
        (SCAN + "timeout_seconds = inf\n", "serve.collectors[0].timeout_seconds", "from 1 to"),
        (SCAN + "jitter_seconds = -1\n", "serve.collectors[0].jitter_seconds", "from 0 to"),
        (SCAN + 'shell = "true"\n', "serve.collectors[0].shell", "known"),
        (ADVISE.replace("arguments", "command"), "serve.commands[0].command", "known"),
    ],
)
def test_wrong_values_are_named_with_key_and_file(tmp_path: Path, text: str, key: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        service(tmp_path, text)
    assert caught.value.key == key
    assert caught.value.path == str(tmp_path / "config.toml")


def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    for content, mode, words in (
        (None, 0, "No such file"),
        ("0123456789abcdef\n", 0o644, "chmod 600"),
        ("0123456789abcdef\n", 0o640, "chmod 600"),
        ("short\n", 0o600, "at least 16"),
        ("", 0o600, "at least 16"),
        ("0123456789abcdé \n", 0o600, "ASCII"),
    ):
        if content is not None:
            token.write_text(content)
            token.chmod(mode)
        with pytest.raises(ConfigError, match=words) as caught:
            service(tmp_path, f'[serve]\ntoken_file = "{token}"\n')
        assert (caught.value.key, caught.value.path) == ("serve.token_file", str(token))
