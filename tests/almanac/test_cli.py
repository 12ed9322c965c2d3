"""The command line describes itself, completes words, and explains errors in sentences."""

from __future__ import annotations

import shlex
import subprocess
import sys

import click
import pytest

from almanac.cli import COMMANDS, SECTIONS
from almanac.old_spellings import present_spelling
from almanac.reference import commands
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


def test_help_imports_nothing_heavy(processes: None) -> None:
    code = (
        "import sys; from almanac.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'neo4j', 'rich', 'pandas', 'numba', 'streamlit'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


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

    monkeypatch.setattr("almanac.options.common.load_settings", fail)
    assert offline.refused("config") == "almanac: /data/x: Permission denied\n"


NOTE = "note: this spelling ends with the next version; write: almanac "


def test_an_old_spelling_is_rewritten_with_a_note_and_present_ones_stay(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for old, present in (
        ("history --limit 5 --json", "history --json --top 5"),
        ("history --limit=5", "history --top 5"),
        ("history --regressions --since 2026-01-01", "history regressions --since 2026-01-01"),
        (
            "history --cluster ft --simulations --placement p1",
            "history simulations --cluster ft --placement p1",
        ),
        ("history --circuits", "history circuits"),
        ("advise wrf rf --cluster ft --steps 9", "advise placement wrf rf --cluster ft --steps 9"),
        ("advise --cluster ft wrf --json p1", "advise placement --cluster ft wrf --json p1"),
        ("export p1 --format csv", "export p1 csv"),
        ("export p1 -o f --format csv", "export p1 csv=f"),
        ("export p1 --format=csv --output=f", "export p1 csv=f"),
        ("cluster export ft --format graphml --at now -o a", "cluster export ft --at now graphml=a"),
        ("profile export cg -o f", "profile export cg csv=f"),
        ("cluster optical ft -o f", "cluster optical ft --export circuits=f"),
        ("reconfigure -o f --routes g", "reconfigure --export circuits=f --export routes=g"),
        ("evaluate cg --links l", "evaluate cg --export links=l"),
        ("simulate --fabric s --profile p --links l", "simulate --fabric s --export links=l p"),
        ("simulate p --points t", "simulate p --export points=t"),
        ("map --fabric s --profile p", "map --fabric s p"),
        ("compare a b --most 3 --links l", "compare a b --export links=l --top 3"),
        ("metrics --hottest 3", "metrics --top 3"),
        ("db dump f", "db backup f"),
        ("job ranks 1", "job export 1"),
        ("job ranks 1 --cluster a -o f", "job export 1 --cluster a csv=f"),
        ("db load f --replace", "db restore f --replace"),
        ("whatif ft --rule tables", "whatif ft --routing-after tables"),
    ):
        assert present_spelling(old.split()) == present.split()
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == ("", f"{NOTE}{shlex.join(present.split())}\n")
        assert present_spelling(present.split()) == present.split()
        assert capsys.readouterr().err == ""
    for words in (
        "advise ft --seconds 3 --json",
        "advise jobs ft",
        "advise placement wrf rf --cluster ft",
        "generate profile stencil --points 5 -o f --format npz",
        "compare a b --profile cg",
        "metrics -o f",
        "",
    ):
        assert present_spelling(words.split()) == words.split()
        assert capsys.readouterr().err == ""
