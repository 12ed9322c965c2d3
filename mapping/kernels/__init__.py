"""Compiled loops that several packages share, and the cache of all compiled loops.

numba stores compiled code beside each module, or in the folder that ``NUMBA_CACHE_DIR`` names, and deletes
it if that module changes, but not if a function or tuple type changes that the module imports from another
one. Therefore all compiled code is deleted as soon as any module in a package named ``kernels`` has changed;
each of these packages imports this one first.

A function is compiled again for every combination of argument types, and an int32, an int64 and a constant
are three types. Functions that other kernels call are passed ``int(np.int64(x))``: one type, compiled once.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_STAMP = "kernels.sha256"


def forget_outdated(root: Path) -> bool:
    """Delete the compiled code of all packages named ``kernels`` if any of their modules has changed.

    If the cache folder cannot be written, as in a system-wide installation, nothing is deleted.

    Args:
        root: Folder of a package; packages named ``kernels`` below it are searched, at any depth.

    Returns:
        True if a module had changed.
    """
    packages = sorted(path for path in root.rglob("kernels") if path.is_dir())
    sources = hashlib.sha256()
    for path in (path for package in packages for path in sorted(package.glob("*.py"))):
        sources.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    cache = _cache(root)
    stamp = cache / _STAMP
    try:
        if stamp.exists() and stamp.read_text("ascii") == sources.hexdigest():
            return False
        cache.mkdir(exist_ok=True, parents=True)
        for package in packages:
            for compiled in _cache(package).glob("*.nb[ic]"):
                compiled.unlink(missing_ok=True)
        fresh = cache / f"{_STAMP}.{os.getpid()}"
        fresh.write_text(sources.hexdigest(), "ascii")
        fresh.replace(stamp)
    except OSError:
        return False
    return True


def _cache(package: Path) -> Path:
    """Return the folder of a package's compiled code, named as numba names it."""
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if not folder:
        return package / "__pycache__"
    hashed = hashlib.sha1(str(package.absolute()).encode(), usedforsecurity=False).hexdigest()
    return Path(folder) / f"{package.name}_{hashed}"


forget_outdated(Path(__file__).parent.parent)
