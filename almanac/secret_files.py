"""Files with a password, token or key, which only their owner can read."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from registry.errors import ConfigError


def read_secret(path: Path, key: str, *, create: bool = False) -> str:
    """Return the text of a file that only its owner can read.

    Parameters
    ----------
    key : str
        Setting that names the file, for errors.
    create : bool
        True to create the file with a random text if it does not exist.

    Raises
    ------
    ConfigError
    """
    try:
        if create and not path.exists():
            _write_new(path, secrets.token_hex(32))
        mode = path.stat().st_mode
        secret = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(key, str(error), path=path) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(key, f"other users can read it; run: chmod 600 {path}", path=path)
    return secret


def _write_new(path: Path, text: str) -> None:
    """Create a file with mode 0600; keep the file of another process that was faster."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
