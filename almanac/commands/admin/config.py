"""``almanac config show``: show the settings in use and where each comes from."""

from __future__ import annotations

import click

from almanac.options.common import current_settings, json_option
from almanac.output.printing import print_json, print_table


@click.group("config")
def command() -> None:
    """Show the settings in use and where each comes from."""


@command.command("show")
@json_option
def show(as_json: bool) -> None:
    """Show each setting, its value and where it comes from; passwords and secrets are not shown."""
    settings = current_settings()
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
