"""Settings: where each comes from, in order: command line, environment, configuration file, default.

The file is ``config.toml`` in the user's configuration folder, or what ALMANAC_CONFIG names::

    db = "bolt://fabric.example:7687"     # embedded where absent
    db_user = "neo4j"
    db_password_file = "/etc/almanac/password"   # mode 0600
    db_name = "neo4j"
    home = "/var/lib/almanac"             # data of the embedded server
    idle_seconds = 900                    # the embedded server stops after this long without use

Environment: ALMANAC_DB, ALMANAC_DB_USER, ALMANAC_DB_PASSWORD, ALMANAC_DB_PASSWORD_FILE, ALMANAC_DB_NAME,
ALMANAC_HOME, ALMANAC_IDLE_SECONDS. A password is never taken from the command line nor from the
configuration file itself.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from registry.errors import ConfigError
from registry.progress import Progress, silent

if TYPE_CHECKING:
    from registry.registry import Registry

DEFAULT_IDLE_SECONDS = 900.0
_KEYS = ("db", "db_user", "db_password_file", "db_name", "home", "idle_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings in force.

    Attributes
    ----------
    db : str or None
        Bolt URI; None is the embedded server.
    user, password, name : str or None
        Credentials and database name for `db`.
    home : Path
        Data folder of the embedded server.
    idle_seconds : float
        The embedded server stops after this long without use.
    origin : mapping of str to str
        Setting: where its value comes from.
    config_path : Path
        The configuration file that was looked for.
    """

    db: str | None
    user: str | None
    password: str | None = field(repr=False)
    name: str | None
    home: Path
    idle_seconds: float
    origin: Mapping[str, str]
    config_path: Path

    def open_registry(self, progress: Progress = silent) -> Registry:
        """The registry of these settings; the embedded server is started on demand.

        Raises
        ------
        DatabaseUnavailable
        SchemaVersionError
        """
        from registry.registry import Registry

        return Registry.open(
            self.db,
            user=self.user,
            password=self.password,
            name=self.name,
            home=self.home,
            idle_seconds=self.idle_seconds,
            progress=progress,
        )


def load_settings(db: str | None = None, environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from a ``--db`` option, the environment and the configuration file.

    Raises
    ------
    ConfigError
        A file that is no TOML, an unknown key, a password file that others can read.
    """
    from platformdirs import user_config_path, user_data_path

    config_path = Path(environment.get("ALMANAC_CONFIG") or user_config_path("almanac") / "config.toml")
    stored = _read_config(config_path, required="ALMANAC_CONFIG" in environment)
    origin: dict[str, str] = {}

    def pick(key: str, option: str | None = None) -> str | None:
        variable = f"ALMANAC_{key.upper()}"
        for value, source in (
            (option, "command line"),
            (environment.get(variable) or None, variable),
            (stored.get(key), str(config_path)),
        ):
            if value is not None:
                origin[key] = source
                return str(value)
        origin[key] = "default"
        return None

    uri = pick("db", db)
    if uri == "embedded":
        uri = None
    if uri is not None and "://" not in uri:
        raise ConfigError("db", f"{uri!r} is no URI such as bolt://localhost:7687")
    home = pick("home")
    return Settings(
        db=uri,
        user=pick("db_user"),
        password=_password(environment, pick("db_password_file"), origin),
        name=pick("db_name"),
        home=Path(home).expanduser() if home else user_data_path("almanac"),
        idle_seconds=_seconds(pick("idle_seconds")),
        origin=origin,
        config_path=config_path,
    )


def _read_config(path: Path, required: bool) -> dict[str, object]:
    if not path.exists() and not required:
        return {}
    try:
        stored = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError("ALMANAC_CONFIG", str(error), path=path) from error
    for key in stored:
        if key not in _KEYS:
            raise ConfigError(key, f"is not known; known: {', '.join(_KEYS)}", path=path)
    return stored


def _password(environment: Mapping[str, str], file: str | None, origin: dict[str, str]) -> str | None:
    variable = "ALMANAC_DB_PASSWORD"
    if environment.get(variable):
        origin.update(db_password=variable)
        return environment[variable]
    if file is None:
        origin.update(db_password="default")  # noqa: S106 - where it comes from, no secret
        return None
    path = Path(file).expanduser()
    try:
        mode = path.stat().st_mode
        secret = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("db_password_file", str(error), path=path) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError("db_password_file", f"others can read it; run: chmod 600 {path}", path=path)
    origin.update(db_password=str(path))
    return secret


def _seconds(text: str | None) -> float:
    if text is None:
        return DEFAULT_IDLE_SECONDS
    try:
        seconds = float(text)
    except ValueError as error:
        raise ConfigError("idle_seconds", f"{text!r} is no number of seconds") from error
    if not 1 <= seconds <= 1e9:
        raise ConfigError("idle_seconds", f"{text} is outside 1 .. 1e9")
    return seconds
