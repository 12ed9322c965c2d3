"""Pages of the dashboard without a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlit.testing.v1 import AppTest

MOST_SECONDS = 120
"""What a run may take on a busy machine; Streamlit's own limit is 3 s."""


def app_of(script: Callable[..., object], *args: Any) -> AppTest:
    """Return an app that calls this function, whose source is all it sees."""
    return AppTest.from_function(script, args=args, default_timeout=MOST_SECONDS)
