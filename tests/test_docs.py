"""README and guides: their links lead somewhere, the commands they show exist, nothing is undocumented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from almanac.reference import commands
from tests.support import paths

ROOT = paths.ROOT
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_command_that_the_readme_shows_exists() -> None:
    known = {words for words, _ in commands()}
    shown = re.findall(r"^almanac (\w+)(?: (\w+))?", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert shown
    for first, second in shown:
        assert first in known
        group = any(words.startswith(f"{first} ") for words in known)
        assert not group or f"{first} {second}" in known


def test_every_command_with_json_has_its_keys_documented() -> None:
    keys = (ROOT / "docs" / "reference" / "json.md").read_text("utf-8")
    for words, command in commands():
        if any(parameter.name == "as_json" for parameter in command.params):
            assert f"`{words}`" in keys, words
