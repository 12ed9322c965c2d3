"""The command line describes itself, quickly, and usage errors have their own exit code."""

from __future__ import annotations

import subprocess
import sys

import pytest

from almanac.cli import COMMANDS, SECTIONS
from tests.almanac.conftest import Almanac
from tests.support import paths

ROOT = paths.ROOT


def test_help_lists_every_command(offline: Almanac) -> None:
    outcome = offline("--help")
    assert outcome.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in outcome.out


def test_help_groups_commands_by_task(offline: Almanac) -> None:
    assert list(SECTIONS) == ["Collect", "Watch", "Place", "Research", "Administer"]
    shown = offline("--help").out
    for task, commands in SECTIONS.items():
        section = shown.partition(f"\n{task}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines() if line[2] != " "] == list(commands)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from almanac.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'neo4j', 'rich', 'pandas', 'numba', 'streamlit'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["mop"],
        ["map"],
        ["map", "p"],
        ["map", "p", "--hosts", "node[1-2]"],
        ["map", "p", "--job", "1", "--hosts", "a", "--cluster", "c"],
        ["map", "p", "--job", "1", "--steps", "5", "--seconds", "1"],
        ["map", "p", "--job", "1", "--seconds", "0"],
        ["map", "p", "--job", "1", "--objective", "luck"],
        ["map", "p", "--job", "1", "--export", "csv"],
        ["map", "p", "--job", "1", "--export", "tarot=x"],
        ["ingest", "x", "--rate", "fast"],
        ["ingest", "x", "--observed-at", "yesterday"],
        ["export", "p", "tarot"],
        ["query", "RETURN 1", "--param", "x"],
        ["db", "start"],
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_a_usage_error(offline: Almanac, arguments: list[str]) -> None:
    assert offline(*arguments).code == 2
    outcome = offline(*arguments, "--json") if arguments[0] in ("map", "query") else None
    assert outcome is None or outcome.error["error"] == "UsageError"


def test_an_unknown_command_names_the_closest_ones(offline: Almanac) -> None:
    outcome = offline("congetsion")
    assert outcome.code == 2
    assert "Did you mean 'congestion'?" in outcome.err


def test_config_alone_shows_the_settings(offline: Almanac) -> None:
    assert offline("config").out == offline("config", "show").out
    assert "db_wait_seconds" in offline("config").out


def test_an_unreachable_database_has_its_own_exit_code_and_a_remedy(offline: Almanac) -> None:
    outcome = offline("cluster", "list")
    assert outcome.code == 3
    assert "bolt://127.0.0.1:1" in outcome.err
    assert offline("cluster", "list", "--json").error["error"] == "DatabaseUnavailable"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_the_tab_key_is_printed(
    offline: Almanac, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("_ALMANAC_COMPLETE", f"{shell}_source")
    outcome = offline()
    assert outcome.code == 0
    assert f"_ALMANAC_COMPLETE={shell}_complete" in outcome.out


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["cl"], ["plain,cluster"]),
        (["cluster", "ch"], ["plain,changes", "plain,check"]),
        (["map", "--mov"], ["plain,--moves"]),
        (["ingest", "sc"], ["file,sc"]),
        (["simulate", "--trace-file", "sc"], ["file,sc"]),
        (["evaluate", "--placement", "rf"], ["file,rf"]),
    ],
)
def test_the_tab_key_completes_commands_options_and_files(
    offline: Almanac, monkeypatch: pytest.MonkeyPatch, words: list[str], completed: list[str]
) -> None:
    monkeypatch.setenv("_ALMANAC_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["almanac", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert offline().out.split() == completed
