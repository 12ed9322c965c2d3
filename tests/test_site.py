"""The site of the documentation: builds without warnings, loads nothing from elsewhere, has all pages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import paths

DOCS = paths.ROOT / "docs"


@pytest.fixture(scope="module")
def site(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as ``make docs`` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    done = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_page_is_in_the_site_and_in_its_menu(site: Path) -> None:
    menu = (site / "index.html").read_text("utf-8")
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).with_suffix(".html")
        assert (site / name).exists()
        assert name.name == "index.html" or f'href="{name}"' in menu, name


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="([^"]+)"', text)
        loaded += re.findall(r'<link[^>]*\srel="(?:stylesheet|preload|icon)"[^>]*\shref="([^"]+)"', text)
        assert loaded
        assert not [one for one in loaded if "//" in one], page
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"url\([\"']?(?:https?:)?//|@import", sheet.read_text("utf-8")), sheet


def test_the_index_and_the_search_know_words_of_the_pages(site: Path) -> None:
    index = (site / "genindex.html").read_text("utf-8")
    for term in ("hop-bytes", "almanac cluster check", "keep_observations", "place() (in module mapping)"):
        assert term in index
    assert "dragonfli" in (site / "searchindex.js").read_text("utf-8")  # words are stored as stems
