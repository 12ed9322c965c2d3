from __future__ import annotations

from pathlib import Path

from bench.support.served_dashboard import serve
from registry.database.local.server import status, stop
from tests.support.waiting import comes_true

STARTS_SECONDS = 90.0


def test_the_registry_is_read_before_a_browser_asks(tmp_path: Path) -> None:
    home = tmp_path / "home"
    try:
        with serve({"ALMANAC_HOME": str(home)}, tmp_path):
            read = comes_true(lambda: status(home) is not None, STARTS_SECONDS)
            assert read, (tmp_path / "streamlit.log").read_text()
    finally:
        stop(home)
    assert "ScriptRunContext" not in (tmp_path / "streamlit.log").read_text()
