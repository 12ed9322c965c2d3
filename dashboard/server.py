"""Streamlit's server, which prepares the first page while it starts."""

from __future__ import annotations

import gc
from collections.abc import Callable
from threading import Thread

import streamlit.web.bootstrap  # whole: its parts import each other, which two threads must not do at once
from streamlit.web.cli import main


def serve(prepare: Callable[[], None]) -> None:
    """Run Streamlit's command with the arguments of this process; call `prepare` in a thread meanwhile."""

    def begin() -> None:
        prepare()
        keep_for_good()

    Thread(target=begin, daemon=True).start()
    main(prog_name=streamlit.__name__)


def keep_for_good() -> None:
    """Leave what there is now out of later searches for garbage.

    Streamlit searches all objects after each run of a page. Most are of imported modules; to visit them takes
    0.1 s, in which nothing is sent to browsers.
    """
    gc.collect()
    gc.freeze()
