"""A registry that an earlier version wrote: it loads, and its history is what that version printed."""

from __future__ import annotations

import json

from tests.almanac.conftest import Almanac
from tests.support import paths

DUMPS = paths.DATA / "dumps"


def test_the_history_of_an_earlier_dump_is_what_it_was(almanac: Almanac) -> None:
    assert almanac("db", "load", DUMPS / "schema-5.dump").code == 0
    for command, expected in json.loads((DUMPS / "schema-5.json").read_text("utf-8")).items():
        assert almanac(*command.split(), "--json").json == expected, command
