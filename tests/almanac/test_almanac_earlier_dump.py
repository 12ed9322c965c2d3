"""A registry that an earlier version wrote: it loads, and its history is what that version printed."""

from __future__ import annotations

import json

from tests.almanac.conftest import Almanac
from tests.support import paths

DUMPS = paths.DATA / "dumps"
UNTIMED: dict[str, object] = {"iteration_seconds": None, "iteration_from": None}
SINCE: dict[str, dict[str, object]] = {"job show": {"unknown_hosts": [], **UNTIMED}, "job list": UNTIMED}
"""Keys that commands print since then, with their values for that registry."""
COUNTS = {
    "hosts": "host_count",
    "adapters": "adapter_count",
    "switches": "switch_count",
    "cables": "cable_count",
}
RENAMED: dict[str, dict[str, str]] = {
    "cluster optical": {"configuration": "circuit_plan", "told_at": "stored_at"},
    "cluster show": {**COUNTS, "routing": "routing_id"},
    "history": {"id": "placement", "seconds": "wall_seconds", "bounds": "lower_bound"},
    "history --circuits": {
        "id": "circuit_plan",
        "profiles": "profile_ids",
        "profile_names": "profiles",
        "jobs": "job_ids",
        "circuits": "circuit_count",
        "removed": "removed_count",
        "inserted": "added_count",
        "upper_bound": "upper_bound_throughput",
        "bound": "upper_bound_name",
    },
    "history --simulations": {
        "id": "simulation",
        "profile": "profile_id",
        "throughput": "bytes_per_second",
    },
    "job": {"profile": "profile_id", "source": "origin"},
    "profile": {"id": "profile_id", "source": "origin"},
}
"""Keys of documents and of their rows that have another name since then; the longest command that fits."""


def of_now(command: str, row: dict[str, object]) -> dict[str, object]:
    """Return an object that the earlier version printed, with the present names of its keys."""
    fitting = sorted((words for words in RENAMED if command.startswith(words)), key=len)
    names = RENAMED[fitting[-1]] if fitting else {}
    found = {names.get(key, key): value for key, value in row.items()}
    for key in ("cables_appeared", "cables_vanished"):
        if isinstance(cables := found.get(key), list):
            found[key] = [cable_of_now(cable) for cable in cables]
    return found


def cable_of_now(cable: dict[str, object]) -> dict[str, object]:
    """Return a cable that the earlier version printed, with its ends as objects."""
    ends = {
        end: {"name": cable[end], "guid": cable[f"{end}_guid"], "port": cable[f"{end}_port"]}
        for end in ("source", "target")
    }
    return ends | {
        "cable_count": cable["cables"],
        "capacity": cable["capacity"],
        "capacity_back": cable["capacity_back"],
    }


def test_the_history_of_an_earlier_dump_is_what_it_was(almanac: Almanac) -> None:
    almanac.ok("db", "restore", DUMPS / "schema-5.dump")
    for command, expected in json.loads((DUMPS / "schema-5.json").read_text("utf-8")).items():
        added = next((keys for words, keys in SINCE.items() if command.startswith(words)), None)
        shown = almanac.json(*command.split())
        if isinstance(expected, list):
            expected = [of_now(command, row) | (added or {}) for row in expected]
        else:
            expected = of_now(command, expected) | (added or {})
        assert shown == expected, command
