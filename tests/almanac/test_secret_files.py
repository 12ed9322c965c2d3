"""Files that only their owner can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from almanac.secret_files import read_secret
from registry.errors import ConfigError


def test_a_missing_file_is_an_error_or_created_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "secret"
    with pytest.raises(ConfigError, match="No such file"):
        read_secret(path, "key")
    first = read_secret(path, "key", create=True)
    assert len(first) == 64
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_secret(path, "key", create=True) == read_secret(path, "key") == first


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o660])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    path.write_text("hidden")
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"chmod 600 {path}") as caught:
        read_secret(path, "some_file")
    assert caught.value.key == "some_file"
    assert "hidden" not in str(caught.value)
