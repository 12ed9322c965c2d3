"""``almanac config show``: the settings in force and where each comes from."""

from __future__ import annotations

import click

from almanac.options.common import json_option
from almanac.output.printing import print_json, print_table
from almanac.settings import load_settings


@click.group("config")
def command() -> None:
    """Show the settings in force and where each comes from."""


@command.command("show")
@json_option
def show(as_json: bool) -> None:
    """Every setting, its value and its origin; a password or secret is never shown."""
    settings = load_settings(click.get_current_context().find_root().obj)
    values = {
        "db": settings.db or "embedded",
        "db_user": settings.user,
        "db_password": None if settings.password is None else "(set)",
        "db_name": settings.name,
        "home": str(settings.home),
        "idle_seconds": settings.idle_seconds,
        "dashboard_hide_users": settings.hide_users,
        "dashboard_only_user": settings.only_user,
        "dashboard_operators": ",".join(settings.operators) or None,
        "dashboard_secret": None if settings.secret is None else "(set)",
    }
    rows = [{"setting": key, "value": value, "from": settings.origin[key]} for key, value in values.items()]
    if as_json:
        print_json({"config_file": str(settings.config_path), "settings": rows})
        return
    print_table(
        f"configuration file: {settings.config_path}",
        ["setting", "value", "from"],
        [list(row.values()) for row in rows],
    )
