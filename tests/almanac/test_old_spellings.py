"""Spellings of earlier versions are rewritten, with a note that shows the present one."""

from __future__ import annotations

import shlex

import pytest

from almanac.old_spellings import present_spelling

NOTE = "note: this spelling ends with the next version; write: almanac "


@pytest.mark.parametrize(
    ("old", "present"),
    [
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
    ],
)
def test_an_old_spelling_is_rewritten_with_a_note(
    old: str, present: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert present_spelling(old.split()) == present.split()
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"{NOTE}{shlex.join(present.split())}\n")
    assert present_spelling(present.split()) == present.split()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "words",
    [
        "advise ft --seconds 3 --json",
        "advise jobs ft",
        "advise placement wrf rf --cluster ft",
        "generate profile stencil --points 5 -o f --format npz",
        "compare a b --profile cg",
        "metrics -o f",
        "",
    ],
)
def test_present_spellings_stay(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert present_spelling(words.split()) == words.split()
    assert capsys.readouterr().err == ""
