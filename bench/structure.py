"""Count the code: lines, files, folders, imports, and what three commands enter.

Run ``python -m bench.structure`` in the project's folder. Writes ``bench/results/structure.json``. A line of
code is one on which a statement begins, docstrings apart. A chain of imports is the longest one at the top of
modules, from one module of the product to another. What a command enters is counted in a process of its own,
in all of its threads, on the registry of ``almanac demo``.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from bench.support.machine import save
from bench.support.paths import RESULTS, ROOT

RECORD = RESULTS / "structure.json"
PRODUCT = ("registry", "ingest", "mapping", "dashboard", "almanac")
DATA = ROOT / "tests" / "data"
SCAN = DATA / "infiniband" / "fattree2-64-ftree" / "ibnetdiscover.txt"
COMMANDS = {
    "map": ("map", "demo-hpcg-64", "--job", "4711", "--seconds", "1"),
    "ingest": ("ingest", str(SCAN), "--cluster", "structure"),
    "today": ("today", "demo-ndr"),
}
"""Commands on the registry of ``almanac demo``."""
CALL = "from almanac.cli import main; main()"


def main() -> None:
    """Count everything and record it."""
    product = [path for part in PRODUCT for path in python_files(part)]
    counts = {
        "product_lines": sum(map(lines, product)),
        "product_files": len(product),
        "product_folders": len({path.parent for path in product}),
        "code_lines": sum(map(code_lines, product)),
        "longest_import_chain": longest_chain(),
        "modules_imported_once": imported_once(),
    }
    for part in ("tests", "bench"):
        counts |= {
            f"{part}_lines": sum(map(lines, python_files(part))),
            f"{part}_files": len([*python_files(part)]),
        }
    save(RECORD, counts, {"code_share": counts["code_lines"] / counts["product_lines"], "entered": entered()})


def python_files(part: str) -> Iterator[Path]:
    """Yield the modules below a top-level folder, by path."""
    yield from sorted((ROOT / part).rglob("*.py"))


def lines(path: Path) -> int:
    """Return the number of lines of a file."""
    return path.read_text("utf-8").count("\n")


def code_lines(path: Path) -> int:
    """Return the number of lines on which a statement begins, docstrings apart."""
    statements = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.stmt)]
    return len({node.lineno for node in statements if not is_text(node)})


def is_text(node: ast.stmt) -> bool:
    """Return True for a docstring, or a text beside a constant or field."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


@cache
def imports() -> dict[str, set[str]]:
    """Return for each module of the product the product's modules that it imports at its top."""
    paths = {module_name(path): path for part in PRODUCT for path in python_files(part)}
    return {
        name: {one for node in ast.parse(path.read_bytes()).body for one in _imported(node, paths)} - {name}
        for name, path in paths.items()
    }


def module_name(path: Path) -> str:
    """Return the dotted name of a module."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imported(node: ast.AST, known: dict[str, Path]) -> Iterator[str]:
    """Yield the known modules that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.ImportFrom) and node.module in known:
        inner = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from [name for name in inner if name in known] or [node.module]


def longest_chain() -> int:
    """Return the number of modules in the longest chain of imports."""

    @cache
    def length(name: str) -> int:
        return 1 + max(map(length, imports()[name]), default=0)

    return max(map(length, imports()))


def imported_once() -> int:
    """Return the number of modules that exactly one other module imports, at its top or within a function."""
    importers: Counter[str] = Counter()
    known = {module_name(path): path for part in PRODUCT for path in python_files(part)}
    for name, path in known.items():
        found = {one for node in ast.walk(ast.parse(path.read_bytes())) for one in _imported(node, known)}
        importers.update(found - {name})
    return sum(count == 1 for count in importers.values())


def entered() -> dict[str, dict[str, int]]:
    """Return for each command the functions and files of the product that it enters, on a demo's registry."""
    with tempfile.TemporaryDirectory() as home:
        run(home, "-c", CALL, "demo")
        run(home, "-c", CALL, *COMMANDS["map"])  # compiles what the next ones use
        found = {
            name: json.loads(run(home, "-m", "bench.structure", *words)) for name, words in COMMANDS.items()
        }
        run(home, "-c", CALL, "db", "stop")
    return found


def run(home: str, *words: str) -> str:
    """Run Python with these words on the registry of a folder; return the last line that it prints."""
    variables = {**os.environ, "ALMANAC_HOME": home}
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=variables, capture_output=True, text=True, check=True
    )
    return (done.stdout.splitlines() or [""])[-1]


def trace(words: list[str]) -> None:
    """Run a command in this process, and print the functions and files of the product that it entered."""
    from almanac import cli

    folders = tuple(f"{ROOT / part}/" for part in PRODUCT)
    functions: set[tuple[str, str]] = set()

    def enter(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folders) and code.co_name != "<module>":
            functions.add((code.co_filename, code.co_qualname))

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        cli.main(words)
    except SystemExit as done:
        if done.code not in (0, None):
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    print(json.dumps({"functions": len(functions), "files": len({file for file, _ in functions})}))


if __name__ == "__main__":
    if sys.argv[1:]:
        trace(sys.argv[1:])
    else:
        main()
