"""Messages are sentences: what is wrong, where, what to do; unknown names list the known ones."""

from __future__ import annotations

import click
import pytest

from almanac.reference import commands
from tests.almanac.conftest import Almanac
from tests.support import paths

SCAN = paths.DATA / "infiniband" / "fattree2-64-traffic" / "ibnetdiscover.txt"
PROFILE = paths.DATA / "openmpi" / "npb_cg_S_16.tar.gz"
CREATE = ("ingest", "generate fabric", "db")
"""Commands (or groups) whose ``--cluster`` may name a new cluster."""
VALUES = {
    "profile": "cg",
    "job": "4711",
    "placement": "PLACEMENT",
    "placements": "PLACEMENT",
    "exports": "csv",
}
"""Values of required arguments and options."""
MORE = {
    "map": ("--hosts", "node[0001-0016]"),
    "whatif": ("--down", "node0001:1"),
    "compare": ("PLACEMENT", "--profile", "cg"),
    "ingest-run delete": ("--failed",),
    "simulate": ("cg",),
    "doctor": ("--launchers",),
}
"""Words that a command needs in addition."""


def _calls() -> list[tuple[str, ...]]:
    """Return a call with ``nosuch`` of each command that takes a cluster, as an argument or option."""
    calls = []
    for words, command in commands():
        names = {one.name: one for one in command.params}
        if "cluster" not in names or words.startswith(CREATE) or words == "run":  # run starts the job anyway
            continue
        call = list(words.split())
        for name, one in names.items():
            if name == "cluster":
                call += ["nosuch"] if isinstance(one, click.Argument) else ["--cluster", "nosuch"]
            elif one.required:
                value = (
                    one.type.choices[0] if isinstance(one.type, click.Choice) else VALUES.get(name or "", "x")
                )
                call += [value] if isinstance(one, click.Argument) else [one.opts[0], value]
        confirmed = ("--yes",) if "yes" in names else ()
        calls.append((*call, *MORE.get(words, ()), *confirmed))
    return calls


@pytest.fixture
def filled(embedded: Almanac) -> Almanac:
    """A registry with cluster `ft` and profile `cg`."""
    assert embedded("ingest", SCAN, "--cluster", "ft").code == 0
    assert embedded("ingest", PROFILE, "--name", "cg").code == 0
    return embedded


def test_an_unknown_cluster_is_an_error_of_every_command(filled: Almanac) -> None:
    placed = filled(
        *("map", "cg", "--cluster", "ft", "--hosts", "node[0001-0016]", "--steps", 9, "--json"),
    ).json["placement"]
    calls = _calls()
    assert len(calls) > 15
    for call in calls:
        outcome = filled(*(placed if word == "PLACEMENT" else word for word in call))
        assert outcome.code == 1, (call, outcome.err)
        assert "there is no cluster 'nosuch'; known: ft" in outcome.err, call


def test_a_missing_cluster_names_the_option_to_add(offline: Almanac) -> None:
    outcome = offline("ingest", SCAN, "--dry-run")
    assert outcome.code == 2
    assert "Error: add --cluster NAME: only profiles" in outcome.err
    assert "setting" not in outcome.err


def test_a_wrong_value_names_its_option_or_the_field_in_plain_words(filled: Almanac) -> None:
    machine = ("--nodes", 4, "--max-edges", 9, "--link-speed", 1e9, "--max-degree", 1)
    assert filled("reconfigure", "cg", *machine).err.startswith("almanac: --max-degree: is 1, must be")
    placed = ("--cluster", "ft", "--hosts", "node[0001-0016]", "--steps", 9)
    placement = filled("map", "cg", *placed, "--json").json["placement"]
    outcome = filled("map", "cg", *placed, "--background", f"{placement}/0")
    assert outcome.err == "almanac: background seconds: a job's period must be above zero\n"


def test_a_file_that_cannot_be_opened_is_one_line(offline: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/data/x")

    monkeypatch.setattr("almanac.options.common.load_settings", fail)
    outcome = offline("config")
    assert (outcome.code, outcome.err) == (1, "almanac: /data/x: Permission denied\n")
