"""A registry that an earlier version wrote: it loads, and its history is what that version printed."""

from __future__ import annotations

import json

from tests.almanac.conftest import Almanac
from tests.support import paths

DUMPS = paths.DATA / "dumps"
SINCE: dict[str, dict[str, object]] = {"job show": {"unknown_hosts": []}}
"""Keys that commands print since then, with their values for that registry."""


def test_the_history_of_an_earlier_dump_is_what_it_was(almanac: Almanac) -> None:
    assert almanac("db", "restore", DUMPS / "schema-5.dump").code == 0
    for command, expected in json.loads((DUMPS / "schema-5.json").read_text("utf-8")).items():
        added = next((keys for words, keys in SINCE.items() if command.startswith(words)), None)
        shown = almanac(*command.split(), "--json").json
        assert shown == (expected if added is None else expected | added), command
