"""Optional parts: what is imported without them, and commands that install them; room on the disk."""

from __future__ import annotations

import ast
import json
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import numpy
import pytest

from registry import installation
from registry.errors import MissingExtra
from registry.installation import (
    FULL_BYTES,
    bytes_of,
    install_command,
    no_space,
    optional_parts,
    origin,
    require,
    upgrade_advice,
)
from tests.support import paths

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
GIT = "https://host/a.git"
OPTIONAL = ("PIL", "altair", "fastapi", "otf2", "pandas", "py2neo", "pyarrow", "streamlit", "uvicorn")
"""Modules of extras."""
METADATA = """Metadata-Version: 2.4
Name: fabric-almanac
Version: 0.1.0
Requires-Dist: numpy<3,>=2.1
Provides-Extra: dashboard
Requires-Dist: numpy<3,>=2.1; extra == "dashboard"
Requires-Dist: no-such-package>=1; extra == "dashboard"
Provides-Extra: login
Requires-Dist: numpy[auth]<3,>=1; python_version >= "3.11" and extra == "login"
Provides-Extra: dev
Requires-Dist: no-such-tool; extra == "dev"
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The metadata of an installation that is no checkout."""
    (tmp_path / "METADATA").write_text(METADATA)
    found = PathDistribution(tmp_path)
    monkeypatch.setattr(installation, "ROOT", tmp_path)
    monkeypatch.setattr(installation, "distribution", lambda name: found)
    monkeypatch.setattr(installation, "metadata", lambda name: found.metadata)
    return tmp_path


def test_a_checkout_is_installed_again_with_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "my checkout"
    checkout.mkdir()
    (checkout / "pyproject.toml").touch()
    monkeypatch.setattr(installation, "ROOT", checkout)
    command = shlex.split(install_command("dashboard"))
    assert command == [sys.executable, "-m", "pip", "install", "--editable", f"{checkout}[dashboard]"]
    assert origin() == f"the checkout {checkout}"


def test_elsewhere_packages_of_the_extra_are_installed_by_name(installed: Path, monkeypatch: Any) -> None:
    begin = [sys.executable, "-m", "pip", "install"]
    assert shlex.split(install_command("dashboard")) == [*begin, "numpy<3,>=2.1", "no-such-package>=1"]
    assert shlex.split(install_command("login")) == [*begin, "numpy[auth]<3,>=1"]
    assert dict(optional_parts()) == {
        "dashboard": {"numpy": numpy.__version__, "no-such-package": None},
        "login": {"numpy": numpy.__version__},
    }
    monkeypatch.setattr(installation, "find_spec", lambda name: None)  # without pip
    assert install_command("login").startswith(f"uv pip install --python {sys.executable} ")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (None, "a package index"),
        ({"url": "file:///opt/fabric-almanac", "dir_info": {}}, "file:///opt/fabric-almanac"),
        ({"url": "file:///tmp/a.whl", "archive_info": {"hashes": {}}}, "file:///tmp/a.whl"),
        ({"url": GIT, "vcs_info": {"vcs": "git", "commit_id": "8fd3"}}, f"git+{GIT}@8fd3"),
    ],
)
def test_the_origin_is_read_from_what_an_installer_wrote(installed: Path, source: Any, expected: str) -> None:
    if source is not None:
        (installed / "direct_url.json").write_text(json.dumps(source))
    assert origin() == expected
    assert upgrade_advice().endswith(f", installed from {expected})")


def test_modules_that_nobody_installed_are_named_by_folder(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(installation, "ROOT", tmp_path)
    monkeypatch.setattr(installation, "PROGRAM", "no-such-program")
    assert origin() == f"the folder {tmp_path}"
    assert list(optional_parts()) == []


def test_a_missing_module_is_an_error_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    require("pandas", "json", "ast")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra) as missing:
        require("pandas", "json", "pandas")
    assert (missing.value.package, missing.value.command) == ("pandas", install_command("pandas"))


def test_every_extra_that_the_code_requires_is_declared() -> None:
    named = {
        node.args[0].value
        for part in ("registry", "ingest", "mapping", "dashboard", "almanac")
        for path in (paths.ROOT / part).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "require"
        and isinstance(node.args[0], ast.Constant)
    }
    assert named == {"dashboard", "distributed", "otf2", "pandas", "py2neo", "serve"}
    assert named <= set(PROJECT["optional-dependencies"])


