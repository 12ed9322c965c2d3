"""Blocks of code in Markdown pages, and a shell in which they run.

Blocks in the languages ``sh`` and ``python`` run as printed, in the order of the page. Comments in the lines
before a block, which readers do not see, say what it needs::

    <!-- not run: REASON -->             the block needs what a test cannot have
    <!-- file NAME: PATH -->             a file of the page; PATH is below the repository
    <!-- command NAME prints: PATH -->   a command of a cluster; others print nothing: PATH is /dev/null
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from registry.registry import Registry
from registry.upkeep.clusters import delete_cluster
from tests.support import paths
from tests.support.forked import client

RUN = ("sh", "python")
"""Languages of blocks that are run."""
SHOWN = ("text", "csv", "toml", "cypher", "nginx", "cron", "json")
"""Languages of blocks that are only shown."""
_BLOCK = re.compile(r"((?:^<!-- [^\n]* -->\n)*)^```([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOTE = re.compile(r"<!-- (not run|file|command) ?(.*?)(?: prints)?: (.*) -->")


@dataclass(frozen=True, slots=True)
class Note:
    """A comment before a block: ``not run``, ``file`` or ``command``, with its name and reason or path."""

    kind: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    line: int
    language: str
    text: str
    notes: tuple[Note, ...]

    @property
    def skipped(self) -> str | None:
        """Return the reason why the block is not run."""
        return next((note.text for note in self.notes if note.kind == "not run"), None)


def blocks(page: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(page):
        notes = tuple(Note(*parts) for parts in _NOTE.findall(found[1]))
        assert len(notes) == found[1].count("\n"), f"what is meant by {found[1]}?"
        yield Block(page.count("\n", 0, found.start(2)) + 1, found[2], found[3], notes)


SAMPLE = "docs/tutorials/sample-cluster.md"
CLUSTER = "hpc1"
"""Page that makes the sample cluster, which all others use, and the cluster's name."""


@cache
def pages() -> dict[str, tuple[Block, ...]]:
    """Return the blocks of each page of README and docs."""
    files = [*paths.ROOT.glob("*.md"), *(paths.ROOT / "docs").rglob("*.md")]
    return {
        str(path.relative_to(paths.ROOT)): tuple(blocks(path.read_text("utf-8")))
        for path in files
        if path.name not in ("CHANGELOG.md", "commands.md")
    }


def runnable(page: str) -> tuple[Block, ...]:
    return tuple(block for block in pages()[page] if block.language in RUN and not block.skipped)


class Shell:
    """A folder like a checkout, with its own home and registry, and the commands of a cluster.

    ``almanac`` and blocks of Python run in children of the process at the address `forking`.
    """

    def __init__(self, folder: Path, home: Path, forking: str) -> None:
        self.folder, self.home, self.registry = folder, home, home / "registry"
        self._forking = forking
        self.commands = folder / "bin"
        self.commands.mkdir(parents=True, exist_ok=True)
        for name in ("almanac", "tests"):
            (folder / name).symlink_to(paths.ROOT / name)
        (self.commands / "exported").touch()
        for name in ("almanac", "block"):
            client(self.commands / name, name, forking)

    def run(self, block: Block) -> None:
        """Run a block as printed; fail with what it printed if it fails."""
        for note in block.notes:
            source = paths.ROOT / note.text
            if note.kind == "file":
                (self.folder / note.name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, self.folder / note.name)
            elif note.kind == "command":
                self.command(note.name, f"cat {source}")
        if block.language == "sh":  # what a block exports, the next ones have
            exported = self.commands / "exported"
            text = f". {exported}\n{block.text}\nexport -p > {exported}"
            call = ["bash", "-euo", "pipefail", "-c", text]
        else:
            call = [str(self.commands / "block"), "-c", block.text]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ALMANAC", "XDG"))}
        kept |= {"HOME": str(self.home), "ALMANAC_HOME": str(self.registry), "PYTHONPATH": str(paths.ROOT)}
        kept["PATH"] = f"{self.commands}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        done = subprocess.run(call, cwd=self.folder, env=kept, timeout=900, **streams)
        shown = f"{done.stdout}{done.stderr}"
        assert done.returncode == 0, f"line {block.line}, exit code {done.returncode}:\n{shown}"

    def run_page(self, page: str, folder: Path) -> None:
        """Run a page in a new folder, on the registry of this one; delete what it adds there."""
        shell = Shell(folder, self.home, self._forking)
        for path in self.folder.iterdir():
            if path.is_file():
                shutil.copy2(path, folder)
        for block in runnable(page):
            shell.run(block)
        with Registry.open(home=self.registry) as registry:
            for cluster in registry.fabrics.clusters():
                if cluster.name != CLUSTER:
                    delete_cluster(registry.database, cluster.name)

    def command(self, name: str, body: str) -> None:
        path = self.commands / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
