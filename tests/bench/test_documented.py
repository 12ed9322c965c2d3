"""Every measured figure in README and docs is the one of its record."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

import bench.documented
from bench.documented.figure import Figure, plain, row
from bench.support import paths

PAGES: list[ModuleType] = [
    importlib.import_module(f"bench.documented.{one.name}")
    for one in pkgutil.iter_modules(bench.documented.__path__)
    if one.name != "figure"
]
FIGURES = [
    pytest.param(page.PAGE, one, id=f"{page.PAGE}: {one.text[:60]}") for page in PAGES for one in page.FIGURES
]


@pytest.mark.parametrize(("page", "figure"), FIGURES)
def test_a_page_has_the_values_of_the_record(page: str, figure: Figure) -> None:
    text = plain((paths.ROOT / page).read_text("utf-8"))
    assert text.count(plain(figure.rendered())) == 1, f"{page} should have: {figure.rendered()}"


def test_a_row_is_found_by_its_texts() -> None:
    found = {
        "rows": [{"what": "a", "baseline": "x", "ours": 1.0}, {"what": "a", "baseline": "y", "ours": 2.0}]
    }
    assert row(found, "a", "y") == 2.0
    with pytest.raises(LookupError, match="2 rows are 'a'"):
        row(found, "a")
    with pytest.raises(LookupError, match="0 rows are 'b'"):
        row(found, "b")
