"""The tests of a module are found by its name or its package's.

Tests of a thing are in one file or a few, ``test_c.py`` or ``test_c_<aspect>.py`` for a module or package
``c``, in the folder of ``tests`` that mirrors its package or in one above. Small modules that are about one
thing are tested together, in a file named after one of them or after their package; modules directly in a
part of the product are imported by their tests.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support import paths

PARTS = ("registry", "ingest", "mapping", "dashboard", "almanac")
"""Packages of the product; each has a folder of tests."""


def named_after(test: Path, name: str) -> bool:
    """Return True if a test file is named after a module or package."""
    return test.stem == f"test_{name}" or test.stem.startswith(f"test_{name}_")


def is_empty(path: Path) -> bool:
    """Return True if a file is an ``__init__.py`` with nothing but a docstring, imports and constants."""
    body = ast.parse(path.read_text("utf-8")).body
    return path.name == "__init__.py" and all(
        isinstance(node, ast.Expr | ast.Import | ast.ImportFrom | ast.Assign) for node in body
    )


def is_tested(path: Path) -> bool:
    """Return True if the tests of a module are found."""
    parts = path.relative_to(paths.ROOT).with_suffix("").parts
    part, *names = [name for name in parts if name not in ("kernels", "__init__", "__main__")]
    folders = [paths.TESTS.joinpath(part, *names[: depth + 1]) for depth in range(len(names))]
    if any(next(folder.rglob("test_*.py"), None) for folder in folders):
        return True
    tests = [*(paths.TESTS / part).rglob("test_*.py")]
    if len(names) < 2:  # directly in the part: named after it, or imported
        module = ".".join((part, *names))
        return any(named_after(test, part) or module in test.read_text("utf-8") for test in tests)
    return any(named_after(test, name) for test in tests for name in names)


def possible_names(folder: Path) -> set[str]:
    """Return the names that test files of a folder may have: modules and packages, also those above."""
    product = paths.ROOT / folder.relative_to(paths.TESTS)
    modules = {path.stem for path in product.rglob("*.py")} - {"__init__", "__main__"}
    packages = set(folder.relative_to(paths.TESTS).parts) | {path.name for path in product.rglob("*/")}
    return packages | modules


@pytest.mark.parametrize("part", PARTS)
def test_tests_of_every_module_are_found(part: str) -> None:
    files = [path for path in (paths.ROOT / part).rglob("*.py") if not is_empty(path)]
    missing = [str(path.relative_to(paths.ROOT)) for path in files if not is_tested(path)]
    assert not missing, missing


@pytest.mark.parametrize("part", PARTS)
def test_every_test_file_names_what_it_tests(part: str) -> None:
    files = sorted((paths.TESTS / part).rglob("test_*.py"))
    lost = [
        str(test.relative_to(paths.ROOT))
        for test in files
        if not any(named_after(test, name) for name in possible_names(test.parent))
    ]
    assert not lost, lost
