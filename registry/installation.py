"""How this program was installed, and the command that installs an optional part of it.

An optional part is an extra of ``pyproject.toml``. The project is on no package index, so ``pip install
'fabric-almanac[NAME]'`` would find nothing: a checkout is installed again with the extra, for any other
installation the packages of the extra are installed by name.

Room on the file system of a folder, and how much of it the files of folders take.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, metadata, version
from importlib.util import find_spec
from pathlib import Path

from registry.errors import MissingExtra
from registry.units import code_version

PROGRAM = "fabric-almanac"
FOR_DEVELOPERS = ("bench", "dev", "docs")
"""Extras that no command needs."""
ROOT = Path(__file__).parents[1]
"""Folder of the packages: a checkout, or a folder of installed packages."""


def require(extra: str, *modules: str) -> None:
    """Raise if one of the modules that an extra installs cannot be found; nothing is imported.

    Raises:
        MissingExtra
    """
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtra(module, install_command(extra))


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation, for a shell in any folder."""
    pip = [sys.executable, "-m", "pip", "install"]
    if find_spec("pip") is None:  # an environment that uv made
        pip = ["uv", "pip", "install", "--python", sys.executable]
    if (ROOT / "pyproject.toml").is_file():
        return shlex.join([*pip, "--editable", f"{ROOT}[{extra}]"])
    return shlex.join([*pip, *_requirements(extra)])


def optional_parts() -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield each extra and the versions of its packages, None for one that is not installed."""
    for extra in _metadata("Provides-Extra"):
        if extra not in FOR_DEVELOPERS:
            names = [re.split(r"[^\w.-]", requirement)[0] for requirement in _requirements(extra)]
            yield extra, {name: _version(name) for name in names}


def origin() -> str:
    """Return where this program was installed from, such as ``git+https://HOST/NAME@COMMIT``."""
    if (ROOT / "pyproject.toml").is_file():
        return f"the checkout {ROOT}"
    try:
        # Written by pip and uv for what was not installed by name: PEP 610.
        source = json.loads(distribution(PROGRAM).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return f"the folder {ROOT}"
    control = source.get("vcs_info")
    if control:
        return f"{control['vcs']}+{source['url']}@{control['commit_id']}"
    return str(source.get("url", "a package index"))


def upgrade_advice() -> str:
    """Return what to do if stored data are newer than this program."""
    return f"upgrade this program ({code_version()}, installed from {origin()})"


def _requirements(extra: str) -> list[str]:
    """Return the packages of an extra with their versions, as the metadata of this installation list them."""
    split = (line.partition(";") for line in _metadata("Requires-Dist"))
    return [name.strip() for name, _, marker in split if re.search(rf"extra == ['\"]{extra}['\"]", marker)]


def _metadata(field: str) -> list[str]:
    try:
        return metadata(PROGRAM).get_all(field) or []
    except PackageNotFoundError:
        return []


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


FULL_BYTES = 10_000_000
"""A file system with less free space is full: the database needs some to finish a transaction."""


def no_space(folder: Path) -> str:
    """Return what is wrong if the file system of a folder is full, else an empty text."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free >= FULL_BYTES:
        return ""
    return f"no space left on {folder}, {free // 1_000_000} MB free: make room, then repeat the command"


def bytes_of(folders: Iterable[Path]) -> int:
    """Return the bytes of all files below some folders; files that vanish meanwhile do not count."""
    total = 0
    for folder in folders:
        for path in folder.rglob("*"):
            with suppress(OSError):
                total += path.stat().st_size if path.is_file() else 0
    return total
