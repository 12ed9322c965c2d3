"""The command line describes itself, completes words, explains errors; the pages of its reference."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import pytest

from almanac.cli import COMMANDS, SECTIONS, cli
from almanac.reference import commands, man_page, reference, write_man_pages
from almanac.settings import load_settings
from tests.almanac.conftest import PROFILE, SCAN, Almanac
from tests.support.paths import ROOT


def test_help_lists_every_command_by_its_task(offline: Almanac) -> None:
    shown = offline.ok("--help").out
    for name in COMMANDS:
        assert f"\n  {name} " in shown
    assert list(SECTIONS) == ["Collect", "Watch", "Place", "Research", "Administer"]
    for task, listed in SECTIONS.items():
        section = shown.partition(f"\n{task}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines() if line[2] != " "] == list(listed)


WRONG = {
    "mop": "",
    "map": "|p|p --hosts node[1-2]|p --job 1 --hosts a --cluster c|p --job 1 --steps 5 --seconds 1|"
    "p --job 1 --seconds 0|p --job 1 --objective luck|p --job 1 --export csv|p --job 1 --export tarot=x|"
    "p --hosts a|p --here --job 1|p --profile x --cluster c --hosts a|--cluster c --hosts a|"
    "p --fabric x --job 1|p --cluster c --hosts a --moves 2|p --cluster c --keep x --pareto|"
    "p --cluster c --hosts a --pin 1:b|p --cluster c --hosts a --pin 1=b --pin 01=c|"
    "p --cluster c --hosts a --background x/y|p --cluster c --hosts a --seconds 1 --steps 1",
    "ingest": "x --rate fast|x --observed-at soon",
    "export": "p tarot",
    "query": "'RETURN 1' --param x",
    "db": "start",
}


def test_a_wrong_call_is_a_usage_error(offline: Almanac) -> None:
    for command, calls in WRONG.items():
        for call in calls.split("|"):
            offline.refused(command, *shlex.split(call), code=2)
            if command in ("map", "query"):
                assert offline.error(command, *shlex.split(call), code=2)["error"] == "UsageError"


def test_unknown_commands_missing_clusters_and_an_away_database_have_a_remedy(offline: Almanac) -> None:
    assert "Did you mean 'congestion'?" in offline.refused("congetsion", code=2)
    assert "bolt://127.0.0.1:1" in offline.refused("cluster", "list", code=3)
    assert offline.error("cluster", "list", code=3)["error"] == "DatabaseUnavailable"
    refused = offline.refused("ingest", SCAN, "--dry-run", code=2)
    assert "Error: add --cluster NAME: only profiles" in refused
    torus = ("generate", "fabric", "torus", "--sides")
    assert "Error: --cluster: 'a/b' is no" in offline.refused(*torus, "4x4", "--cluster", "a/b", code=2)
    assert "Error: --sides: is 0, not within 1" in offline.refused(*torus, "0x4", code=2)
    assert "setting" not in refused


def test_config_alone_shows_the_settings(offline: Almanac) -> None:
    assert offline("config").out == offline("config", "show").out
    assert "db_wait_seconds" in offline("config").out


def test_the_script_for_the_tab_key_is_printed(offline: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    version = subprocess.CompletedProcess([], 0, b"5.2.15(1)-release")  # which Click asks bash for
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: version)
    for shell in ("bash", "zsh", "fish"):
        monkeypatch.setenv("_ALMANAC_COMPLETE", f"{shell}_source")
        assert f"_ALMANAC_COMPLETE={shell}_complete" in offline.ok().out


def test_the_tab_key_completes_commands_options_and_files(
    offline: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, completed in (
        (["cl"], ["plain,cluster"]),
        (["cluster", "ch"], ["plain,changes", "plain,check"]),
        (["map", "--mov"], ["plain,--moves"]),
        (["ingest", "sc"], ["file,sc"]),
        (["simulate", "--trace-file", "sc"], ["file,sc"]),
        (["evaluate", "--placement", "rf"], ["file,rf"]),
    ):
        monkeypatch.setenv("_ALMANAC_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["almanac", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        assert offline().out.split() == completed


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


def test_an_unknown_cluster_is_an_error_of_every_command(almanac: Almanac) -> None:
    almanac.ok("ingest", SCAN, "--cluster", "ft")
    almanac.ok("ingest", PROFILE, "--name", "cg")
    where = ("--cluster", "ft", "--hosts", "node[0001-0016]")
    placed = almanac.json("map", "cg", *where, "--steps", 9)["placement"]
    calls = _calls()
    assert len(calls) > 15
    for call in calls:
        outcome = almanac(*(placed if word == "PLACEMENT" else word for word in call))
        assert outcome.code == 1, (call, outcome.err)
        assert "there is no cluster 'nosuch'; known: ft" in outcome.err, call


def test_a_file_that_cannot_be_opened_is_one_line(offline: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/data/x")

    monkeypatch.setattr("almanac.options.load_settings", fail)
    assert offline.refused("config") == "almanac: /data/x: Permission denied\n"


def test_every_command_and_option_is_described_also_in_the_reference() -> None:
    for words, command in commands():
        assert command.help, words
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.name not in ("objective", "seed", "port"):
                assert parameter.help or parameter.required, f"almanac {words}: --{parameter.name}"
    written = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    assert written == reference(), "run: make docs"


def test_the_page_of_settings_has_every_setting_with_its_default(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    written = {
        key: default.strip("` ") for key, default in re.findall(r"^\| `(\w+)` \|([^|]*)\|", page, re.M)
    }
    (tmp_path / "empty.toml").touch()
    values = load_settings(environment={"ALMANAC_CONFIG": str(tmp_path / "empty.toml")}).values()
    assert set(written) == {*values, "db_password_file", "dashboard_secret_file"}
    for key in set(values) - {"home", "spool_folder", "error_limits"}:
        value = values[key]
        shown = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        assert written[key].lower() == shown.lower(), key


def test_the_page_of_settings_shows_a_file_that_can_be_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)
    password = tmp_path / "password"
    password.write_text("secret")
    password.chmod(0o600)
    file = tmp_path / "config.toml"
    file.write_text(example.replace("/etc/almanac/password", str(password)))
    settings = load_settings(environment={"ALMANAC_CONFIG": str(file)})
    assert (settings.user, settings.password, settings.limits) == ("neo4j", "secret", {"link_downed": 5})


def test_every_command_has_a_page_with_all_options(tmp_path: Path) -> None:
    write_man_pages(tmp_path / "man")
    for words, command in commands():
        page = (tmp_path / "man" / f"almanac-{words.replace(' ', '-')}.1").read_text("utf-8")
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.opts[0].replace("-", "\\-") in page, words
    assert "\n.B \\&almanac cluster\n" in (tmp_path / "man" / "almanac.1").read_text("utf-8")
    assert "almanac map" in man_page("", cli)
    assert len(list((tmp_path / "man").iterdir())) == 1 + len(list(commands()))


@pytest.mark.parametrize("text", [".so /etc/passwd", "'request", "a \\ backslash"])
def test_text_of_help_is_no_request_of_roff(text: str) -> None:
    command = click.Command("odd", help=text)
    lines = man_page("odd", command).splitlines()
    assert not any(line.startswith((".so", "'")) for line in lines)
    assert "\\&" + text.replace("\\", "\\e") in lines


PAGE = (ROOT / "docs" / "reference" / "json.md").read_text("utf-8")
OPEN = ("parameters", "latency_seconds", "above_in_order", "certified")
"""Keys of objects whose own keys are names of options, percentiles or metrics."""
NAMED = ("errors",)
"""Keys of objects with a document for each of several names, such as those of counters."""
MIXED = {"a", "b", "value"}
"""Keys whose values are of several types: a node's name or number, the value of a setting."""
CALLS = {
    **dict.fromkeys(("cluster list", "profile list", "job list", "db status", "db migrate"), ""),
    **dict.fromkeys(("history placements", "history simulations", "history circuits"), ""),
    **dict.fromkeys(("doctor", "config show", "ingest-run list"), ""), "cluster show": "demo-ndr",
    "cluster check": "demo-ndr", "cluster changes": "demo-ndr", "cluster optical": "demo-optical",
    "generate fabric NAME": "torus --sides 2x2", "generate profile NAME": "ring --ranks 4",
    "generate weights NAME": "stream --vertices 30", "profile show": "demo-hpcg-64", "job show": "4712",
    "job attach": "4712 demo-hpcg-64",
    "map": "demo-hpcg-64 --job 4711 --steps 50 --keep PLACEMENT --export csv=FILE",
    "evaluate": "demo-hpcg-64 --cluster demo-ndr --placement PLACEMENT", "compare": "PLACEMENT OTHER --top 2",
    "advise placement": "demo-hpcg-64 OTHER --cluster demo-ndr --steps 50",
    "advise jobs": "demo-ndr --steps 50", "congestion": "demo-ndr",
    "congestion --link": "demo-ndr --link HOTTEST", "whatif": "demo-ndr --down HOTTEST",
    "reconfigure PROFILE": "demo-hpcg-64 --nodes 4 --max-degree 2 --max-edges 4 --link-speed 1e9 --trials 5",
    "reconfigure --cluster": "--cluster demo-optical --trials 5",
    "simulate": "demo-hpcg-64 --cluster demo-ndr --placement PLACEMENT", "selfcheck": "--only paths",
    "ports": "demo-ndr", "today": "demo-ndr --fail-on never", "observation list": "demo-ndr",
}  # fmt: skip
"""Arguments of each command of the page, except those that change the registry or need files."""
ABSENT = {
    "job list": "unknown_hosts",
    "generate": "profile_ids host_count switch_count cable_count",
    "map": "without_layout crossing_bytes crossing_bytes_in_order weighted_bytes weighted_bytes_in_order",
    "congestion": "rank_pairs",
    "db status": "memory_bytes idle_seconds",
    "ports": "error_limit per_hour",
}
"""Documented keys that are absent from these documents: of other options, or of lists that are empty."""


