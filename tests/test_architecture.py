"""Rules of the code: which package may import which, how long functions are, how texts read.

Every import statement is followed, also those inside functions.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import paths

ROOT = paths.ROOT
PARTS = ("registry", "ingest", "mapping", "dashboard", "almanac")
MAY_IMPORT = {
    "registry": {"registry"},
    "ingest": {"registry", "ingest"},
    "mapping": {"registry", "mapping"},
    "dashboard": {"registry", "mapping", "dashboard"},
    "almanac": set(PARTS),
}
GROUND = "catalog csv_text errors installation model progress units"
"""What mapping may import of the registry; its package `questions` alone may import the rest."""
LEVELS = {
    "registry": (
        "errors progress",
        "csv_text units",
        "installation",
        "catalog",
        "model",
        "database",
        "store",
        "interchange",
        "upkeep",
        "exports",
        "registry",
    ),
    "ingest": (
        "options",
        "generate reading",
        "parsed",
        "formats merging",
        "catalog writers",
        "pipeline",
    ),
    "mapping": (
        "cluster kernels",
        "deadline",
        "routing",
        "checks distances launchers",
        "placement simulation",
        "circuits cost",
        "selfcheck traffic",
        "questions",
    ),
    "dashboard": ("map server", "shared", "pages", "app"),
    "almanac": (
        "conformance demo output prometheus settings",
        "dashboard_page kernel_cache precompile spool",
        "dashboard_server options",
        "cli job_environment serve",
        "placing_options reference running",
        "batch",
        "commands",
    ),
}
"""Packages from the ground up: each may import those on lower levels and itself."""
CYPHER = re.compile(r"\b(MATCH|MERGE|CREATE|UNWIND|RETURN)\s+[\w($:]")
ONLY_IN = {
    "neo4j": {"registry/database/driver.py"}, "py2neo": {"registry/interchange.py"},
    "streamlit": {"dashboard/"}, "altair": {"dashboard/"}, "PIL": {"dashboard/"},
    "pandas": {"dashboard/", "registry/interchange.py"}, "pyarrow": set(), "click": {"almanac/"},
    "rich": {"almanac/"}, "fastapi": {"almanac/serve/"}, "uvicorn": {"almanac/serve/"},
    "dask": {"mapping/cluster.py"}, "distributed": {"mapping/cluster.py"},
}  # fmt: skip


MOST_LINES, MOST_PARAMETERS, LONG, MOST_LONG = 700, 8, 60, 1
COMPARED_FROM = 10
"""Lines from which two bodies must differ."""
BUDGET = {"lines": 96_800, "files": 375, "folders": 43}
"""Most of the product; lowered whenever it gets lighter, never raised without a word in the message."""


def modules(part: str = "") -> list[Path]:
    """Return every module of a part, or of all."""
    parts = (part,) if part else PARTS
    return sorted(path for one in parts for path in (ROOT / one).rglob("*.py"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module, its own first; parsed once for all rules."""
    return tuple(ast.walk(ast.parse(path.read_text("utf-8"))))


def imports(path: Path) -> Iterator[str]:
    """Yield what a module imports."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where things come from"
            yield node.module or ""


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(part: str = "") -> Iterator[tuple[str, str]]:
    """Yield every module of a part, or of all, with each name that it imports."""
    return ((relative(path), name) for path in modules(part) for name in imports(path))


def lines_like(pattern: str, part: str = "") -> list[str]:
    """Return the places of lines in which a pattern is found."""
    return [
        f"{relative(path)}:{number}"
        for path in modules(part)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(pattern, line)
    ]


def test_imports_go_down_only() -> None:
    wrong = []
    for path, name in imported():
        part, other = path.split("/")[0], name.split(".")[0]
        if other in PARTS and other not in MAY_IMPORT[part]:
            wrong.append(f"{path} imports {name}")
    assert wrong == []


def test_mapping_imports_only_the_types_of_the_registry() -> None:
    ground, wrong = {f"registry.{name}" for name in GROUND.split()}, []
    for path, name in imported("mapping"):
        known = ".".join(name.split(".")[:2]) in ground or path.startswith("mapping/questions/")
        if name.startswith("registry") and not known:
            wrong.append(f"{path} imports {name}")
    assert wrong == []


@pytest.mark.parametrize("part", LEVELS)
def test_each_package_has_a_level_and_imports_only_packages_below_it(part: str) -> None:
    level, wrong = {name: row for row, names in enumerate(LEVELS[part]) for name in names.split()}, []
    below = (ROOT / part).iterdir()
    found = {path.stem for path in below if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found - {"__init__"} == level.keys()
    assert len(level) == sum(len(names.split()) for names in LEVELS[part])
    for path, name in imported(part):
        mine = path.removesuffix(".py").split("/")[1]
        if mine != "__init__" and name.startswith(f"{part}."):
            other = name.split(".")[1]
            if other != mine and level[other] >= level[mine]:
                wrong.append(f"{path} imports {name}")
    assert wrong == []


def test_each_library_is_imported_in_one_place() -> None:
    wrong = []
    for path, name in imported():
        library = name.split(".")[0]
        folders = ONLY_IN.get(library)
        if folders is not None and not path.startswith(tuple(folders)):
            wrong.append(f"{path} imports {name}")
        if library == "numba" and path.split("/")[-2] != "kernels":
            wrong.append(f"{path} imports {name}")
    assert wrong == []
    kernels = {
        relative(file.parent): set(imports(file)) for file in modules() if file.match("kernels/__init__.py")
    }
    assert len(kernels) > 6  # each imports what deletes compiled code that is out of date
    assert [name for name, names in kernels.items() if "mapping.kernels" not in names] == ["mapping/kernels"]


def test_a_pattern_starts_at_the_node_with_the_key() -> None:
    """Check that ``MATCH (a:A)-->(b:B {id: ...})`` begins with b: ArcadeDB 26.10 would read every a."""
    assert lines_like(r"MATCH \(\w*(:[\w{}]+)?\)[^\n]*\{(id|key)\b") == []


def test_patterns_of_parsers_repeat_groups_possessively() -> None:
    """Check for ``(...)*+`` instead of ``(...)*``, which takes gigabytes for a line of 10 MB."""
    assert lines_like(r"""\br[bf]?["'].*\)[*+](?!\+)""", "ingest") == []


