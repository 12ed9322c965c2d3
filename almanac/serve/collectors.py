"""Running a configured command: within its timeout, never twice at once, its output queued in the spool."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from almanac.serve.configuration import OUTPUT, Task
from almanac.spool import FILES, Spool, locked, private
from registry.errors import CommandFailed, StillRunning, shorten
from registry.installation import bytes_of

GRACE_SECONDS = 5.0
"""Time that a command has to end after SIGTERM, before SIGKILL."""
MAX_LOGGED = 2000
"""Most characters of a command's own messages that an error repeats."""
ALMANAC = (sys.executable, "-c", "from almanac.cli import main; main()")
"""Words that call ``almanac`` in a process of its own."""
SECRETS = ("ALMANAC_DB_PASSWORD", "ALMANAC_DASHBOARD_SECRET")
"""Variables that collectors do not inherit."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the tasks of a service share."""

    spool: Spool
    stop: Event
    """Set when the service stops: commands are then ended."""
    environment: Mapping[str, str]
    """Environment of commands of ``almanac``."""


def run_task(task: Task, around: Surroundings) -> str | None:
    """Run a task once; return the name of the spool's entry with its output, None for commands of almanac.

    Raises:
        CommandFailed, StillRunning, SpoolFull
    """
    spool = around.spool
    with (
        locked(spool.folder / f".task-{task.name}", wait=False) as lock,
        spool.draft() as draft,
    ):
        if lock is None:
            raise StillRunning("its last run, perhaps of another process, has not ended")
        folder = draft.files / "0"
        folder.mkdir(0o700)
        run = _Run(task, draft.folder, draft.room, lock, around)
        if task.options is None:
            run.execute((*ALMANAC, *task.command), draft.folder / "printed")
            return None
        if any(OUTPUT in word for word in task.command):
            run.execute(
                [word.replace(OUTPUT, str(folder)) for word in task.command], draft.folder / "printed"
            )
            inputs = f"{FILES}/0"
        else:
            run.execute(task.command, folder / task.name)
            inputs = f"{FILES}/0/{task.name}"
        if not any(path.stat().st_size for path in folder.rglob("*") if path.is_file()):
            raise CommandFailed(f"it wrote nothing{run.messages()}")
        return spool.add(draft, (task.name,), (inputs,), task.options, task.name)


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of a command.

    The command inherits the lock: should this process be killed, the lock is held until the command ends.
    """

    task: Task
    folder: Path
    room: int
    lock: int
    around: Surroundings

    @property
    def _errors(self) -> Path:
        return self.folder / "messages"

    def execute(self, command: Sequence[str], output: Path) -> None:
        """Run a command in a process group of its own, with its standard output in a file."""
        hidden = SECRETS if self.task.options is not None else ()
        environment = {name: text for name, text in self.around.environment.items() if name not in hidden}
        with (
            open(output, "wb", opener=private) as printed,
            open(self._errors, "wb", opener=private) as errors,
        ):
            try:
                process = subprocess.Popen(  # noqa: S603 - the administrator's own command, without a shell
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=errors,
                    env=environment,
                    start_new_session=True,
                    pass_fds=(self.lock,),
                )
            except (OSError, ValueError) as error:
                raise CommandFailed(f"{command[0]} cannot be started: {error}") from error
        try:
            self._await(process)
        finally:
            # The ended process is not waited for yet, so no other group can have its number.
            _signal(process, signal.SIGKILL)
            code = process.wait()
        if code:
            how = f"with exit code {code}" if code > 0 else f"by signal {-code}"
            raise CommandFailed(f"it ended {how}{self.messages()}")

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until a command ends; end it if the service stops or it exceeds its timeout or room."""
        deadline = time.monotonic() + self.task.timeout
        pause = 0.01
        while not _ended(process):
            if self.around.stop.wait(pause):
                why = "the service stopped"
            elif time.monotonic() > deadline:
                why = f"it did not end within {self.task.timeout:g} s"
            elif bytes_of([self.folder]) > self.room:
                why = f"it wrote more than {self.room} bytes, the room in the spool"
            else:
                pause = min(pause * 2, 0.5)
                continue
            _signal(process, signal.SIGTERM)
            limit = time.monotonic() + GRACE_SECONDS
            while not _ended(process) and time.monotonic() < limit:
                time.sleep(0.05)
            raise CommandFailed(f"{why} and was killed{self.messages()}")

    def messages(self) -> str:
        """Return the end of the command's standard error, to be appended to an error."""
        try:
            with self._errors.open("rb") as file:
                file.seek(max(0, self._errors.stat().st_size - MAX_LOGGED))
                text = " ".join(file.read().decode("utf-8", "replace").split())
        except OSError:
            return ""
        return f": {shorten(text, MAX_LOGGED)}" if text else ""


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Return True if a process has ended; it is not reaped, so that its number stays its own."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
