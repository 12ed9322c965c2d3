"""Settings of ``almanac serve``: the table ``[serve]`` of the configuration file::

[serve]
address = "127.0.0.1"                  # address and port to listen on
port = 8600
token_file = "/etc/almanac/token"      # mode 0600; default: a file created in the data folder

[[serve.collectors]]                   # a command whose output is ingested
name = "scan"
command = ["ibnetdiscover"]            # no shell; "{output}": a folder for the files that it writes
cluster = "hpc1"
interval_seconds = 900
timeout_seconds = 120                  # default: the interval
jitter_seconds = 60                    # a random delay of each run, up to this; default: 0
format = "ibnetdiscover"               # default: recognised by content

[[serve.commands]]                     # an almanac command that is run at intervals
name = "advise"
arguments = ["advise", "jobs", "hpc1"]
interval_seconds = 3600
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from almanac.settings import Settings, read_secret
from ingest.options import Options
from registry.errors import ConfigError, InvalidValue

DEFAULT_ADDRESS, DEFAULT_PORT = "127.0.0.1", 8600
TOKEN_FILE = "serve.token"  # noqa: S105 - a file name
SHORTEST_TOKEN = 16
"""Shortest token, in bytes: a shorter one could be found by trial."""
LONGEST = 366 * 86400.0
"""Longest interval, timeout and jitter in seconds."""
OUTPUT = "{output}"
"""Word in a command that is replaced by the folder for the files that it writes."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_TASK_KEYS = ("name", "interval_seconds", "timeout_seconds", "jitter_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A command that the service runs at intervals."""

    name: str
    """Unique name of letters, digits, ``_``, ``.`` and ``-``."""
    command: tuple[str, ...]
    """Program and arguments; of a command of ``almanac``, its arguments."""
    interval: float
    """Seconds from one start to the next."""
    timeout: float
    """Seconds after which it is killed."""
    jitter: float
    """Largest random delay of a start, in seconds."""
    options: Options | None = None
    """Options of the ingest of its output; None for a command of ``almanac``, whose output is not ingested.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Settings of the service."""

    address: str
    port: int
    """0 for any free port."""
    token: str
    """Token that requests have to carry."""
    token_file: Path
    tasks: tuple[Task, ...]


def read_service(
    settings: Settings, *, address: str | None = None, port: int | None = None
) -> ServiceSettings:
    """Return the settings of the service; create a token if none is configured.

    Args:
        address, port: Values of the command line.

    Raises:
        ConfigError: A value is missing or wrong; with its key and the configuration file.
    """
    table = _Table(settings.serve, "serve", settings.config_path)
    table.require_known("address", "port", "token_file", "collectors", "commands")
    tasks = [_collector(one) for one in table.tables("collectors")]
    tasks += [_command(one) for one in table.tables("commands")]
    names = [task.name for task in tasks]
    if double := sorted(name for name in names if names.count(name) > 1):
        raise table.error("name", f"{double[0]!r} is given twice")
    listen_port = table.number("port", DEFAULT_PORT, 0, 65535) if port is None else port
    given = table.text("token_file", "")
    token_file = Path(given).expanduser() if given else settings.home / TOKEN_FILE
    token = read_secret(token_file, "serve.token_file", create=not given)
    if len(token.encode("utf-8")) < SHORTEST_TOKEN or not token.isascii():
        raise ConfigError(
            "serve.token_file", f"needs at least {SHORTEST_TOKEN} ASCII characters", path=token_file
        )
    return ServiceSettings(
        address=address or table.text("address", DEFAULT_ADDRESS),
        port=int(listen_port),
        token=token,
        token_file=token_file,
        tasks=tuple(tasks),
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the configuration file, with its place for errors."""

    values: Mapping[str, Any]
    place: str
    path: Path

    def error(self, key: str, reason: str) -> ConfigError:
        return ConfigError(f"{self.place}.{key}", reason, path=self.path)

    def require_known(self, *known: str) -> None:
        for key in self.values:
            if key not in known:
                raise self.error(key, f"is not a known setting; known: {', '.join(known)}")

    def tables(self, key: str) -> list[_Table]:
        found = self.values.get(key, [])
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self.error(key, f"is not a list of tables: write [[{self.place}.{key}]]")
        return [_Table(one, f"{self.place}.{key}[{row}]", self.path) for row, one in enumerate(found)]

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str) or (default is None and not value):
            raise self.error(key, "is missing" if value is None else f"{value!r} is not a text")
        return value

    def words(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
            shown = "is missing" if value is None else f"{value!r} is not a list of words"
            raise self.error(key, f'{shown}: write {key} = ["WORD", "WORD"]')
        return tuple(value)

    def number(self, key: str, default: float | None, least: float, most: float) -> float:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            shown = "is missing" if value is None else f"{value!r} is not a number"
            raise self.error(key, f"{shown} from {least:g} to {most:g}" if value is not None else shown)
        return float(value)


def _collector(table: _Table) -> Task:
    table.require_known(*_TASK_KEYS, "command", "cluster", "format", "rate")
    try:
        options = Options(
            cluster=table.text("cluster"),
            format=table.text("format", "") or None,
            rate=table.number("rate", None, 1, 1e15) if "rate" in table.values else None,
        )
    except ConfigError:
        raise
    except InvalidValue as error:
        raise table.error(error.field.rpartition(".")[2], error.what) from error
    return _task(table, table.words("command"), options)


def _command(table: _Table) -> Task:
    table.require_known(*_TASK_KEYS, "arguments")
    return _task(table, table.words("arguments"), None)


def _task(table: _Table, command: Sequence[str], options: Options | None) -> Task:
    """Return a collector or a command of a table."""
    name = table.text("name")
    if not _NAME.fullmatch(name):
        raise table.error("name", f"{name!r} is not a name of letters, digits, '_', '.' and '-'")
    interval = table.number("interval_seconds", None, 1, LONGEST)
    return Task(
        name=name,
        command=tuple(command),
        interval=interval,
        timeout=table.number("timeout_seconds", interval, 1, LONGEST),
        jitter=table.number("jitter_seconds", 0.0, 0, LONGEST),
        options=options,
    )
