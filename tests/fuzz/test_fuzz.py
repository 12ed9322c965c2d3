"""A few damaged files of every format, always the same ones; ``make fuzz SECONDS=600`` tries more."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ingest import catalog
from ingest.catalog import FORMATS
from ingest.parsed import Format, Parsed
from registry.errors import InputError
from registry.model import Job
from tests.fuzz.__main__ import main
from tests.fuzz.cases import Broken, Case, beginnings, check, keep, load
from tests.fuzz.fence import Coverage
from tests.fuzz.mutations import RUNS
from tests.fuzz.runs import run
from tests.fuzz.samples import Item, of_format
from tests.fuzz.worker import Task
from tests.support import paths

MUTANTS = 60
"""Of each format; those that start a process of their own are fewer."""
SLOW = {"otf2": 6}
REFUSED = {"mpip", "darshan"}
"""Formats that are recognised only to say why they are not read."""


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_every_format_has_a_sample_and_one_of_them_can_be_read(format: Format) -> None:
    cases = beginnings(format.name)
    assert cases, f"keep a sample of {format.name} below tests/data, or write one in tests/fuzz/samples.py"
    assert any(check(case) for case in cases) is (format.name not in REFUSED)


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("kind", sorted({format.kind for format in FORMATS}))
def test_of_damaged_files_only_input_errors_come_and_nothing_is_written(kind: str, tmp_path: Path) -> None:
    names = [format.name for format in FORMATS if format.kind == kind]
    counts = [SLOW.get(name, MUTANTS) + len(beginnings(name)) for name in names]
    for outcome in run(
        Task(name, 1, count, 600.0, False, tmp_path) for name, count in zip(names, counts, strict=True)
    ):
        assert not [f"{failure.what}; see {failure.place}" for failure in outcome.failures]
        assert outcome.cases == counts[names.index(outcome.format)]


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_a_head_of_one_piece_again_and_again_is_decided(format: Format) -> None:
    """Patterns that try blanks or quotes in every way would not come back: pytest's time limit ends them."""
    recognise = format.recognise
    starts = {item.data[:size] for item in of_format(format.name)[0][:1] for size in (0, 20, 60)}
    for start in sorted(starts):
        for piece in RUNS:
            head = start + piece * (65_536 // len(piece))
            assert recognise(head.decode("utf-8", "replace"), "f") in {True, False}


# --- the fuzzer itself ----------------------------------------------------------------------------------


def refuse(reason: str) -> Parsed:
    raise InputError(reason)


@pytest.mark.parametrize(
    ("parse", "what"),
    [
        (lambda: refuse("two\nlines"), "no line of text"),
        (lambda: refuse(""), "no line of text"),
        (lambda: Parsed(jobs=(Job(id="\ud800"),)), "not UTF-8"),
        (lambda: Parsed(jobs=(Job(id="1", ranks=10**30),)), "more than 64 bits"),
    ],
)
def test_what_must_not_come_out_of_a_parser_is_found(
    parse: Callable[[], Parsed], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = SimpleNamespace(name="bad", recognise=lambda head, path: True, parse=lambda files, options: parse())
    monkeypatch.setattr(catalog.FORMATS, "find", lambda name: bad)
    with pytest.raises(Broken, match=what):
        check(Case("bad", (Item("x", b"x"),), {}))


DEEDS = {
    "open('x', 'w')": "x was opened to write",
    "__import__('os').mkdir('y')": "os.mkdir y",
    "bytearray(3 << 30)": "MemoryError",
    "__import__('warnings').warn('odd')": "UserWarning: odd",
    "exec('while True: pass')": "more than 0.2 s of processor time",
    "__import__('tempfile').mkstemp()": "files are left behind",
}
EACH_IN_A_PROCESS = """
import os, sys
from tests.fuzz import fence
fence.CASE_SECONDS = 0.2
for deed in sys.argv[1:]:
    if not os.fork():
        try:
            with fence.Fence():
                exec(deed)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.usefixtures("processes")
def test_what_a_parser_must_not_do_is_stopped() -> None:
    command = [sys.executable, "-c", EACH_IN_A_PROCESS, *DEEDS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=paths.ROOT)
    for line, what in zip(done.stdout.splitlines(), DEEDS.values(), strict=True):
        assert what in line


def test_a_case_is_kept_read_back_and_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"hosts": ("n1",), "slots": (2,), "parts": 3}
    case = Case("lldp", (Item("a/b", b"\0\xff"), Item("", b"")), options)
    keep(case, tmp_path / "x", "odd")
    assert load(tmp_path / "x") == case
    keep(Case("libtopomap", (Item("x", b"num: 1\n0 a\n"),), {}), tmp_path / "y", "odd")
    assert main(["--replay", str(tmp_path / "y")]) == 0
    assert "refused as it should be" in capsys.readouterr().out


@pytest.mark.usefixtures("processes")
def test_a_run_by_hand_reports_what_it_did(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--format", "hostfile", "--format", "ibtopo", "--mutants", "12", "--keep", str(tmp_path)]
    assert main(arguments) == 0
    assert "24 cases, 0 failures; seed 0" in capfd.readouterr().out


@pytest.mark.usefixtures("processes")
def test_the_same_seed_damages_in_the_same_way(tmp_path: Path) -> None:
    def last(seed: int) -> Case:
        (outcome,) = run([Task("hostfile", seed, 15, 600.0, False, tmp_path)])
        assert outcome.cases == 15
        case: Case = pickle.loads((tmp_path / ".current").read_bytes())
        return case

    assert last(3) == last(3)
    assert last(3) != last(4)


def test_coverage_counts_each_line_of_the_parsers_once() -> None:
    format, coverage = "ibtopo", Coverage()
    (sample, *_) = of_format(format)
    with coverage:
        check(Case(format, sample, {}))
    first = coverage.new
    with coverage:
        check(Case(format, sample, {}))
    assert first > 20
    assert coverage.new == 0
