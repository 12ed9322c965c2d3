"""Compiled loops on plain arrays: the only code of this house that numba sees.

numba keeps compiled code beside a module and forgets it when that module changes, but not when a kernel or a
tuple type of another module does that it has taken in. So all is forgotten as soon as any of these modules
has changed.

A kernel is compiled anew for every combination of argument types, and an int32, an int64 and a constant are
three. So kernels that others call are given ``int(np.int64(x))``, one type, and compiled once.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_STAMP = "kernels.sha256"


def forget_outdated(room: Path) -> bool:
    """Delete what numba has kept for the modules of a folder, if any of them has changed since.

    Where the folder cannot be written, as in a system-wide installation, nothing is kept in it either.

    Returns
    -------
    bool
        Whether something had changed.
    """
    cache = room / "__pycache__"
    sources = hashlib.sha256()
    for path in sorted(room.glob("*.py")):
        sources.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    stamp = cache / _STAMP
    try:
        if stamp.exists() and stamp.read_text("ascii") == sources.hexdigest():
            return False
        cache.mkdir(exist_ok=True)
        for kept in (*cache.glob("*.nbi"), *cache.glob("*.nbc")):
            kept.unlink(missing_ok=True)
        fresh = cache / f"{_STAMP}.{os.getpid()}"
        fresh.write_text(sources.hexdigest(), "ascii")
        fresh.replace(stamp)
    except OSError:
        return False
    return True


forget_outdated(Path(__file__).parent)
