"""Build the site from the pages of this folder: ``make docs``.

The pages are Markdown as GitHub shows it. What only the site needs is added while they are read: menus made
of the links of a page, entries of the index, and the documentation of Python objects. Measured figures are
put in from the records of the benchmarks.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))
figures = importlib.import_module("bench.figures")

project = "Fabric Almanac"
copyright = "the authors of Fabric Almanac, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["examples"]
suppress_warnings = ["misc.highlighting_failure"]  # Pygments knows no parameters in Cypher
myst_heading_anchors = 4
default_role = "code"
autodoc_default_options = {"members": True}
autodoc_typehints = "none"
html_theme = "furo"
html_title = project
html_copy_source = False

_INDEXED = {
    "reference/glossary": re.compile(r"^(\| \*\*)([\w -]+)", re.MULTILINE),
    "reference/settings": re.compile(r"^(\| )`(\w+)`", re.MULTILINE),
    "reference/commands": re.compile(r"^(##+ )(almanac [\w -]+)$", re.MULTILINE),
}
"""Pages whose terms are entries of the index, with the pattern of what is before a term and of the term."""
_MODULE = re.compile(r"^## ((?:mapping|registry)[\w.]*)$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(((?!https?:|#)[^()\s#]+)(#[^()\s]*)?\)")


def _complete(app: Sphinx, page: str, source: list[str]) -> None:
    """Add figures, menus, entries of the index and Python objects to a page."""
    text, below = figures.renewed(source[0]), DOCS / page
    if page == "index":
        parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)[1:]
        for caption, part in zip(parts[::2], parts[1::2], strict=True):
            text += _menu(part, "", f":caption: {caption}")
        text += "\n```{toctree}\n:hidden:\n\nIndex <genindex>\n```\n"
    elif below.is_dir():
        text += _menu(text, f"{below.name}/")
    elif page in _INDEXED:
        text = _INDEXED[page].sub(r"\1{index}`\2`", text)
    elif page == "reference/python":
        text = _MODULE.sub(_members, text)
    source[0] = _LINK.sub(lambda link: _outside(below.parent, link), text)


def _menu(text: str, prefix: str, *options: str) -> str:
    """Return a menu of the pages that a text links to, named as its links are."""
    pages = {path: " ".join(name.split()) for name, path, _ in _LINK.findall(text) if path.startswith(prefix)}
    lines = [f"{name[0].upper()}{name[1:]} <{path.removesuffix('.md')}>" for path, name in pages.items()]
    return "\n".join(["", "```{toctree}", ":hidden:", *options, "", *lines, "```", ""])


def _members(heading: re.Match[str]) -> str:
    """Return the heading of a module with the documentation of its public names."""
    module = importlib.import_module(heading[1])
    for name in getattr(module, "__all__", []):
        getattr(module, name)  # names that are loaded on first use are members from then on
    return f"{heading[0]}\n\n```{{eval-rst}}\n.. automodule:: {heading[1]}\n```\n"


def _outside(folder: Path, link: re.Match[str]) -> str:
    """Return a link to a file that is no page as one to a copy of it, and one to a folder as its text."""
    target = (folder / link[2]).resolve()
    if target.is_dir():
        return link[1]
    return link[0] if target.is_relative_to(DOCS) else f"[{link[1]}](path:{link[2]})"


def setup(app: Sphinx) -> None:
    """Complete each page as it is read."""
    app.connect("source-read", _complete)
