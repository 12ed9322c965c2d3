"""Where compiled kernels are kept if neither the program's folder nor the user's cache can be written.

numba stores machine code beside the modules or below ``~/.cache``. In a container with a read-only file
system, or for a service without a home, it finds no folder and refuses to compile.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import platformdirs

import mapping

VARIABLE = "NUMBA_CACHE_DIR"


def choose_kernel_cache() -> None:
    """Set numba's cache folder for this process and its children if numba would find none.

    It is ``kernels`` in the data folder. If this cannot be written either, it is a temporary folder that is
    removed at the end of the process; the next process compiles again.
    """
    own = (Path(mapping.__path__[0]), platformdirs.user_cache_path("numba"))
    if VARIABLE in os.environ or any(map(_writable, own)):
        return
    from almanac.settings import load_settings
    from registry.errors import ConfigError

    folder = None
    with contextlib.suppress(ConfigError):  # the command itself reports it
        folder = load_settings().home / "kernels"
    if folder is not None and _writable(folder):
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True, mode=0o700)
    else:
        folder = Path(tempfile.mkdtemp(prefix="almanac-kernels-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[VARIABLE] = str(folder)


def _writable(folder: Path) -> bool:
    """Return True if a folder can be written, or created."""
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK | os.X_OK)
