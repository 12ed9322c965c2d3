"""Settings, from the command line, the environment, the configuration file or a default, in this order.

docs/reference/settings.md lists them. Passwords and secrets are never read from the command line nor from
the configuration file itself.

Files with a password, token or key, which only their owner can read.

Conversion of the texts of settings to values; a text that is none raises `ConfigError`.
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
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_config_path, user_data_path

from registry.errors import AlmanacError, ConfigError, InvalidValue
from registry.progress import Progress, silent
from registry.upkeep.rules import ALL, Keep

if TYPE_CHECKING:
    from mapping.checks.finding import ErrorLimits
    from registry.registry import Registry
    from registry.upkeep.retention import Rules


def read_secret(path: Path, key: str, *, create: bool = False) -> str:
    """Return the text of a file that only its owner can read.

    Args:
        key: Setting that names the file, for errors.
        create: True to create the file with a random text if it does not exist.

    Raises:
        ConfigError
    """
    try:
        if create and not path.exists():
            _write_new(path, secrets.token_hex(32))
        mode = path.stat().st_mode
        secret = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(key, str(error), path=path) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(key, f"other users can read it; run: chmod 600 {path}", path=path)
    return secret


def _write_new(path: Path, text: str) -> None:
    """Create a file with mode 0600; keep the file of another process that was faster."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)


YES, NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def truth(key: str, text: str | None) -> bool:
    """Return True for yes and False for no or nothing."""
    value = (text or "no").lower()
    if value not in (*YES, *NO):
        raise ConfigError(key, f"{text!r} is neither {' nor '.join((YES[1], NO[1]))}")
    return value in YES


def only_user(text: str | None) -> str | None:
    """Return the name of a user, ``login:CLAIM`` or ``header:NAME``."""
    if text is None:
        return None
    where, colon, name = text.partition(":")
    if not text.strip() or (colon and (where not in ("login", "header") or not name)):
        raise ConfigError("dashboard_only_user", f"{text!r} is not a user name, login:CLAIM or header:NAME")
    return text.strip()


