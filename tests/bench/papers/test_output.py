"""What a run of `bench.papers` prints and where it writes: never records of the repository unless asked."""

from __future__ import annotations

from pathlib import Path

import pytest

import bench.papers.circuits.__main__ as circuits
import bench.papers.mapping.__main__ as mapping
from bench.documented.passage import Passage, table_rows
from bench.support import output, paths

PAGE = """
Text with 1.5 s.

| it says | ours |
|---|---|
| a | 1.5 s |
| b | 2.5 s |

| it says | ours |
|---|---|
| c | 3.5 s |
"""


def tracked() -> dict[Path, int]:
    """Return when each record of the repository was changed."""
    return {path: path.stat().st_mtime_ns for path in paths.RESULTS.rglob("*") if path.is_file()}


def test_a_run_prints_the_table_of_the_page_and_changes_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tracked()
    monkeypatch.setattr(output, "build", lambda: tmp_path)
    monkeypatch.setattr(mapping, "has_plots", lambda: False)
    mapping.main(["2011-examples"])
    printed = capsys.readouterr()
    page = (paths.ROOT / "docs/explanation/papers/hoefler-snir-2011.md").read_text()
    table = page.split("## Examples and Theorem 1\n")[1].split("\n\n")[1]
    assert table in printed.out
    assert (tmp_path / "papers" / "2011-examples.json").exists()
    assert tracked() == before


@pytest.mark.parametrize("main", [mapping.main, circuits.main], ids=["mapping", "circuits"])
def test_options_that_contradict_are_refused(main: object, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--record", "--small"], ["--record", "--output", "x"], ["--page-only"]):
        with pytest.raises(SystemExit):
            main(words)  # type: ignore[operator]
        assert words[0] in capsys.readouterr().err


def test_without_matplotlib_a_line_names_the_command_and_nothing_is_recorded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "has_plots", lambda: False)
    with pytest.raises(SystemExit):
        mapping.main(["2011-examples", "--record"])
    assert "--record draws plots, which need matplotlib: " in capsys.readouterr().err


def test_rows_of_a_page_get_the_values_of_another_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.json").write_text('{"a": 1.5, "c": 3.5}')
    (tmp_path / "new.json").write_text('{"a": 10.25, "c": 7}')
    (tmp_path / "small.json").write_text('{"a": 10.25}')
    monkeypatch.setattr("bench.documented.passage.paths.RESULTS", tmp_path)
    passages = [
        Passage("| a | {:.1f} s |", "rows.json", lambda found: [found["a"]]),
        Passage("| c | {:.1f} s |", "rows.json", lambda found: [found["c"]]),
        Passage("Text with {:.1f} s.", "rows.json", lambda found: [found["a"]]),
    ]
    head = ["| it says | ours |", "|---|---|"]
    assert table_rows(PAGE, passages, tmp_path / "new.json") == [
        *head, "| a | 10.2 s |", "", *head, "| c | 7.0 s |"
    ]  # fmt: skip
    assert table_rows(PAGE, passages, tmp_path / "small.json") == []
