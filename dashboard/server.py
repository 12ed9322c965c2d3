"""Streamlit's server, which prepares the first page while it starts."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import streamlit.web.bootstrap  # whole: its parts import each other, which two threads must not do at once
from streamlit.web.cli import main


def serve(prepare: Callable[[], None]) -> None:
    """Run Streamlit's command with the arguments of this process; call `prepare` in a thread meanwhile."""
    Thread(target=prepare, daemon=True).start()
    main(prog_name=streamlit.__name__)
