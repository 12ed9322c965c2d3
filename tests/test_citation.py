"""CITATION.cff has what a citation needs, of this version, and the README says how to cite."""

from __future__ import annotations

import datetime
import tomllib

import yaml

from tests.support import paths

CITATION = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text("utf-8"))
PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_citation_is_of_this_version_and_complete() -> None:
    for key in ("cff-version", "message", "title", "type", "abstract", "authors", "keywords"):
        assert CITATION[key], key
    assert CITATION["version"] == PROJECT["version"]
    assert CITATION["license"] == PROJECT["license"]
    assert isinstance(CITATION["date-released"], datetime.date)
    assert CITATION["authors"][0]["name"]


def test_every_paper_that_is_reproduced_is_a_reference() -> None:
    years = [one["year"] for one in CITATION["references"]]
    pages = (paths.ROOT / "docs" / "explanation" / "papers").glob("*.md")
    assert years == sorted(int(page.stem.rpartition("-")[2]) for page in pages)
    for one in CITATION["references"]:
        assert one["title"]
        assert all(author["family-names"] for author in one["authors"])


def test_the_readme_says_how_to_cite() -> None:
    section = (paths.ROOT / "README.md").read_text("utf-8").split("\n## Cite\n")[1].split("\n## ")[0]
    assert "CITATION.cff" in section
    assert PROJECT["version"] in section
    assert str(CITATION["date-released"].year) in section
