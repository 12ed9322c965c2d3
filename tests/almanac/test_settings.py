"""Where settings come from, and which are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from almanac.settings import load_settings
from registry.errors import ConfigError


def config(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return {"ALMANAC_CONFIG": str(path)}


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    environment = config(tmp_path, 'db = "bolt://file:1"\n')
    assert load_settings(None, environment).db == "bolt://file:1"
    environment["ALMANAC_DB"] = "bolt://environment:2"
    assert load_settings(None, environment).db == "bolt://environment:2"
    settings = load_settings("bolt://option:3", environment)
    assert settings.db == "bolt://option:3"
    assert settings.origin["db"] == "command line"


def test_the_embedded_server_is_the_default_and_can_be_asked_for(tmp_path: Path) -> None:
    environment = config(tmp_path, 'db = "bolt://file:1"\n')
    assert load_settings("embedded", environment).db is None
    assert load_settings(None, config(tmp_path, "")).db is None


def test_a_password_comes_from_the_environment_or_a_file_that_only_the_owner_reads(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hidden\n")
    secret.chmod(0o600)
    environment = config(tmp_path, f'db_password_file = "{secret}"\n')
    settings = load_settings(None, environment)
    assert settings.password == "hidden"
    assert "hidden" not in repr(settings)
    secret.chmod(0o640)
    with pytest.raises(ConfigError, match="others can read it"):
        load_settings(None, environment)
    environment["ALMANAC_DB_PASSWORD"] = "shown"
    assert load_settings(None, environment).password == "shown"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("database = 1\n", "database"),
        ("db = \n", "ALMANAC_CONFIG"),
        ('db = "localhost:7687"\n', "db"),
        ('idle_seconds = "soon"\n', "idle_seconds"),
        ("idle_seconds = 0\n", "idle_seconds"),
        ('db_password = "x"\n', "db_password"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(None, config(tmp_path, text))
    assert caught.value.key == key


def test_a_configuration_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_settings(None, {"ALMANAC_CONFIG": str(tmp_path / "nowhere.toml")})


def test_the_data_folder_can_be_set(tmp_path: Path) -> None:
    environment = config(tmp_path, "") | {"ALMANAC_HOME": str(tmp_path / "data"), "ALMANAC_IDLE_SECONDS": "5"}
    settings = load_settings(None, environment)
    assert settings.home == tmp_path / "data"
    assert settings.idle_seconds == 5
