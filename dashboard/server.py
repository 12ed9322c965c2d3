"""Streamlit's server, which prepares the first page while it starts."""

from __future__ import annotations

import gc
from collections.abc import Callable
from threading import Thread

import streamlit.web.bootstrap  # whole: its parts import each other, which two threads must not do at once
from streamlit.web.cli import main
from streamlit.web.server import server_util
from streamlit.web.server.starlette import starlette_websocket


def serve(prepare: Callable[[], None]) -> None:
    """Run Streamlit's command with the arguments of this process; call `prepare` in a thread meanwhile.

    Pages of other origins get no connection, unless the setting ``server.corsAllowedOrigins`` lists them:
    Streamlit would take those of this machine's other ports, and ask a server elsewhere for its address.
    """
    vars(starlette_websocket)["is_url_from_allowed_origins"] = server_util.is_allowed_origin

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