def rows() -> dict[str, str]:
    found = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ", 1)]
        if line.startswith("| `") and len(cells) == 2:
            for name in re.findall(r"`([^`]+)`", cells[0]):
                found[name] = cells[1]
    return found


ROWS = rows()
EVERY_PLAN = next(
    line for line in PAGE.splitlines() if line.startswith("| `reconfigure`, keys of every plan")
)
RUNNING = PAGE.partition("Documents on running jobs begin with")[2].partition("\n\n")[0]


def documented(name: str) -> set[str]:
    """Return the words in back quotes of a command's row, and of what the row refers to."""
    text = ROWS.get(name) or ROWS[name.split(" --")[0]]
    for other in re.findall(r"as (?:in )?`([a-z ]+)", text) + re.findall(r"metrics of `([a-z ]+)`", text):
        text += ROWS.get(other.strip(), "")
    if "(as above)" in text:
        text += ROWS["evaluate"]
    if "running jobs" in text:
        text += RUNNING
    if name.startswith("reconfigure"):
        text += EVERY_PLAN
    return {word for part in re.findall(r"`([^`]+)`", text) for word in part.split()}


def keys(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for one in value:
            yield from keys(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key, one
            if key in NAMED:
                yield from keys(list(one.values()))
            elif key not in OPEN:
                yield from keys(one)


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else type(value).__name__


@pytest.fixture
def documents(almanac: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    # kernels are compiled in this process
    waits = nullcontext(lambda: None)
    monkeypatch.setattr("almanac.precompile.precompiled_kernels", lambda progress: waits)
    almanac.ok("demo", "-o", tmp_path / "ranks")
    placements = almanac.json("history", "--job", "4711")
    values = {
        "PLACEMENT": placements[0]["placement"],
        "OTHER": placements[-1]["placement"],
        "HOTTEST": almanac.json("congestion", "demo-ndr")["links"][0]["link"],
        "csv=FILE": f"csv={tmp_path / 'file'}",
    }
    found = {}
    for name, arguments in CALLS.items():
        words = re.sub(r" (PROFILE|NAME|--link|--cluster)$", "", name).split()
        outcome = almanac(*words, *(values.get(word, word) for word in arguments.split()), "--json")
        assert outcome.code in (0, 4), (name, outcome.err)
        found[name] = outcome.json
    return found


def test_the_page_lists_all_keys_and_a_key_has_one_type_and_meaning(documents: dict[str, Any]) -> None:
    check_keys(documents)
    check_names_and_ids(documents)


def check_keys(documents: dict[str, Any]) -> None:
    """Check that the page lists the keys of each document, and that a key has one type."""
    types: dict[str, set[str]] = defaultdict(set)
    for name, document in documents.items():
        found = dict(keys(document))
        assert found, name
        missing = set(found) - documented(name)
        assert not missing, (name, missing)
        own = {word for part in re.findall(r"`([^`]+)`", ROWS.get(name, "")) for word in part.split()}
        unknown = {word for word in own if re.fullmatch(r"[a-z]+(_[a-z]+)+", word)} - set(found)
        assert not unknown - set(ABSENT.get(name, ABSENT.get(name.split()[0], "")).split()), (name, unknown)
        for key, value in keys(document):
            types[key].add(kind(value))
    assert {key: kinds for key, kinds in types.items() if len(kinds - {"NoneType"}) > 1}.keys() == MIXED
    assert documents["congestion --link"]["rank_pairs"]


def check_names_and_ids(documents: dict[str, Any]) -> None:
    """Check that profiles are named, that ids of profiles are such, and that routings have no ids."""
    names = {row["profile"] for row in documents["profile list"]}
    ids = {row["profile_id"] for row in documents["profile list"]}
    for name, document in documents.items():
        for key, value in keys(document):
            if value is None or name.startswith("generate"):
                continue
            if key == "profile":
                assert value in names, (name, value)
            if key == "profile_id":
                assert value in ids, (name, value)
            if key == "routing":
                assert not re.search(r"\d", value), (name, value)
