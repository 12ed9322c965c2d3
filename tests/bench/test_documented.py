"""Every measured figure in README and docs is the one of its record."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import bench.documented
from bench.documented.given import GIVEN
from bench.documented.passage import Passage, row, unchecked
from bench.support import paths

MODULES: list[ModuleType] = [
    importlib.import_module(f"bench.documented.{one.name}")
    for one in pkgutil.iter_modules(bench.documented.__path__)
    if one.name not in ("passage", "given")
]
PASSAGES: dict[str, tuple[Passage, ...]] = {one.PAGE: one.PASSAGES for one in MODULES}
PAGES = ["README.md", *(str(one.relative_to(paths.ROOT)) for one in sorted(paths.ROOT.glob("docs/**/*.md")))]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_values_of_the_records_and_no_other_measured_numbers(page: str) -> None:
    text, passages = (paths.ROOT / page).read_text("utf-8"), PASSAGES.get(page, ())
    for passage in passages:
        assert any(is_value for _, is_value in passage.parts())
        found = passage.pattern().findall(text)
        assert len(found) == 1, f"{page} has this {len(found)} times: {passage.rendered()}"
    left = unchecked(text, passages, GIVEN.get(page, ()))
    assert not left, "\n".join(left)


def test_pages_with_passages_exist() -> None:
    assert set(PASSAGES) | set(GIVEN) <= set(PAGES)


def test_a_row_is_found_by_its_texts() -> None:
    rows = [{"what": "a", "baseline": "x", "ours": 1.0}, {"what": "a", "baseline": "y", "ours": 2.0}]
    found = {"rows": rows}
    assert row(found, "a", "y") == 2.0
    with pytest.raises(LookupError, match="2 rows are 'a'"):
        row(found, "a")
    with pytest.raises(LookupError, match="0 rows are 'b'"):
        row(found, "b")


PAGE = """
Placed in 1.5 s and
0.25 of it; `--seconds 7.5` gives 30 hosts; Slurm 22.05.

| it says | ours | what |
|---|---|---|
| 9.03 | 18 of 20 | within 5% |
"""


@pytest.fixture
def passage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Passage:
    (tmp_path / "test_documented.json").write_text('{"seconds": 1.53, "wins": 18, "all": 20}')
    monkeypatch.setattr("bench.documented.passage.paths.RESULTS", tmp_path)
    return Passage("Placed in {:.1f} s and 0.25", "test_documented.json", lambda found: [found["seconds"]])


def test_numbers_without_a_passage_are_found(passage: Passage) -> None:
    def left(passages: list[Passage], given: list[str]) -> list[str]:
        return [one.partition(":")[0] for one in unchecked(PAGE, passages, given)]

    assert left([passage], ["Slurm 22.05"]) == ["0.25", "18", "20", "5%"]
    cell = Passage("| 9.03 | {} of {} |", "test_documented.json", lambda found: [found["wins"], found["all"]])
    assert left([passage, cell], ["Slurm 22.05", "0.25 of it", "within 5%"]) == []
    with pytest.raises(LookupError, match=r"does not have 'Slurm 23\.02'"):
        left([passage], ["Slurm 23.02"])


def test_another_value_than_the_record_is_found(passage: Passage) -> None:
    assert passage.rendered() == "Placed in 1.5 s and 0.25"
    assert passage.pattern().findall(PAGE) == ["1.5"]
    assert not passage.pattern().search(PAGE.replace("1.5", "1.4"))