def names(text: str | None) -> tuple[str, ...]:
    """Return the names of a text, separated by commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def limits(key: str, text: str | None) -> dict[str, float]:
    """Return the numbers in ``NAME=NUMBER,NAME=NUMBER``; they may be infinite."""
    found: dict[str, float] = {}
    for entry in names(text):
        name, _, number = entry.partition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError as error:
            raise ConfigError(key, f"{entry!r} is not NAME=NUMBER") from error
    return found


def number(key: str, text: str | None, default: float, least: float, most: float = 1e9) -> float:
    """Return the number of a text, within limits, or the default."""
    if text is None:
        return default
    try:
        found = float(text)
    except ValueError as error:
        raise ConfigError(key, f"{text!r} is not a number") from error
    if not least <= found <= most:
        raise ConfigError(key, f"{text} is not between {least:g} and {most:g}")
    return found


def keep_rule(key: str, text: str | None) -> str:
    """Return a rule of retention as text; default: all is kept."""
    rule = text or ALL
    try:
        Keep.parse(rule)
    except InvalidValue as error:
        raise ConfigError(key, error.what) from error
    return rule


DEFAULT_IDLE_SECONDS = 900.0
DEFAULT_WAIT_SECONDS = 60.0
DEFAULT_SPOOL_MEGABYTES = 1000.0
DEFAULT_ERROR_HOURS = 24.0
DEFAULT_BIT_ERROR_RATE = 1e-12
PSEUDONYM_KEY = "pseudonyms.key"
"""File in the data folder with the secret of pseudonyms, if the settings name no other."""
SHORTEST_SECRET = 16
"""Shortest secret of pseudonyms, in bytes: a shorter one could be found by trial."""
_KEYS = (
    *("db", "db_user", "db_password_file", "db_name", "db_wait_seconds"),
    *("home", "idle_seconds", "spool_folder", "spool_megabytes"),
    "allowed_hosts",
    *("dashboard_hide_users", "dashboard_secret_file", "dashboard_only_user", "dashboard_operators"),
    *("error_limits", "error_hours", "bit_error_rate"),
    *(KEEP := ("keep_observations", "keep_counters", "keep_placements", "keep_runs")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings in use."""

    db: str | None
    """Bolt URI; None for the embedded server."""
    user: str | None
    password: str | None = field(repr=False)
    name: str | None
    """Credentials and database name for `db`."""
    home: Path
    """Data folder of the embedded server."""
    idle_seconds: float
    """Idle time after which the embedded server stops."""
    wait_seconds: float
    """How long a transaction is repeated if the server named by `db` restarts."""
    origin: Mapping[str, str]
    """Source of each setting's value."""
    config_path: Path
    """Configuration file, which may not exist."""
    hide_users: bool = False
    """True if pages show pseudonyms instead of user names."""
    secret: str | None = field(default=None, repr=False)
    """Key from which pseudonyms are computed; None for the one in `home`, see `pseudonym_key`."""
    only_user: str | None = None
    """User whose jobs pages show; ``login:CLAIM`` or ``header:NAME`` for the user who is logged in."""
    operators: tuple[str, ...] = ()
    """Users who see all jobs in spite of `only_user`."""
    allowed_hosts: tuple[str, ...] = ()
    """Names under which pages and the service are reached, besides those of this machine."""
    spool: Path
    """Folder of ingests that wait for the database."""
    spool_megabytes: float = DEFAULT_SPOOL_MEGABYTES
    """Maximum size of `spool`."""
    serve: Mapping[str, object] = field(default_factory=dict)
    """Table ``[serve]`` of the configuration file, see `almanac.serve.configuration`."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """Limits of error counters that differ from the default."""
    error_hours: float = DEFAULT_ERROR_HOURS
    """Period of these limits."""
    bit_error_rate: float = DEFAULT_BIT_ERROR_RATE
    """Symbol errors per bit that are only noted."""
    keep: Mapping[str, str] = field(default_factory=dict)
    """Rules of retention by their keys; see `registry.upkeep.retention`."""

    def values(self) -> dict[str, str | float | bool | None]:
        """Return the values of the settings by their keys."""
        return {
            "db": self.db or "embedded",
            "db_user": self.user,
            "db_password": self.password,
            "db_name": self.name,
            "db_wait_seconds": self.wait_seconds,
            "home": str(self.home),
            "idle_seconds": self.idle_seconds,
            "spool_folder": str(self.spool),
            "spool_megabytes": self.spool_megabytes,
            "allowed_hosts": ",".join(self.allowed_hosts),
            "dashboard_hide_users": self.hide_users,
            "dashboard_only_user": self.only_user,
            "dashboard_operators": ",".join(self.operators),
            "dashboard_secret": self.secret,
            "error_limits": ",".join(f"{name}={limit:g}" for name, limit in self.limits.items()),
            "error_hours": self.error_hours,
            "bit_error_rate": self.bit_error_rate,
            **self.keep,
        }

    def retention(self) -> Rules:
        """Return what `almanac db prune` keeps.

        Raises:
            ConfigError: The rule of counters cannot be applied to them.
        """
        from registry.upkeep.retention import Rules
        from registry.upkeep.rules import Keep

        try:
            return Rules(**{key.removeprefix("keep_"): Keep.parse(rule) for key, rule in self.keep.items()})
        except AlmanacError as error:
            raise ConfigError("keep_counters", error.reason) from error

    def error_limits(self) -> ErrorLimits:
        """Return the limits of error counters of these settings.

        Raises:
            ConfigError: There is no such counter.
        """
        from mapping.checks.finding import DEFAULT_LIMITS, ErrorLimits

        period, errors = timedelta(hours=self.error_hours), {**DEFAULT_LIMITS, **self.limits}
        try:
            return ErrorLimits(period=period, errors=errors, bit_error_rate=self.bit_error_rate)
        except AlmanacError as error:
            raise ConfigError("error_limits", error.reason) from error

    def pseudonym_key(self) -> bytes:
        """Return the secret of pseudonyms; create it at first use if the settings have none.

        Raises:
            ConfigError
        """
        if self.secret is not None:
            return self.secret.encode("utf-8")
        path = self.home / PSEUDONYM_KEY
        return read_secret(path, "dashboard_secret_file", create=True).encode("utf-8")

    def open_registry(self, progress: Progress = silent) -> Registry:
        """Open the registry of these settings; start the embedded server if needed.

        Raises:
            DatabaseUnavailable
            SchemaVersionError
        """
        from registry.registry import Registry

        return Registry.open(
            self.db,
            user=self.user,
            password=self.password,
            name=self.name,
            wait_seconds=self.wait_seconds,
            home=self.home,
            idle_seconds=self.idle_seconds,
            progress=progress,
        )


def environment_of(settings: Settings) -> dict[str, str]:
    """Return environment variables that give another process the settings of this command."""
    given = {f"ALMANAC_{key.upper()}": value for key, value in settings.values().items()}
    return {**os.environ, **{key: str(value) for key, value in given.items() if value is not None}}


def load_settings(
    db: str | None = None, environment: Mapping[str, str] = os.environ, **options: str | None
) -> Settings:
    """Read the settings from options, the environment and the configuration file.

    Args:
        db: Value of ``--db``.
        **options: Values of other options, by the key of their setting; None if not given.

    Raises:
        ConfigError: A file is not TOML, has an unknown key, or is a password file that other users can read.
    """
    given = _Given(environment, options | {"db": db})
    uri = given.pick("db")
    if uri == "embedded":
        uri = None
    if uri is not None:
        from registry.database.driver import credentials, shown

        if wrong := credentials(uri):
            raise ConfigError("db", f"{shown(uri)!r}: {wrong}")
    if uri is not None and "://" not in uri:
        raise ConfigError("db", f"{uri!r} is not a URI such as bolt://localhost:7687")
    home = given.folder("home", user_data_path("almanac"))
    secret = given.secret("dashboard_secret")
    if secret is not None and len(secret.encode("utf-8")) < SHORTEST_SECRET:
        raise ConfigError("dashboard_secret", f"is shorter than {SHORTEST_SECRET} bytes")
    return Settings(
        db=uri,
        user=given.pick("db_user"),
        password=given.secret("db_password"),
        name=given.pick("db_name"),
        home=home,
        idle_seconds=given.number("idle_seconds", DEFAULT_IDLE_SECONDS, 1.0),
        wait_seconds=given.number("db_wait_seconds", DEFAULT_WAIT_SECONDS, 0.0),
        origin=given.origin,
        config_path=given.path,
        hide_users=truth("dashboard_hide_users", given.pick("dashboard_hide_users")),
        secret=secret,
        only_user=only_user(given.pick("dashboard_only_user")),
        operators=names(given.pick("dashboard_operators")),
        allowed_hosts=names(given.pick("allowed_hosts")),
        spool=given.folder("spool_folder", home / "spool"),
        spool_megabytes=given.number("spool_megabytes", DEFAULT_SPOOL_MEGABYTES, 1.0),
        serve=_table(given.stored, "serve", given.path),
        limits=limits("error_limits", given.pick("error_limits")),
        error_hours=given.number("error_hours", DEFAULT_ERROR_HOURS, 1e-3),
        bit_error_rate=given.number("bit_error_rate", DEFAULT_BIT_ERROR_RATE, 0.0, 1e-3),
        keep={key: keep_rule(key, given.pick(key)) for key in KEEP},
    )


class _Given:
    """What options, the environment and the configuration file give.

    Attributes:
        path: Configuration file.
        stored: Its keys and values.
        origin: Source of each value that was asked for, by key.
    """

    def __init__(self, environment: Mapping[str, str], options: Mapping[str, str | None]) -> None:
        named = environment.get("ALMANAC_CONFIG")
        self.path = Path(named or user_config_path("almanac") / "config.toml")
        self.stored = _read_config(self.path, required="ALMANAC_CONFIG" in environment)
        self.origin: dict[str, str] = {}
        self._environment = environment
        self._options = options

    def pick(self, key: str) -> str | None:
        """Return the text of a setting, or None if nothing gives it."""
        variable = f"ALMANAC_{key.upper()}"
        for value, source in (
            (self._options.get(key) or None, "command line"),
            (self._environment.get(variable) or None, variable),
            (self.stored.get(key), str(self.path)),
        ):
            if value is not None:
                self.origin[key] = source
                return _text(value)
        self.origin[key] = "default"
        return None

    def number(self, key: str, default: float, low: float, high: float = 1e9) -> float:
        """Return a number in a range."""
        return number(key, self.pick(key), default, low, high)

    def folder(self, key: str, default: Path) -> Path:
        """Return a folder."""
        text = self.pick(key)
        return Path(text).expanduser() if text else default

    def secret(self, key: str) -> str | None:
        """Return a password or secret from the environment, or from a file that only its owner can read."""
        variable = f"ALMANAC_{key.upper()}"
        if self._environment.get(variable):
            self.origin[key] = variable
            return self._environment[variable]
        file = self.folder(f"{key}_file", Path())
        if file == Path():
            self.origin[key] = "default"
            return None
        self.origin[key] = str(file)
        return read_secret(file, f"{key}_file")


def _read_config(path: Path, required: bool) -> dict[str, object]:
    """Return the keys of the configuration file; none if it does not exist and is not required."""
    if not path.exists() and not required:
        return {}
    try:
        stored = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError("ALMANAC_CONFIG", str(error), path=path) from error
    for key in stored:
        if key not in (*_KEYS, "serve"):
            raise ConfigError(key, f"is not a known setting; known: {', '.join(_KEYS)}", path=path)
    return stored


def _text(value: object) -> str:
    """Return a value of the configuration file as it is written in the environment."""
    if isinstance(value, dict):
        return ",".join(f"{name}={entry}" for name, entry in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _table(stored: Mapping[str, object], key: str, path: Path) -> Mapping[str, object]:
    table = stored.get(key, {})
    if not isinstance(table, dict):
        raise ConfigError(key, f"is not a table: write [{key}]", path=path)
    return table
