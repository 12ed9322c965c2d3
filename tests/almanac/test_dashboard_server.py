from __future__ import annotations

import time
from pathlib import Path

from bench.support.served_dashboard import serve
from registry.database.local.server import status, stop

STARTS_SECONDS = 90.0


def test_the_registry_is_read_before_a_browser_asks(tmp_path: Path) -> None:
    home = tmp_path / "home"
    end = time.monotonic() + STARTS_SECONDS
    try:
        with serve({"ALMANAC_HOME": str(home)}, tmp_path):
            while status(home) is None:
                assert time.monotonic() < end, (tmp_path / "streamlit.log").read_text()
                time.sleep(0.2)
    finally:
        stop(home)
    assert "ScriptRunContext" not in (tmp_path / "streamlit.log").read_text()
