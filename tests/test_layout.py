"""The tests of a module are found by its name.

Tests of ``a/b/c.py`` are in ``test_c.py``, or in several files ``test_c_<aspect>.py``, in ``tests/a/b`` or
above. Small modules of a package ``a/b`` may be tested together in files named after the package:
``test_b.py`` or ``test_b_<aspect>.py``. Entries of a ``catalog.py`` may be tested by ``test_catalog.py``, as
it goes through all of them. Tests of ``a/b/kernels/c.py`` may be anywhere below ``tests/a/b``, as a kernel is
tested with the module of its name that calls it. Tests of a whole part of the product are named after it:
``test_dashboard_<aspect>.py``.
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


def has_tests(folder: Path, *names: str) -> bool:
    """Return True if a folder has a test file named after one of these modules or packages."""
    return any(named_after(test, name) for test in folder.glob("test_*.py") for name in names)


def is_empty(path: Path) -> bool:
    """Return True if a file is an ``__init__.py`` with nothing but a docstring, imports and constants."""
    body = ast.parse(path.read_text("utf-8")).body
    return path.name == "__init__.py" and all(
        isinstance(node, ast.Expr | ast.Import | ast.ImportFrom | ast.Assign) for node in body
    )


def is_tested(path: Path) -> bool:
    """Return True if the tests of a module are found by its name or its package's."""
    parts = path.relative_to(paths.ROOT).with_suffix("").parts
    *above, name = [part for part in parts if part not in ("kernels", "__init__", "__main__")]
    if not above:
        return has_tests(paths.TESTS / name, name)
    folder = paths.TESTS.joinpath(*above)
    if path.name == "__init__.py" and any((folder / name).glob("test_*.py")):
        return True
    places = [folder / name, folder, *list(folder.parents)[: len(above) - 1]]
    if path.parent.name == "kernels":
        places += folder.rglob("*/")
    if any(has_tests(place, name) for place in places):
        return True
    packages = above[1:] or above
    by_package = any(has_tests(place, package) for place in places for package in packages)
    return by_package or in_catalog(path, folder)


def in_catalog(path: Path, folder: Path) -> bool:
    """Return True if a module is listed in the catalog of its package, whose tests go through all entries."""
    catalog = path.parent / "catalog.py"
    return catalog.exists() and path.stem in catalog.read_text("utf-8") and has_tests(folder, "catalog")


def possible_names(folder: Path) -> set[str]:
    """Return the names that test files of a folder may have: modules, packages, and the folder's own name."""
    product = paths.ROOT / folder.relative_to(paths.TESTS)
    modules = {path.stem for path in product.rglob("*.py")} - {"__init__", "__main__"}
    return {product.name} | modules | {path.name for path in product.rglob("*/")}


@pytest.mark.parametrize("part", PARTS)
def test_tests_of_every_module_are_found_by_its_name(part: str) -> None:
    files = [
        path
        for path in (paths.ROOT / part).rglob("*.py")
        if not (path.name == "__init__.py" and is_empty(path))
    ]
    missing = {str(path.relative_to(paths.ROOT)) for path in files if not is_tested(path)}
    assert not missing, sorted(missing)


@pytest.mark.parametrize("part", PARTS)
def test_every_test_file_names_what_it_tests(part: str) -> None:
    files = sorted((paths.TESTS / part).rglob("test_*.py"))
    lost = [
        str(test.relative_to(paths.ROOT))
        for test in files
        if not any(named_after(test, name) for name in possible_names(test.parent))
    ]
    assert not lost, lost