WITHOUT_EXTRAS = """
import importlib, pkgutil, sys

for name in sys.argv[1].split():
    sys.modules[name] = None  # an import of it raises ModuleNotFoundError
skipped = []
for part in ("registry", "ingest", "mapping", "almanac"):
    for module in pkgutil.walk_packages(importlib.import_module(part).__path__, f"{part}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            skipped.append(f"{module.name} needs {error.name}")
print(*skipped, sep="\\n")
"""


def test_all_of_the_base_is_imported_without_the_extras(processes: None) -> None:
    """Except the script that Streamlit runs and the HTTP interface, which their commands import."""
    shown = _printed(WITHOUT_EXTRAS, " ".join(OPTIONAL)).splitlines()
    needing = {line.split()[0]: line.split()[-1] for line in shown}
    service = {f"almanac.serve.{name}" for name in ("api",)}
    assert set(needing) == {"almanac.dashboard_page"} | service
    assert needing.pop("almanac.dashboard_page") in ("altair", "pandas", "PIL", "streamlit")
    packages = {name.split(".")[0] for name in needing.values()}
    assert packages <= {"fastapi", "h11", "starlette", "uvicorn"}


HEAVY = {"fastapi", "networkx", "neo4j", "numba", "pandas", "pyarrow", "rich", "scipy", "streamlit"}
"""Libraries that take long to import: what needs them imports them when it runs."""


def test_the_public_names_of_mapping_load_no_library_that_only_bounds_need(processes: None) -> None:
    loaded = _loaded("from mapping import *")
    assert "mapping.cost.metrics" in loaded
    assert loaded & {"networkx", "pandas", "scipy.linalg", "scipy.optimize", "scipy.sparse.linalg"} == set()


def test_importing_loads_no_library_that_only_some_work_needs(processes: None) -> None:
    packages = "registry.registry, registry.interchange, mapping, ingest; dir(mapping), dir(registry)"
    assert HEAVY & (loaded := _loaded(f"import {packages}")) == set()
    assert {"registry", "mapping", "ingest"} <= loaded
    assert {*HEAVY, "numpy"} & (
        loaded := _loaded("import almanac.cli; almanac.cli.main(['--help'])")
    ) == set()
    assert "almanac" in loaded


def _loaded(statement: str) -> set[str]:
    """Return the modules that a new process has loaded after a statement."""
    code = f"import sys, atexit; atexit.register(lambda: print(*sys.modules)); {statement}"
    return set(_printed(code).splitlines()[-1].split())


def _printed(code: str, *words: str) -> str:
    command = [sys.executable, "-c", code, *words]
    process = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_the_base_depends_on_no_package_of_the_dashboard() -> None:
    """Follow the dependencies of dependencies, as the metadata of installed packages list them."""
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    needed, waiting = set[str](), list(PROJECT["dependencies"])
    while waiting:
        requirement = Requirement(waiting.pop())
        name = requirement.name.lower().replace("_", "-")
        if name not in needed and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            needed.add(name)
            waiting += requires(name) or []
    assert {"numpy", "llvmlite", "jpype1"} <= needed
    assert needed & {"altair", "matplotlib", "pandas", "pillow", "pyarrow", "pydeck", "streamlit"} == set()


def test_a_file_system_with_little_room_is_full_and_named(tmp_path: Path, monkeypatch: Any) -> None:
    free = FULL_BYTES
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("registry.installation.shutil.disk_usage", lambda folder: usage._replace(free=free))
    assert no_space(tmp_path) == ""
    free = 3_999_999
    text = f"no space left on {tmp_path}, 3 MB free: make room, then repeat the command"
    assert no_space(tmp_path) == text
    assert no_space(tmp_path / "not" / "yet" / "there") == text


def test_the_bytes_of_files_in_folders_are_added(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    (tmp_path / "c").write_bytes(b"1")
    assert bytes_of([tmp_path]) == 6
    assert bytes_of([tmp_path, tmp_path / "a"]) == 11
    assert bytes_of([tmp_path / "missing"]) == 0


def test_a_file_that_vanishes_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kept").write_bytes(b"123")
    gone = tmp_path / "gone"  # a log that a running server removes while the folder is read
    monkeypatch.setattr(Path, "is_file", lambda path: True)
    monkeypatch.setattr(Path, "rglob", lambda folder, pattern: iter([gone, tmp_path / "kept"]))
    assert bytes_of([tmp_path]) == 3
