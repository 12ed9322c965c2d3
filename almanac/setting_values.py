"""Conversion of the texts of settings to values; a text that is none raises `ConfigError`."""

from __future__ import annotations

from registry.errors import ConfigError, InvalidValue
from registry.upkeep.rules import ALL, Keep

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
