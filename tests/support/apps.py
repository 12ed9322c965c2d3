"""Pages of the dashboard without a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlit.testing.v1 import AppTest

MOST_SECONDS = 120
"""Time limit of a run, for a busy machine; Streamlit's default is 3 s."""


def app_of(script: Callable[..., object], *args: Any) -> AppTest:
    """Return an app that runs this function, which must import all that it uses."""
    return AppTest.from_function(script, args=args, default_timeout=MOST_SECONDS)
