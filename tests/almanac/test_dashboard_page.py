"""What the pages of an empty registry say to run works, once capitals give way to files, names and hosts."""

from __future__ import annotations

import re
import shlex

from streamlit.util import calc_hash

from almanac.settings import load_settings
from dashboard.app import PAGES
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support import paths
from tests.support.apps import app_of

DATA = paths.DATA
TREE = DATA / "infiniband" / "fattree2-64-traffic"
DEMO = "almanac demo"
INSTEAD = {
    "SCAN": str(TREE / "ibnetdiscover.txt"),
    "SLURM_RECORD": str(DATA / "slurm" / "scontrol_show_jobs_d.txt"),
    "NAME": "ft",
    "PROFILE": "cg",
    "HOSTLIST": "node[0001-0008]",
    "JOB": "1",
}
PRINTED = {"scontrol show jobs -d": str(DATA / "slurm" / "scontrol_show_jobs_d.txt")}
"""Files that hold what other programs print, for commands that read it from a pipe."""


def script(connect: object) -> None:
    from typing import Any, cast

    from dashboard.app import run

    run(cast(Any, connect))


def shown_commands() -> set[str]:
    """The commands that the pages of the registry in force show."""

    def connect() -> Registry:
        return load_settings().open_registry()

    found: set[str] = set()
    for number, entry in enumerate(PAGES):
        app = app_of(script, connect)
        app._page_hash = calc_hash(entry.title.lower().replace(" ", "-") if number else "")
        app.run()
        assert not app.exception, app.exception
        commands = {code.value for code in app.code}
        assert DEMO in commands, entry.title
        found |= commands
    return found


def test_the_commands_on_pages_of_an_empty_registry_work(almanac: Almanac) -> None:
    commands = shown_commands()
    assert len(commands) > 2
    almanac.ok("ingest", DATA / "openmpi" / "npb_cg_S_16.tar.gz", "--name", "cg")
    # what reads a fabric, and then jobs, comes before what needs them
    for command in sorted(
        commands - {DEMO}, key=lambda text: ("SCAN" not in text, "scontrol" not in text, text)
    ):
        printer, _, piped = command.rpartition(" | ")
        words = [INSTEAD.get(word, word) for word in shlex.split(piped)]
        if printer:
            words[words.index("-")] = PRINTED[printer]
        assert words[0] == "almanac"
        assert not [word for word in words if re.fullmatch(r"[A-Z_]{3,}", word)], command
        slots = ["--slots", "2", "--steps", "100"] if words[1] == "map" else []
        outcome = almanac(*words[1:], *slots)
        assert outcome.code == 0, (command, outcome.err)
