"""``almanac`` and ``python -c`` without the second that a new interpreter takes to import everything.

A server process imports the product once. A small client, which a shell starts as ``almanac``, gives it its
words, folder, environment and streams; the server forks, and the child runs the command line's own entry on
those streams. So pipes, redirections, exit codes and settings are those of a process of its own.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from registry.database.supervisor import die_with_parent

CLIENT = """#!{python} -IS
import os, socket, sys
door = socket.socket(socket.AF_UNIX)
door.connect({path!r})
variables = [f"{{key}}={{value}}" for key, value in os.environ.items()]
words = [{name!r}, os.getcwd(), str(len(sys.argv) - 1), *sys.argv[1:], *variables]
data = "\\0".join(words).encode("utf-8", "surrogateescape")
socket.send_fds(door, [len(data).to_bytes(8, "big")], [0, 1, 2])
door.sendall(data)
code = door.recv(1)
sys.exit(code[0] if code else 1)
"""
MODULES = (
    *("almanac.cli", "ingest.pipeline", "mapping.questions.place", "neo4j", "networkx", "numba"),
    *("rich.progress", "rich.table", "scipy.optimize", "scipy.sparse.csgraph"),
)
"""Imported before the first command; others are imported by the commands that need them."""


@contextmanager
def forking(folder: Path) -> Iterator[str]:
    """Serve commands until the block is left; yield the address of the server."""
    path = str(folder / "door")
    door = socket.socket(socket.AF_UNIX)
    door.bind(path)
    door.listen(64)
    end_with_keeper = die_with_parent()
    server = os.fork()
    if server == 0:
        end_with_keeper()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _serve(door)
    door.close()
    try:
        yield path
    finally:
        os.kill(server, signal.SIGTERM)
        os.waitpid(server, 0)


def client(path: Path, name: str, address: str) -> None:
    """Write the program that a shell calls ``almanac``, or under any other name for ``python -c``."""
    path.write_text(CLIENT.format(python=sys.executable, path=address, name=name))
    path.chmod(0o755)


def _serve(door: socket.socket) -> None:
    """Answer clients, each in a process of its own; return only in a command's process."""
    for name in MODULES:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
    while True:
        caller, _ = door.accept()
        if os.fork() == 0:
            door.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _answer(caller)
        caller.close()


def _answer(caller: socket.socket) -> None:
    """Run a command in a child and send its exit code."""
    head, streams, _, _ = socket.recv_fds(caller, 8, 3)
    data = b""
    while len(data) < int.from_bytes(head, "big"):
        part = caller.recv(1 << 20)
        if not part:
            os._exit(0)  # the client was killed
        data += part
    child = os.fork()
    if child:
        caller.sendall(bytes([_exit_code(child, caller)]))
        os._exit(0)
    caller.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    name, folder, count, *words = data.decode("utf-8", "surrogateescape").split("\0")
    variables = dict(word.split("=", 1) for word in words[int(count) :])
    _run(name, folder, words[: int(count)], variables)


def _exit_code(child: int, caller: socket.socket) -> int:
    """Wait for a command and return its exit code; end the command if its client is killed."""
    ended = os.pidfd_open(child)
    if ended not in select.select([ended, caller.fileno()], [], [])[0]:
        os.kill(child, signal.SIGTERM)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _run(name: str, folder: str, words: list[str], variables: dict[str, str]) -> None:
    """Run a command or a text of Python on the process's streams, and end the process."""
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - the streams of the process
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    sys.argv = [name, *words]
    if name == "almanac":
        from almanac.cli import main

        main()
    else:
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    sys.exit(0)