def test_cypher_is_written_in_the_registry_only() -> None:
    wrong = [
        f"{relative(path)}:{node.lineno}"
        for path in modules()
        if not relative(path).startswith("registry/")
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CYPHER.search(node.value)
    ]
    assert wrong == []


def test_the_types_need_only_numpy_and_the_standard_library() -> None:
    allowed = set(sys.stdlib_module_names) | {"numpy", "registry"}
    for name in GROUND.split():
        places = f"registry/{name}/", f"registry/{name}.py"
        files = [path for path in modules("registry") if relative(path).startswith(places)]
        assert files, name
        for file in files:
            for other in imports(file):
                assert other.split(".")[0] in allowed, f"{relative(file)} imports {other}"


def test_the_walk_sees_imports_inside_functions(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("def f():\n    import streamlit\n    from ingest.formats.fabrics.infiniband import x\n")
    assert list(imports(source)) == ["streamlit", "ingest.formats.fabrics.infiniband"]


class Function(NamedTuple):
    """A function of the product, with the place where it is."""

    path: Path
    node: ast.FunctionDef | ast.AsyncFunctionDef

    @property
    def place(self) -> str:
        return f"{relative(self.path)}:{self.node.lineno} {self.node.name}"

    @property
    def lines(self) -> int:
        return (self.node.end_lineno or self.node.lineno) - self.node.lineno + 1

    @property
    def body(self) -> list[ast.stmt]:
        return self.node.body[1:] if ast.get_docstring(self.node) else self.node.body

    @property
    def parameters(self) -> int:
        given = self.node.args
        names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        return len(names) - (names[:1] in (["self"], ["cls"]))


@cache
def functions() -> tuple[Function, ...]:
    """Return all functions of the product."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return tuple(
        Function(path, node) for path in modules() for node in nodes(path) if isinstance(node, kinds)
    )


def test_files_are_short_and_within_the_budget_and_few_functions_are_longer_than_a_screen() -> None:
    lines = {relative(path): len(path.read_text("utf-8").splitlines()) for path in modules()}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
    found = {
        "lines": sum(lines.values()),
        "files": len(lines),
        "folders": len({Path(name).parent for name in lines}),
    }
    assert {name: count for name, count in found.items() if count > BUDGET[name]} == {}
    long = [one.place for one in functions() if one.lines > LONG]
    assert len(long) <= MOST_LONG, long


def test_public_functions_have_few_parameters() -> None:
    """Except commands, whose parameters are options."""
    assert [
        one.place
        for one in functions()
        if one.parameters > MOST_PARAMETERS
        and not one.node.name.startswith("_")
        and not relative(one.path).startswith("almanac/commands/")
    ] == []


def test_no_two_functions_have_the_same_body() -> None:
    bodies: dict[str, list[str]] = {}
    for one in functions():
        body = one.body
        if body and (body[-1].end_lineno or 0) - body[0].lineno + 1 >= COMPARED_FROM:
            bodies.setdefault(ast.dump(ast.Module(body, [])), []).append(one.place)
    assert [places for places in bodies.values() if len(places) > 1] == []


def test_texts_are_in_plain_english() -> None:
    """Defaults are called defaults; things are stored, returned, reported, not told."""
    texts = {
        relative(path): path.read_text("utf-8")
        for path in [*modules(), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    }
    assert [name for name, text in texts.items() if re.search(r"\bunless\s+told\b", text, re.I)] == []
    told = {name: len(re.findall(r"\b(?:told|tells|tell)\b", text, re.I)) for name, text in texts.items()}
    assert sum(told.values()) < 30, {name: count for name, count in told.items() if count}
