"""A registry that an earlier version wrote: it loads, and its history is what that version printed."""

from __future__ import annotations

import json
import re

from tests.almanac.conftest import Almanac
from tests.support import paths

DUMPS = paths.DATA / "dumps"
FRACTION = re.compile(r"(\d\.\d{3})\d{3}Z")


def to_milliseconds(value: object) -> object:
    """Return JSON with times cut to milliseconds: a used database of the embedded server may keep no more."""
    return json.loads(FRACTION.sub(r"\1Z", json.dumps(value)))


def test_the_history_of_an_earlier_dump_is_what_it_was(almanac: Almanac) -> None:
    assert almanac("db", "load", DUMPS / "schema-5.dump").code == 0
    for command, expected in json.loads((DUMPS / "schema-5.json").read_text("utf-8")).items():
        shown = almanac(*command.split(), "--json").json
        assert to_milliseconds(shown) == to_milliseconds(expected), command
