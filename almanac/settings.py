"""Settings: where each comes from, in order: command line, environment, configuration file, default.

The file is ``config.toml`` in the user's configuration folder, or what ALMANAC_CONFIG names::

    db = "bolt://fabric.example:7687"     # embedded where absent
    db_user = "neo4j"
    db_password_file = "/etc/almanac/password"   # mode 0600
    db_name = "neo4j"
    home = "/var/lib/almanac"             # data of the embedded server
    idle_seconds = 900                    # the embedded server stops after this long without use
    dashboard_hide_users = true           # pages show pseudonyms
    dashboard_secret_file = "/etc/almanac/pseudonyms"   # mode 0600; made in `home` where not told
    dashboard_only_user = "alice"         # pages show this user's jobs only; or login:CLAIM, header:NAME
    dashboard_operators = ["root"]        # who sees all jobs, where login or header tell who looks

Environment: ALMANAC_DB, ALMANAC_DB_USER, ALMANAC_DB_PASSWORD, ALMANAC_DB_PASSWORD_FILE, ALMANAC_DB_NAME,
ALMANAC_HOME, ALMANAC_IDLE_SECONDS, ALMANAC_DASHBOARD_HIDE_USERS, ALMANAC_DASHBOARD_SECRET,
ALMANAC_DASHBOARD_SECRET_FILE, ALMANAC_DASHBOARD_ONLY_USER, ALMANAC_DASHBOARD_OPERATORS (with commas between).
A password or secret is never taken from the command line nor from the configuration file itself.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from registry.errors import ConfigError
from registry.progress import Progress, silent

if TYPE_CHECKING:
    from registry.registry import Registry

DEFAULT_IDLE_SECONDS = 900.0
PSEUDONYM_KEY = "pseudonyms.key"
"""File in the data folder that keeps the secret of pseudonyms where no other is told."""
SHORTEST_SECRET = 16
"""Shortest secret of pseudonyms, in bytes: names are few, a short key is found by trying."""
_KEYS = (
    *("db", "db_user", "db_password_file", "db_name", "home", "idle_seconds"),
    *("dashboard_hide_users", "dashboard_secret_file", "dashboard_only_user", "dashboard_operators"),
)
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


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
    hide_users : bool
        Pages show pseudonyms instead of user names.
    secret : str or None
        That pseudonyms are made with; None: the one in `home`, see `pseudonym_key`.
    only_user : str or None
        Pages show the jobs of this user only; ``login:CLAIM`` or ``header:NAME``: of the one who looks.
    operators : tuple of str
        Users who see all jobs even so.
    """

    db: str | None
    user: str | None
    password: str | None = field(repr=False)
    name: str | None
    home: Path
    idle_seconds: float
    origin: Mapping[str, str]
    config_path: Path
    hide_users: bool = False
    secret: str | None = field(default=None, repr=False)
    only_user: str | None = None
    operators: tuple[str, ...] = ()

    def pseudonym_key(self) -> bytes:
        """The secret of pseudonyms; made at first use, readable by the owner only, where none is told.

        Raises
        ------
        ConfigError
        """
        if self.secret is not None:
            return self.secret.encode("utf-8")
        path = self.home / PSEUDONYM_KEY
        try:
            if not path.exists():
                _write_new(path, secrets.token_hex(32))
        except OSError as error:
            raise ConfigError("dashboard_secret_file", f"cannot be made: {error}", path=path) from error
        return _secret_in(path, "dashboard_secret_file").encode("utf-8")

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


def load_settings(
    db: str | None = None, environment: Mapping[str, str] = os.environ, **options: str | None
) -> Settings:
    """Settings from options, the environment and the configuration file.

    Parameters
    ----------
    db : str, optional
        Of ``--db``.
    **options : str or None
        Of other options, by the key of their setting; None: not given.

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
            (option or options.get(key), "command line"),
            (environment.get(variable) or None, variable),
            (stored.get(key), str(config_path)),
        ):
            if value is not None:
                origin[key] = source
                return ",".join(map(str, value)) if isinstance(value, list) else str(value)
        origin[key] = "default"
        return None

    uri = pick("db", db)
    if uri == "embedded":
        uri = None
    if uri is not None and "://" not in uri:
        raise ConfigError("db", f"{uri!r} is no URI such as bolt://localhost:7687")
    home = pick("home")
    hide = _truth("dashboard_hide_users", pick("dashboard_hide_users"))
    secret = _secret(environment, "dashboard_secret", pick("dashboard_secret_file"), origin)
    if secret is not None and len(secret.encode("utf-8")) < SHORTEST_SECRET:
        raise ConfigError("dashboard_secret", f"is shorter than {SHORTEST_SECRET} bytes")
    return Settings(
        db=uri,
        user=pick("db_user"),
        password=_secret(environment, "db_password", pick("db_password_file"), origin),
        name=pick("db_name"),
        home=Path(home).expanduser() if home else user_data_path("almanac"),
        idle_seconds=_seconds(pick("idle_seconds")),
        origin=origin,
        config_path=config_path,
        hide_users=hide,
        secret=secret,
        only_user=_only_user(pick("dashboard_only_user")),
        operators=_names(pick("dashboard_operators")),
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


def _secret(environment: Mapping[str, str], key: str, file: str | None, origin: dict[str, str]) -> str | None:
    """A password or secret: from the environment, or a file that only its owner reads."""
    variable = f"ALMANAC_{key.upper()}"
    if environment.get(variable):
        origin[key] = variable
        return environment[variable]
    if file is None:
        origin[key] = "default"
        return None
    path = Path(file).expanduser()
    origin[key] = str(path)
    return _secret_in(path, f"{key}_file")


def _secret_in(path: Path, key: str) -> str:
    try:
        mode = path.stat().st_mode
        secret = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(key, str(error), path=path) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(key, f"others can read it; run: chmod 600 {path}", path=path)
    return secret


def _write_new(path: Path, text: str) -> None:
    """Write a file of mode 0600 whole, unless another process was first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)


def _truth(key: str, text: str | None) -> bool:
    value = (text or "no").lower()
    if value not in (*_YES, *_NO):
        raise ConfigError(key, f"{text!r} is neither {' nor '.join((_YES[1], _NO[1]))}")
    return value in _YES


def _only_user(text: str | None) -> str | None:
    """A name, or where the name of who looks is told."""
    if text is None:
        return None
    where, colon, name = text.partition(":")
    if not text.strip() or (colon and (where not in ("login", "header") or not name)):
        raise ConfigError("dashboard_only_user", f"{text!r} is no user, login:CLAIM or header:NAME")
    return text.strip()


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


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
