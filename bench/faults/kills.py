"""Kill the command or the embedded server (SIGKILL) at a random moment."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from bench.faults.commands import Case, Outcome, finish, start
from registry.database.local.files import ServerFiles

VICTIMS = ("command", "server")


def killed(
    case: Case, victim: str, moment: float, files: Path, variables: Mapping[str, str], work: Path
) -> Outcome:
    """Run a command and kill it, or the server that it uses, after some seconds.

    Parameters
    ----------
    victim : one of `VICTIMS`
    moment : seconds from the start of the command
    """
    began = time.monotonic()
    process = start(case.words(files, work), variables, work)
    while time.monotonic() - began < moment and process.poll() is None:
        time.sleep(0.005)
    if victim == "command":
        process.kill()
    else:
        state = ServerFiles(Path(variables["ALMANAC_HOME"]).resolve()).read_state()
        with suppress(ProcessLookupError):
            if state is not None and state.java:
                os.kill(state.java, signal.SIGKILL)
    return finish(process, began)
