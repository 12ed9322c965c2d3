"""The house: who may import whom. Walks every import statement, those inside functions too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WINGS = ("registry", "ingest", "mapping", "dashboard", "almanac")
MAY_IMPORT = {
    "registry": {"registry"},
    "ingest": {"registry", "ingest"},
    "mapping": {"registry", "mapping"},
    "dashboard": {"registry", "mapping", "dashboard"},
    "almanac": set(WINGS),
}
GROUND = {"registry.model", "registry.errors", "registry.progress", "registry.units", "registry.version"}
"""What mapping may know of the registry; its room `service` alone may know the rest."""
STOREYS = (
    "kernels",
    "options threads exports",
    "routing partition",
    "costs checks simulate",
    "bounds model",
    "refine",
    "catalog",
    "strategies",
    "evaluation search",
    "moves traffic reconfigure",
    "answers",
    "service",
)
"""Rooms of mapping, from the ground up: each may know those below it and itself."""
CYPHER = re.compile(r"\b(MATCH|MERGE|CREATE|UNWIND|RETURN)\s+[\w($:]")
ONLY_IN = {
    "neo4j": {"registry/database.py"},
    "py2neo": {"registry/interchange.py"},
    "streamlit": {"dashboard/"},
    "click": {"almanac/"},
    "rich": {"almanac/"},
    "numba": {"mapping/kernels/", "ingest/kernels/"},
}


def modules() -> list[Path]:
    return sorted(path for wing in WINGS for path in (ROOT / wing).rglob("*.py"))


@cache
def imports(path: Path) -> tuple[str, ...]:
    """What a module imports; read once for all rules."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where things come from"
            yield node.module or ""


def room(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", modules(), ids=room)
def test_imports_go_down_the_house_only(path: Path) -> None:
    wing = room(path).split("/")[0]
    for name in imports(path):
        if name.split(".")[0] in WINGS:
            assert name.split(".")[0] in MAY_IMPORT[wing], f"{room(path)} imports {name}"


@pytest.mark.parametrize("path", [p for p in modules() if room(p).startswith("mapping/")], ids=room)
def test_mapping_knows_only_the_types_of_the_registry(path: Path) -> None:
    if room(path).startswith("mapping/service/"):
        return
    for name in imports(path):
        if name.startswith("registry"):
            assert ".".join(name.split(".")[:2]) in GROUND, f"{room(path)} imports {name}"


@pytest.mark.parametrize("path", [p for p in modules() if room(p).startswith("mapping/")], ids=room)
def test_mapping_is_built_storey_on_storey(path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[1] == "__init__":
        return
    storey = {name: level for level, names in enumerate(STOREYS) for name in names.split()}
    for name in imports(path):
        if name.startswith("mapping."):
            above = name.split(".")[1]
            assert above == parts[1] or storey[above] < storey[parts[1]], f"{room(path)} imports {name}"


@pytest.mark.parametrize("path", modules(), ids=room)
def test_each_library_has_its_own_room(path: Path) -> None:
    for name in imports(path):
        rooms = ONLY_IN.get(name.split(".")[0])
        if rooms is not None:
            assert room(path).startswith(tuple(rooms)), f"{room(path)} imports {name}"


@pytest.mark.parametrize("path", [p for p in modules() if not room(p).startswith("registry/")], ids=room)
def test_cypher_stands_in_the_registry_only(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not CYPHER.search(node.value), f"{room(path)}:{node.lineno}"


@pytest.mark.parametrize("name", sorted(GROUND))
def test_the_types_need_only_numpy_and_the_standard_library(name: str) -> None:
    import sys

    path = ROOT / Path(*name.split("."))
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    allowed = set(sys.stdlib_module_names) | {"numpy", "registry"}
    for file in files:
        for imported in imports(file):
            assert imported.split(".")[0] in allowed, f"{room(file)} imports {imported}"


def test_the_walk_sees_imports_inside_functions(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("def f():\n    import streamlit\n    from ingest.rates import x\n")
    assert list(imports(source)) == ["streamlit", "ingest.rates"]
